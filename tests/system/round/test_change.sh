#!/usr/bin/env bash
# Another algorithm over the same state folder: the server is killed while a round is open with
# accepted updates, and started again under components where those mean something else. None of them may
# reach the model, the record says what happened, and the model of before the change stays.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3

# server, round: the training loss of the first round, and the highest after that round. The accuracy of one round
# says nothing: under clients as different as these it is 0.9 in one and 0.5 in the next.
losses() {
  ctl "$1" rounds --last 0 --json |
    json "'%.3f %.3f' % (d[0]['train_loss'], max(r['train_loss'] for r in d if r['round'] > $2))"
}
# In one call, as the next round may open between two.
two_of_three() {
  local states
  states=$(ctl "$1" clients --json | json "' '.join(c['state'] for c in sorted(d, key=lambda c: c['name']))")
  [[ $states == "accepted accepted "@(selected|reported|planned) ]]
}
common=("rounds: 0" "seed: 4" "model: {preset: dnn60}" "training: {epochs: 5, learning_rate: 0.02}"
  "evaluation: {data: \"$dir/data/client-000\"}"
  "round: {start_clients: 3, min_responders: 3, lost_grace: 600s, retry: 100ms}")

# name, lines of A, lines of B, what changed
change() {
  local name=$1 a=$2 b=$3 what=$4 i first after round
  local flctl=("$build/flctl" --state-dir "$dir/$1.state")
  write_server "$name" "${common[@]}" "$a"
  start_server "$name" || finish
  for i in 0 1 2; do start_client "$name-$i" "$dir/data/client-00$i"; done
  wait_for "$name: a good model" at_round "$name" 10
  kill -STOP "${pid_of[$name-2]}" # so that the open round waits for it
  wait_for "$name: an open round with two updates" two_of_three "$name"
  round=$(status_of "$name" rounds_committed)
  kill_hard "$name"
  write_server "$name" "${common[@]}" "$b"
  start_server "$name" || finish
  has_line "$name: the change is in the log" "$dir/$name.log" "configuration changed: $what"
  has_line "$name: and what follows" "$dir/$name.log" \
    "round $((round + 1)): attempt 1 discarded with 2 accepted updates"
  equal "$name: nothing is left of them" "" "$(ls "$dir/$name.state/spool")"
  kill -CONT "${pid_of[$name-2]}"
  wait_for "$name: the rounds after it" at_round "$name" $((round + 5))
  read -r first after < <(losses "$name" "$round")
  check "$name: training loss $first at first, at most $after after the change: no collapse" \
    "$python" -c "import sys; sys.exit(not $after < 0.6 * $first)"
  check "$name: the model of before is kept" \
    test -f "$dir/$name.state/models/round-$(printf %06d "$round").safetensors"
  ctl "$name" rounds --last 0 >"$dir/$name.rounds"
  has_line "$name: the record says so" "$dir/$name.rounds" "$what"
  ctl "$name" checkpoints >"$dir/$name.kept"
  check "$name: and is listed as pinned" grep -Eq "^ *$round .*pinned: before strategy" "$dir/$name.kept"
  check "$name: it can be taken out" ctl "$name" export --round "$round" --output "$dir/$name.model"
  for i in 0 1 2; do
    stop "$name-$i"
    lacks_line "$name: what restarts at zero is no loss of a client" "$dir/$name-$i.log" "is lost"
  done
  equal "$name: as it was" "$(tensors "$dir/$name.state/models/round-$(printf %06d "$round").safetensors")" \
    "$(tensors "$dir/$name.model")"
  check "$name: and unpinned" ctl "$name" unpin --round "$round"
  says "$name: once" 1 "is not pinned" "${flctl[@]}" unpin --round "$round"
  says "$name: what is not there cannot be pinned" 1 "round 999999 has no checkpoint" \
    "${flctl[@]}" pin --round 999999
  says "$name: nor taken out" 1 "round-999999" "${flctl[@]}" export --round 999999 --output "$dir/none"
  says "$name: a round is wanted" 2 "--round N" "${flctl[@]}" pin
  stop "$name"
  equal "$name: the server ends well" 0 "$rc"
  # The best and the last of an eighth of a day may be among the newest, or not.
  check "$name: few others are kept beside it" \
    test "$(find "$dir/$name.state/models" -name 'round-??????.safetensors' | wc -l)" -le 7
}

### What does not fit is said: a file that is not read, a rate that is another one
write_server file "rounds: 2" "model: {preset: dnn60}" "when_finished: exit" "training: {learning_rate: 0.02}"
start_server file || finish
start_client f0 "$dir/data/client-000"
wait_end file
write_server file "rounds: 3" "model: {preset: dnn60, file: \"$dir/file.state/models/round-000001.safetensors\"}" \
  "training: {learning_rate: 0.01}"
start_server file || finish
has_line "the file is not read" "$dir/file.log" "is ignored: the state folder already has a model, of round 2"
has_line "another rate" "$dir/file.log" \
  "configuration changed: training.learning_rate '0.02' -> '0.01', effective from round 3"
lacks_line "and no more than that" "$dir/file.log" "discarded with"
start_client f1 "$dir/data/client-000"
wait_for "the third round" at_round file 3
ctl file rounds --last 0 >"$dir/file.rounds"
has_line "the record has the rate" "$dir/file.rounds" "* from round 3 on: training.learning_rate '0.02' -> '0.01'"
check "in JSON too" json "any(c.startswith('training') for c in d[2]['changes']) and 'changes' not in d[1]" \
  < <(ctl file rounds --last 0 --json)
stop file
stop f0
stop f1

### Another algorithm
change mixed "algorithm: fedavg" $'algorithm: fedmcsa\nstrategy: {upload: full}' "strategy.personal 'none"
change unmixed $'algorithm: fedmcsa\nstrategy: {upload: full}' "algorithm: fedavg" "strategy.personal 'own"
change codec "algorithm: fedavg" $'algorithm: fedavg\nstrategy: {codec: int8}' "strategy.codec 'float32' -> 'int8"
change mask "algorithm: fedadp-1" "algorithm: fedavg" "strategy.upload 'fedadp"
change half "algorithm: fedavg" $'algorithm: fedavg\nstrategy: {broadcast: float16}' \
  "strategy.broadcast 'float32' -> 'float16"
change whole $'algorithm: fedavg\nstrategy: {broadcast: float16}' "algorithm: fedavg" \
  "strategy.broadcast 'float16' -> 'float32"

### One folder, four broadcasts and two spaces: clients keep the model that they hold, whatever the server makes of it
lattice() { # broadcast; further lines
  write_server moves "rounds: 0" "seed: 4" "model: {preset: dnn60}" "training: {epochs: 1, learning_rate: 0.02}" \
    "round: {start_clients: 3, min_responders: 3, lost_grace: 600s, retry: 100ms}" "strategy: {broadcast: $1}"
}
rounds_with() { # broadcast
  local round
  lattice "$1"
  start_server moves || finish
  [ -n "${pid_of[moves-0]:-}" ] || for i in 0 1 2; do start_client "moves-$i" "$dir/data/client-00$i"; done
  round=$(status_of moves rounds_committed)
  wait_for "moves: rounds with $1" at_round moves $((round + 4))
  kill_hard moves
}
steps() { find "$dir/moves.state/steps" -name '*.step' 2>/dev/null | wc -l; }
rounds_with float32
equal "moves: float32 has no steps" 0 "$(steps)"
rounds_with "{policy: lattice, step: 0.125}"
check "moves: a step for each round" test "$(steps)" -ge 4
rounds_with "{policy: lattice, step: 0.125}"
check "moves: which survive a crash" test "$(steps)" -ge 8
rounds_with float32
equal "moves: and go with the broadcast" 0 "$(steps)"
rounds_with "{policy: lattice, step: 0.0625, halve_at: 100000}"
check "moves: and start again with it" test "$(steps)" -ge 4
rounds_with "{policy: lattice, step: 0.0625, halve_at: 100000}, space: {policy: hashed, size: 100, redraw: 3}"
check "moves: they continue in a hashed space" test "$(steps)" -ge 8
rounds_with "{policy: lattice, step: 0.0625, halve_at: 100000}"
check "moves: and behind it" test "$(steps)" -ge 12
has_line "moves: the space is in the log" "$dir/moves.log" "strategy.space 'full' -> 'hashed size=100 start=0 growth=1.25 redraw=3 seed=1'"
has_line "moves: all of it is in the log" "$dir/moves.log" \
  "strategy.broadcast 'lattice step=0.125 threshold=0.6 halve_at=0 history=1000' -> 'float32'"
for i in 0 1 2; do
  check "moves: the client holds a model" test -s "$dir/moves-$i.state/model.bin"
  for text in "does not match" "missing or damaged" "not saved on disk" "training failed"; do
    lacks_line "moves: each model was fetched" "$dir/moves-$i.log" "$text"
  done
done

### A round that has ended cannot become the one in which the step is halved
lattice "{policy: lattice, step: 0.0625, halve_at: 2}"
for args in "" --check-config; do
  says "halve_at $args" 4 "moves.yaml:10: key 'strategy.broadcast.halve_at': round 2 has ended, round" \
    "$build/fl-serverd" ${args:+"$args"} "$dir/moves.yaml"
done
lattice "{policy: lattice, step: 0.0625, halve_at: 100000}"
says "halve_at as it was" 0 "moves.yaml: ok" "$build/fl-serverd" --check-config "$dir/moves.yaml"
lattice "{policy: lattice, step: 0.0625, halve_at: 200000}"
says "halve_at in a later round" 0 "moves.yaml: ok" "$build/fl-serverd" --check-config "$dir/moves.yaml"
for i in 0 1 2; do stop "moves-$i"; done

### A model that is out of the range of a lattice, or leaves it
filled() { # value, file: every entry of the model has it
  "$python" - "$dir/file.state/models/round-000001.safetensors" "$@" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
head.pop("__metadata__", None)  # It has a checksum.
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
value = struct.pack("<f", float(sys.argv[2]))
open(sys.argv[3], "wb").write(struct.pack("<Q", len(text)) + text + value * ((len(raw) - 8 - n) // 4))
PY
}
filled 17 "$dir/over.safetensors"
filled 15.9 "$dir/near.safetensors"
over() { # file
  write_server over "rounds: 0" "model: {preset: dnn60, file: \"$dir/$1.safetensors\"}" \
    "training: {epochs: 5, learning_rate: 0.05}" "round: {start_clients: 1}" "strategy: {broadcast: lattice}"
}
over over
says "a first model out of range" 5 "over.yaml:6: key 'model.file': an entry of '" \
  "$build/fl-serverd" --check-config "$dir/over.yaml"
over near
start_server over || finish
start_client over-0 "$dir/data/client-000"
why() { ctl over why | grep -qF -- "$1"; }
wait_for "over: the pause" why "PAUSED"
ctl over why >"$dir/over.why"
has_line "over: what is wrong" "$dir/over.why" "this broadcast has multiples of 2^-20 below 16, unlike 'float16'"
has_line "over: what to do" "$dir/over.why" "lower training.learning_rate and restart the server"
stop over-0
stop over
finish
