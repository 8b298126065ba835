#!/usr/bin/env bash
# What can be wrong about an algorithm: options out of their range, combinations that make no sense,
# networks that do not fit the data, programs that return another model, state that a client lost.
# Refused before anything is trained, or recovered from, with a message that says which.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
serverd=$build/fl-serverd
synthetic "$dir/data" 3 --seed 3

### Refused when the configuration is read: file, line, key and the reason
slip() { # name, text after the name of the file, lines of YAML… from line 5 on
  local name=$1 text=$2
  shift 2
  write_server slip "$@"
  says "$name" 3 "fl-serverd: $dir/slip.yaml:$text" "$serverd" --check-config "$dir/slip.yaml"
  says "$name: a start refuses it too" 3 "fl-serverd: $dir/slip.yaml:$text" "$serverd" "$dir/slip.yaml"
}
m='model: {preset: dnn60}'
range() { # preset, component, option, value, kind and range
  slip "$1: $3 = $4" "7: key 'strategy.$2.$3': expected $5, found '$4'" "$m" "algorithm: $1" "strategy: {$2: {$3: $4}}"
}
range fedprox solver mu -1 "a number, 0 to 1000000"
range fedmix solver lambda 1.5 "a number, 0 to 1"
range pfedme solver inner_steps 0 "a whole number, 1 to 10000"
range per_fedavg solver alpha -1 "a number, 0 to 1000"
range adafl selection alpha 1.1 "a number, 0 to 1"
range adafl fraction every 0 "a whole number, 1 to 1000000000"
range fedldf upload share 2 "a number, 0 to 1"
range fedldf upload n -1 "a whole number, 0 to 1000000000"
range fedadp upload rho nan "a number, 0 to 1"
range lean codec share inf "a number, 0 to 1"
range fedadam aggregate tau 0 "a number, 1e-09 to 1000"
range fedmcsa aggregate sigma -5 "a number, 0 to 1000000"
range heur_fedamp aggregate self_weight 2 "a number, 0 to 1"
range fedmcsa personal beta 3 "a number, 0 to 1"
range igfl aggregate attention all "one of self, global, time"

nonsense() { # text, strategy: one line, the sixth
  slip "$2" "6: key 'strategy': $1" "$m" "strategy: {$2}"
}
nonsense "aggregate 'mcsa' computes personalized models: it needs personal 'own', not 'none'" "aggregate: mcsa"
nonsense "personal 'own' needs an aggregate that computes personalized models, or upload 'none'; 'mean'" "personal: own"
nonsense "upload 'none' never changes the server's model: it needs personal 'own'" "upload: none"
nonsense "selection 'attention' cannot be combined with personal 'own'" \
  "selection: attention, personal: own, aggregate: heur_fedamp"
nonsense "upload 'ldf' cannot be combined with aggregate 'mcsa'" "personal: own, aggregate: mcsa, upload: ldf"
for form in float16 lattice ternary; do
  nonsense "broadcast '$form' cannot be combined with personal 'own': clients train models of their own, and there is no \
model that all of them hold; choose broadcast 'float32'" "personal: own, aggregate: mcsa, broadcast: $form"
done
nonsense "codec 'ternary' cannot be combined with personal 'own'" "personal: own, aggregate: mcsa, codec: ternary"
nonsense "solver 'scaffold' corrects towards one global model" "solver: scaffold, personal: own, aggregate: mcsa"
nonsense "solver 'igfl_c' corrects towards one global model" "solver: igfl_c, personal: own, aggregate: mcsa"
nonsense "upload 'fedadp' sends parts of units, but solver 'scaffold' needs whole units" \
  "upload: fedadp, solver: scaffold"
nonsense "upload 'fedadp' sends parts of units, but the attention of aggregate 'igfl_s'" "upload: fedadp, aggregate: igfl_s"
nonsense "solver 'scaffold' computes the clients' state changes from their exact updates: it needs codec 'float32'" \
  "solver: {policy: scaffold, rebuild_dc: yes}, codec: int8"
nonsense "selection 'attention' with reference 'new' cannot be combined with upload 'ldf'" \
  "selection: {policy: attention, reference: new}, upload: ldf"
slip "two algorithms of one component" "6: key 'algorithm': " "$m" "algorithm: scaffold+fedprox"
check "and both are named" grep -q "scaffold.*fedprox\|fedprox.*scaffold" "$dir/says.out"
check "nothing was made" test ! -e "$dir/slip.state"

### A network that does not fit the data: both numbers, and nobody trains
mkdir "$dir/labels"
for i in 0 1 2 3; do printf '%s%s\n' "$(printf '0.5,%.0s' $(seq 60))" $((i * 4)) >>"$dir/labels/train.csv"; done
write_server fits "model: {preset: mlr}" "rounds: 1" "algorithm: scaffold"
start_server fits
start_client short "$dir/data/client-000" "reconnect: {after_refusal: 0s}"
wait_end short
equal "data of another width: exit code 7" 7 "$rc"
has_line "the width of the data" "$dir/short.log" "60 values"
has_line "and of the network" "$dir/short.log" "784"
lacks_line "nothing was trained" "$dir/short.log" "trained round"
stop fits
write_server classes "$m" "rounds: 1" "algorithm: fedmcsa"
start_server classes
start_client labels "$dir/labels" "reconnect: {after_refusal: 0s}"
wait_end labels
equal "more labels than the network has: exit code 7" 7 "$rc"
has_line "the classes of the data" "$dir/labels.log" "13"
has_line "and of the network" "$dir/labels.log" "10"
lacks_line "nothing was trained" "$dir/labels.log" "trained round"
stop classes

### A program that returns another network's model
cat >"$dir/other.py" <<'PY'
import json, struct, sys
task = json.load(open(sys.argv[1]))
raw = open(task["model"], "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
name, first = next((k, t) for k, t in sorted(head.items()) if k != "__metadata__" and len(t["shape"]) == 2)
first["shape"] = first["shape"][::-1] # the same bytes, as of another layer
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
with open(task["result_model"], "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + raw[8 + n :])
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
PY
write_server program "$m" "rounds: 2" "round: {start_clients: 2}"
start_server program
start_client good "$dir/data/client-000"
start_client other "" "trainer: command" \
  "command: {program: [\"$python\", \"$dir/other.py\", \"{task}\"], samples: 100, time_limit: 1m}"
wait_for "two rounds without it" at_round program 2
equal "another shape is not averaged" 1 "$(ctl program rounds --last 0 --json | json 'd[0]["responders"]')"
check "its log has both shapes" grep -Eq "20.*60.*60.*20|60.*20.*20.*60" "$dir/other.log"
has_line "the operator reads whose it was" "$dir/program.log" "client 'other'"
stop program

### State that a client lost: it goes on without it and says what, the federation stays finite
lossy() { # name, rounds at first, lines of YAML…: until the rounds are there, then all end
  local name=$1 n=$2 i
  shift 2
  write_server "$name" "$m" "rounds: $n" "round: {start_clients: 3, min_responders: 3}" "$@"
  start_server "$name"
  for i in 0 1 2; do start_client "$name-$i" "$dir/data/client-00$i"; done
  wait_for "$n rounds of $name" at_round "$name" "$n"
  stop "$name"
  for i in 0 1 2; do wait_end "$name-$i"; done
}
again() { # name, rounds in all, lines of YAML…
  local name=$1 n=$2 i
  shift 2
  write_server "$name" "$m" "rounds: $n" "round: {start_clients: 3, min_responders: 3}" "$@"
  start_server "$name"
  for i in 0 1 2; do run_client "$name-$i"; done
  wait_for "$n rounds of $name" at_round "$name" "$n"
  equal "$name: everybody answers" 3 "$(ctl "$name" rounds --last 0 --json | json 'd[-1]["responders"]')"
  check "$name: the model is exported" ctl "$name" export --output "$dir/$name.safetensors"
  check "$name: the model is finite" finite "$dir/$name.safetensors"
  stop "$name"
  for i in 0 1 2; do wait_end "$name-$i"; done
}
keeps() { (cd "$dir/$1.state/keep" && ls); }
flip() { # file: one bit of the middle
  "$python" - "$1" <<'PY'
import os, sys
with open(sys.argv[1], "r+b") as f:
    at = os.path.getsize(sys.argv[1]) // 2
    f.seek(at)
    b = f.read(1)[0]
    f.seek(at)
    f.write(bytes([b ^ 0x10]))
PY
}
everybody='strategy: {fraction: {fraction: 1}}'

lossy folder 2 "algorithm: scaffold" "$everybody"
check "there is something to lose" grep -q scaffold.control <(keeps folder-1)
rm -r "$dir/folder-1.state/keep"
again folder 4 "algorithm: scaffold" "$everybody"
has_line "the lost control is named, and its round" "$dir/folder-1.log" \
  "the server aggregated round 2/1 of this client, but its client state 'scaffold.control' of that round is lost"
lacks_line "the others lost nothing" "$dir/folder-0.log" "lost"

lossy bit 2 "algorithm: scaffold" "$everybody"
for f in "$dir/bit-1.state/keep/"*.keep; do flip "$f"; done
again bit 4 "algorithm: scaffold" "$everybody"
has_line "a flipped bit is noticed, and what it costs" "$dir/bit-1.log" "'scaffold.control' is lost, continuing without it"

lossy index 2 "algorithm: igfl" "$everybody"
index=$dir/index-2.state/keep/index
flip "$index"
again index 4 "algorithm: igfl" "$everybody"
has_line "so is one in the index" "$dir/index-2.log" "all client state is lost"

lossy own 2 "algorithm: fedmcsa" "strategy: {upload: {n: 2}}"
rm -r "$dir/own-0.state"
again own 4 "algorithm: fedmcsa" "strategy: {upload: {n: 2}}"
has_line "a client that lost its model says so" "$dir/own-0.log" "'own.personal' of that round is lost"
check "and keeps one again" grep -q own.personal <(keeps own-0)

### A step that is far too long: no round is committed, both sides say why, the model stays as it was
write_server nan "$m" "rounds: 3" "training: {learning_rate: 1000, weight_decay: 1}" "algorithm: scaffold" \
  "round: {start_clients: 2, retry: 50ms}"
start_server nan
check "the model is exported" ctl nan export --output "$dir/before.safetensors"
for i in 0 1; do start_client "nan-$i" "$dir/data/client-00$i"; done
wait_for "a client to diverge" in_log nan-0 "not finite"
wait_for "the server to hear of it" in_log nan "not finite"
wait_for "the attempt to be given up" grep -q "round 1 attempt 2" "$dir/nan.log"
check "the server goes on" running nan
check "and the clients" running nan-0
equal "nothing was committed" 0 "$(status_of nan rounds_committed)"
check "the model is exported again" ctl nan export --output "$dir/nan.safetensors"
equal "it is the one before" "$(tensors "$dir/before.safetensors")" "$(tensors "$dir/nan.safetensors")"
stop nan
equal "nan: the server ends well" 0 "$rc"
finish
