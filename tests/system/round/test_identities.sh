#!/usr/bin/env bash
# Algorithms that must agree: those that are FedAvg at a limit of an option, what a step size of zero leaves, and what
# the names and the failures of clients do not change. Run through fl-sim, which does what daemons do, bit for bit
# (test_same.sh); a client's NaN goes through daemons.
#   test_identities.sh [--zero NAME…]     a step size of zero, those presets only
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
base=("model: {preset: dnn60}" "seed: 7")
everybody='fraction: {fraction: 1}'
rounds=3
order=(0 1 2 3 4) # the data of client-000, client-001, …

# folder: those of $order, under the names client-000, client-001, …
ordered() {
  local i
  mkdir "$1"
  for i in "${!order[@]}"; do ln -s "$dir/data/client-00${order[i]}" "$1/client-00$i"; done
  "$python" - "${order[@]}" >"$1/split.json" <<PY
import json, sys
with open("$dir/data/split.json") as f:
    split = json.load(f)
split["clients"] = [split["clients"][int(k)] | {"folder": f"client-00{i}"} for i, k in enumerate(sys.argv[1:])]
json.dump(split, sys.stdout)
PY
}
# name, lines of the server's YAML…: a federation of all in $order to its end; its model in NAME.safetensors
federation() {
  local name=$1
  shift
  ordered "$dir/$name.data"
  {
    echo "server:"
    printf '  %s\n' "${base[@]}" "rounds: $rounds" "round: {start_clients: ${#order[@]}, min_responders: ${#order[@]}}" "$@"
    printf '%s\n' "client: {summaries: yes}" "data: {path: \"$dir/$name.data\"}" "stop: {rounds: $rounds}"
  } >"$dir/$name.yaml"
  check "$name runs" "$build/fl-sim" run "$dir/$name.yaml" --out "$dir/$name.out" --quiet --keep-state || return
  cp "$(printf '%s/models/round-%06d.safetensors' "$dir/$name.out/base/seed-7/state/server" "$rounds")" "$dir/$name.safetensors"
  check "$name: the model is finite" finite "$dir/$name.safetensors"
}
# name: the model that a federation begins with
beginning() {
  write_server "$1" "${base[@]}"
  start_server "$1"
  check "$1: the model is exported" ctl "$1" export --output "$dir/$1.safetensors"
  stop "$1"
}
same() { # rule, federation, federation: bit for bit
  equal "$1" "$(tensors "$dir/$2.safetensors")" "$(tensors "$dir/$3.safetensors")"
}
differ() { [ "$(tensors "$dir/$1.safetensors")" != "$(tensors "$dir/$2.safetensors")" ]; }
# tolerance, bytes, file, file: the last so many bytes as float32, against the largest of them or 1
near() {
  "$python" - "$@" <<'PY'
import array, math, sys
tolerance, size = float(sys.argv[1]), int(sys.argv[2])
def values(name):
    raw = open(name, "rb").read()
    return array.array("f", raw[4096 : 4096 + size] if raw[:8] == b"FL-FILE1" else raw[-size:])
a, b = (values(name) for name in sys.argv[3:5])
assert len(a) == len(b) == size // 4
worst = max(abs(x - y) for x, y in zip(a, b))
scale = max(1, max(abs(x) for x in a))
print("largest difference", worst, "of", scale)
sys.exit(not (math.isfinite(worst) and worst <= tolerance * scale))
PY
}
model=5720 # bytes of dnn60
close() { # rule, tolerance, federation, federation
  check "$1" near "$2" "$model" "$dir/$3.safetensors" "$dir/$4.safetensors"
}

tensors_of() { # pattern, file: the tensors whose name begins so, or with ! the others
  "$python" - "$@" <<'PY'
import hashlib, json, struct, sys
raw = open(sys.argv[2], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8 : 8 + size])
wanted, begin = not sys.argv[1].startswith("!"), sys.argv[1].lstrip("!")
for name in sorted(n for n in head if n != "__metadata__" and n.startswith(begin) == wanted):
    a, b = head[name]["data_offsets"]
    print(name, hashlib.sha256(raw[8 + size + a : 8 + size + b]).hexdigest())
PY
}

# presets…: three rounds with a step size that is zero in float32 (zero itself is refused) leave the model bit for bit
zero() {
  local preset momentum before strategy
  {
    printf '%s\n' "server:"
    printf '  %s\n' "${base[@]}" "rounds: 3" "round: {start_clients: 5, min_responders: 5}" "evaluation: {every: 0}"
    printf '%s\n' "client: {summaries: yes}" "data: {path: \"$dir/data\"}" "stop: {rounds: 3}" "sweep:"
    for preset in "$@"; do
      momentum=0.5
      [[ $preset != pfedme* ]] || momentum=0 # it refuses any
      strategy=
      # Their first model has a seed of its own, and is rounded.
      [[ $preset != *lean* && $preset != stc ]] || strategy=', strategy: {broadcast: float32}'
      echo "- {label: \"$preset\", server: {algorithm: \"$preset\", training: {learning_rate: 1e-60, momentum: $momentum, weight_decay: 0.01}$strategy}}"
    done
  } >"$dir/zero.yaml"
  check "all presets run with a step size of zero" "$build/fl-sim" run "$dir/zero.yaml" --out "$dir/zero" --quiet --keep-state || return
  before=$(tensors "$dir/beginning.safetensors")
  while IFS=$'\t' read -r preset folder; do
    equal "$preset: a step size of zero leaves the model bit for bit" "$before" \
      "$(tensors "$dir/zero/$folder/seed-7/state/server/models/round-000003.safetensors")"
  done < <(json '"\n".join(p["label"] + "\t" + p["point"] for p in d["points"])' <"$dir/zero/run.json")
  rm -r "$dir/zero"
}

synthetic "$dir/data" 5 --seed 3
beginning beginning
if [ "${1:-}" = --zero ]; then
  shift
  zero "$@"
  finish
fi

### A step size of zero: every preset
mapfile -t presets < <(presets_of_help)
check "fl-serverd --help lists presets" test "${#presets[@]}" -ge 40
zero "${presets[@]}"

### What is FedAvg at a limit, bit for bit
federation fedavg "strategy: {$everybody}"
is_fedavg() { # rule, name, lines of YAML…
  local rule=$1 name=$2
  shift 2
  federation "$name" "$@" && same "$rule is fedavg bit for bit" fedavg "$name"
}
is_fedavg "fedprox with mu = 0" prox "algorithm: fedprox" "strategy: {$everybody, solver: {mu: 0}}"
is_fedavg "fedmix with lambda = 0" mix "algorithm: fedmix" "strategy: {$everybody, solver: {lambda: 0}}"
is_fedavg "naivemix with lambda = 0" naive "algorithm: naivemix" "strategy: {$everybody, solver: {lambda: 0}}"
is_fedavg "fedavgm with beta = 0" avgm "algorithm: fedavgm" "strategy: {$everybody, aggregate: {beta: 0}}"
is_fedavg "hdfl with n = K" hdfl "algorithm: hdfl" "strategy: {$everybody, upload: {n: 5}}"
is_fedavg "fedadp with rho = 1" adp "algorithm: fedadp" "strategy: {$everybody, upload: {rho: 1}}"
is_fedavg "adafl with everybody" adafl "algorithm: adafl" "strategy: {fraction: {start: 1, end: 1}}"
is_fedavg "lean that codes plainly and takes everybody" lean "algorithm: lean" \
  "strategy: {fraction: {start: 1, end: 1}, upload: {n: 5}, codec: float32, broadcast: float32}"
federation adam "algorithm: fedadam" \
  "strategy: {$everybody, aggregate: {beta1: 0, beta2: 1, tau: 0.01, server_lr: 0.02}}"
close "fedadam that does not adapt is fedavg to 1e-6" 1e-6 fedavg adam
federation avgm9 "algorithm: fedavgm" "strategy: {$everybody}"
check "beta is no decoration" differ fedavg avgm9

federation five "training: {epochs: 0, steps: 5}" "strategy: {$everybody}"
federation nova5 "algorithm: fednova" "training: {epochs: 0, steps: 5}" "strategy: {$everybody}"
same "fednova with equal steps is fedavg bit for bit" five nova5
federation nova "algorithm: fednova" "strategy: {$everybody}"
check "clients of other sizes make other numbers of steps" differ fedavg nova

### pFedMe, Per-FedAvg
federation me "algorithm: pfedme" "training: {learning_rate: 0.05}" \
  "strategy: {upload: {n: 5}, solver: {lambda: 20, inner_steps: 1, inner_learning_rate: 0.05}}"
close "pfedme with eta lambda = 1 and one inner step is fedavg to 1e-6" 1e-6 fedavg me
federation me0 "algorithm: pfedme" "strategy: {upload: {n: 5}, solver: {lambda: 0}}"
same "pfedme with lambda = 0 leaves the model for all" beginning me0
federation mebeta "algorithm: pfedme" "strategy: {upload: {n: 5}, aggregate: {server_lr: 0}}"
same "pfedme with beta = 0 too" beginning mebeta

### First rounds: controls and last moves are zero
rounds=1
federation avg1 "strategy: {$everybody}"
federation control "algorithm: scaffold" "strategy: {$everybody, aggregate: {weights: samples}}"
same "the first round of scaffold is fedavg bit for bit" avg1 control
federation per1 "algorithm: fedper" "strategy: {$everybody}"
equal "the body of fedper after a round is that of fedavg" "$(tensors_of "!fc2" "$dir/avg1.safetensors")" "$(tensors_of "!fc2" "$dir/per1.safetensors")"
federation prox2 "algorithm: fedprox" "strategy: {$everybody, solver: {mu: 0.1}, aggregate: {weights: equal, server_lr: 2}}"
federation dyn "algorithm: feddyn" "strategy: {$everybody, solver: {alpha: 0.1}}"
close "the first round of feddyn is fedprox with a server_lr of 2" 1e-6 prox2 dyn
federation longer "training: {learning_rate: 0.06}" "strategy: {$everybody, aggregate: {weights: equal}}"
federation igflc "algorithm: igfl_c" "training: {learning_rate: 0.05}" "strategy: {$everybody}"
close "the first round of igfl_c is fedavg with (1 + 1/S) eta" 1e-5 longer igflc
federation equal1 "strategy: {$everybody, aggregate: {weights: equal}}"
federation time1 "strategy: {$everybody, aggregate: {policy: igfl_s, attention: time}}"
close "the first round of time attention is fedavg with equal weights" 1e-6 equal1 time1
federation kappa "strategy: {$everybody, aggregate: {policy: igfl_s, kappa: 0}}"
close "igfl_s with kappa = 0 too" 1e-6 equal1 kappa
rounds=3

### Personal models that are not mixed are those of local_only
newest() { # federation, client
  "$python" - "$dir/$1.out/base/seed-7/state/clients/client-00$2/keep" <<'PY'
import glob, re, sys
print(max(glob.glob(sys.argv[1] + "/own.personal.*.keep"), key=lambda f: int(re.findall(r"\.(\d+)\.keep$", f)[0])))
PY
}
alone() { # rule, federation
  local i
  for i in 0 1 2 3 4; do
    check "$1 (client-00$i)" near 1e-6 "$model" "$(newest local "$i")" "$(newest "$2" "$i")"
  done
}
federation local "algorithm: local_only"
same "local_only leaves the model for all" beginning local
federation heur "algorithm: heur_fedamp" \
  "strategy: {upload: {n: 5}, solver: {mu: 0}, aggregate: {self_weight: 1}}"
alone "heur_fedamp with a self weight of 1 is local_only" heur
federation sigma "algorithm: fedavg+mcsa" "strategy: {upload: {n: 5}, aggregate: {sigma: 1000000}}"
alone "mcsa with a huge sigma is local_only" sigma
federation mixed "algorithm: fedavg+mcsa" "strategy: {upload: {n: 5}, aggregate: {sigma: 0}}"
federation ditto "algorithm: ditto" "strategy: {$everybody}"
same "ditto leaves the global model of fedavg bit for bit" fedavg ditto
federation ditto0 "algorithm: ditto" "strategy: {$everybody, personal: {lambda: 0}}"
alone "ditto's personal model with lambda = 0 is that of local_only" ditto0
federation ditto9 "algorithm: ditto" "strategy: {$everybody, personal: {lambda: 20}}"
pulled() { ! near 1e-6 "$model" "$(newest local 0)" "$(newest ditto9 0)"; }
check "with lambda = 20 it is not" pulled
federation fedper "algorithm: fedper" "strategy: {$everybody}"
plain=("${base[@]}")
base=('model: {preset: dnn60, norm: local, local: ["fc2.*"]}' "seed: 7")
federation localhead "strategy: {$everybody, personal: trained}"
base=("${plain[@]}")
same "fedper is fedavg with a local last layer" localhead fedper
equal "the server's head stays as it was" "$(tensors_of fc2 "$dir/beginning.safetensors")" "$(tensors_of fc2 "$dir/fedper.safetensors")"
federation fedrep "algorithm: fedrep" "strategy: {$everybody, personal: {epochs: 2}}"
check "with epochs of its own the head is trained in another way" differ fedper fedrep
mixes() { ! near 1e-6 "$model" "$(newest local 0)" "$(newest mixed 0)"; }
check "with sigma = 0 it is not" mixes

### Names: clients that swap theirs end with the same model. Whole batches, which no seed decides. Sums in another
### order differ in their last bits, by other amounts on each processor, and three rounds carry that on: 1e-5 of it.
swapped() { # name, lines of YAML…
  local name=swap-${1//+/-}
  shift
  order=(0 1 2 3 4)
  federation "$name" "training: {batch_size: 65536, epochs: 3}" "$@"
  order=(3 0 4 1 2)
  federation "$name-swapped" "training: {batch_size: 65536, epochs: 3}" "$@"
  order=(0 1 2 3 4)
  close "$name: permuting the clients does not change the model" 1e-5 "$name" "$name-swapped"
}
for algorithm in fedavg fedavgm fedadam scaffold feddyn igfl igfl_sa igfl_ta fedmcsa heur_fedamp fedldf+scaffold fedadp; do
  case $algorithm in
    fedmcsa|heur_fedamp) swapped "$algorithm" "algorithm: $algorithm" "strategy: {upload: {n: 5}}" ;;
    fedldf*) swapped "$algorithm" "algorithm: $algorithm" "strategy: {$everybody, upload: {n: 2}}" ;;
    *) swapped "$algorithm" "algorithm: $algorithm" "strategy: {$everybody}" ;;
  esac
done

### Whole batches make steps of the whole federation
whole=("training: {batch_size: 65536, epochs: 0, steps: 3}")
federation steps3 "${whole[@]}" "strategy: {$everybody}"
federation maml "${whole[0]/steps: 3/steps: 6}" "algorithm: per_fedavg" "strategy: {$everybody, solver: {alpha: 0}}"
close "per_fedavg with alpha = 0 is fedavg, two steps an iteration" 1e-6 steps3 maml
order=(1 1 1 1 1)
federation alike "${whole[@]}" "strategy: {$everybody}"
federation alike-control "${whole[@]}" "algorithm: scaffold" "strategy: {$everybody}"
close "scaffold with clients that are alike is fedavg" 1e-6 alike alike-control
order=(0 1 2 3 4)
check "the data of one is shared out" "$build/fl-data" split --input "$dir/data/client-001" \
  --output "$dir/parts" --clients 5 --method dirichlet --alpha 1 --seed 1
mv "$dir/data" "$dir/wholes"
mv "$dir/parts" "$dir/data"
federation parts "training: {batch_size: 65536}" "strategy: {$everybody}"
mv "$dir/data" "$dir/parts"
mv "$dir/wholes" "$dir/data"
order=(1)
federation joint "training: {batch_size: 65536}"
order=(0 1 2 3 4)
close "one step a round is gradient descent on the loss of all" 1e-5 joint parts

### One NaN upload is that client absent
bad=$build/tests/system/bad_client
with_nan() { # name, number of clients to start with
  write_server "$1" "${base[@]}" "rounds: 3" "round: {start_clients: $2}" "training: {epochs: 1}"
  start_server "$1"
  for i in 0 1; do start_client "$1-$i" "$dir/data/client-00$i" "name: c$i"; done
  if [ "$2" = 3 ]; then
    "$bad" "$address" zz nan >"$dir/$1.bad" 2>&1
    has_line "$1: the upload is refused" "$dir/$1.bad" "verdict rejected"
  fi
  wait_for "the rounds of $1" at_round "$1" 3
  check "$1: the model is exported" ctl "$1" export --output "$dir/$1.safetensors"
  equal "$1: two responders in the first round" 2 "$(ctl "$1" rounds --last 0 --json | json 'd[0]["responders"]')"
  stop "$1"
  for i in 0 1; do wait_end "$1-$i"; done
}
with_nan absent 2
with_nan nan 3
same "one NaN upload is that client absent bit for bit" absent nan
finish
