#!/usr/bin/env bash
# Every preset of fl-serverd --help runs three rounds through fl-sim with one client lost in the middle of the second,
# ends with finite models that beat chance by far, and its byte counters are the formulas'. That daemons do the same to
# the bit, also when a client is killed, is what test_same.sh proves.
# With FL_SLOW_TESTS=no under sanitizers presets that hold every policy.
#   test_presets.sh [NAME…]     those presets only
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

model=5720 # dnn60 in float32: units of 60*20+20 and 20*10+10 numbers
units=2

# preset, selected, responders: the uplink bytes of a round where all that were selected answered;
# nothing where the updates decide
formula() {
  local k=$2 r=$3 n sent feedback=0
  n=$(((2 * k + 5) / 10)) # a fifth of them uploads
  [ "$n" -ge 1 ] || n=1
  case "$1" in
    lean|stc|topk|qsgd|fedadp) return ;;
    local_only) sent=0 ;;
    *fedldf*|random_layer|hdfl|*mcsa*|*fedamp|pfedme) sent=$n ;;
    *) sent=$r ;;
  esac
  case "$1" in *scaffold*) sent=$((2 * sent)) ;; esac
  case "$1" in *fedldf*) feedback=$((4 * units * r)) ;; esac
  case "$1" in igfl_ta) feedback=$((8 * r)) ;; esac
  echo $((sent * model + feedback))
}
# preset, selected: the downlink bytes of a late round; nothing where personal_models decide
down_formula() {
  case "$1" in
    fedmcsa_mean) echo $(($2 * model)) ;;
    *mcsa*|*fedamp|local_only|stc|*lean*) return ;;
    *scaffold*|*igfl_c|igfl|igfl_sa|igfl_ta) echo $((2 * $2 * model)) ;;
    *) echo $(($2 * model)) ;;
  esac
}
personal() {
  case "$1" in *mcsa*|*fedamp|pfedme|local_only|per_fedavg|ditto|fedper|fedrep|*+ft) return 0 ;; esac
  return 1
}

experiment() { # presets…: a point for each
  local algorithm fraction
  cat <<YAML
server:
  rounds: 3
  model: {preset: dnn60}
  training: {epochs: 2, learning_rate: 0.05}
  evaluation: {every: 1, clients: yes}
  round: {start_clients: 5, lost_grace: 200ms, retry: 50ms}
client: {summaries: yes, data: {validation: 0.25}}
data: {path: "$dir/data"}
world:
  latency: 5ms
  train: {fixed: 1s}
  availability: {trace: "$dir/times", assign: in_order}
stop: {rounds: 3, time: 1h}
sweep:
YAML
  for algorithm in "$@"; do
    # AdaFL's schedule and the fraction of FedLDF are for more clients than five.
    case "$algorithm" in
      *adafl*|dyn_fedavg|lean) fraction=', strategy: {fraction: {start: 1, end: 1}}' ;;
      *fedldf*|random_layer|hdfl|fedadp) fraction=', strategy: {fraction: {fraction: 1}}' ;;
      *) fraction='' ;;
    esac
    echo "- {label: \"$algorithm\", server: {algorithm: \"$algorithm\"$fraction}}"
  done
}

of_preset() { # name: its run, as fl-sim left it
  local algorithm=$1 key=accuracy k r up full down want
  "$python" - "$dir/out" "$algorithm" >"$dir/found" <<'PY' || { note_failure "$algorithm: it has no finished run"; return; }
import glob, json, sys
out, preset = sys.argv[1:]
run = next(f"{out}/{p['point']}/seed-1" for p in json.load(open(f"{out}/run.json"))["points"] if p["label"] == preset)
rounds = [json.loads(line) for line in open(f"{run}/rounds.jsonl")]
lost = [(p["name"], p["round"]) for p in map(json.loads, open(f"{run}/clients.jsonl")) if p["state"] == "dropped"]
# Formulas of rounds where no client was lost; there is one, as the lost one stays away.
r = next(r for r in reversed(rounds) if r["selected"] == r["responders"])
print(*(r[key] for key in ("selected", "responders", "uplink_bytes", "uplink_bytes_full", "downlink_bytes")))
print(*(r["round"] for r in rounds))
print(lost)
for key in "accuracy", "personal_accuracy":
    print(max(r[key] or 0 for r in rounds) > 0.3, [r[key] for r in rounds])
print(*sorted(glob.glob(f"{run}/state/server/models/*.safetensors"))[-1:])
PY
  mapfile -t found <"$dir/found"
  read -r k r up full down <<<"${found[0]}"
  equal "$algorithm: each round was committed once" "1 2 3" "${found[1]}"
  equal "$algorithm: a client was lost in the second round" "[('client-004', 2)]" "${found[2]}"
  equal "$algorithm: the last round is of the other four" 4 "$k"
  check "$algorithm: the model is finite" finite "${found[5]}"
  want=${found[3]}
  ! personal "$algorithm" || { key=personal_accuracy want=${found[4]}; }
  equal "$algorithm: $key beats chance" True "${want%% *}" || echo "    $want"
  equal "$algorithm: bytes of full uploads" $((r * model)) "$full"
  want=$(down_formula "$algorithm" "$k")
  [ -z "$want" ] || equal "$algorithm: downlink bytes of $k" "$want" "$down"
  want=$(formula "$algorithm" "$k" "$r")
  if [ -n "$want" ]; then
    equal "$algorithm: uplink bytes of $r of $k" "$want" "$up"
  else
    check "$algorithm: fewer bytes than full uploads ($up of $full)" test "$up" -gt 0 -a "$up" -lt $((full / 2))
  fi
}

presets=("$@")
[ $# -gt 0 ] || mapfile -t presets < <(if everyday && sanitized; then covering_presets 1; else presets_of_help; fi)
check "fl-serverd --help lists presets" test "${#presets[@]}" -ge 1
for algorithm in "${presets[@]}"; do
  has_line "docs/algorithms.md describes $algorithm" "$srcdir/docs/algorithms.md" "\`$algorithm\`"
done
# One client's samples shared out evenly: three rounds are enough to learn something.
synthetic "$dir/one" 1 --seed 3
check "the data is shared out" "$build/fl-data" split --input "$dir/one/client-000" --output "$dir/data" \
  --clients 5 --method iid --seed 1
{
  printf '# source: test_presets.sh\n# length: 1h\nclient, up_from [s], up_until [s]\n'
  # The last one disconnects while it trains in the second round: it takes a second to train.
  printf '%s\n' "0, 0, 3600" "1, 0, 3600" "2, 0, 3600" "3, 0, 3600" "4, 0, 1.5"
} >"$dir/times"
experiment "${presets[@]}" >"$dir/presets.yaml"
check "fl-sim runs them" "$build/fl-sim" run "$dir/presets.yaml" --out "$dir/out" --quiet --keep-state --clients || finish
for algorithm in "${presets[@]}"; do of_preset "$algorithm"; done
finish
