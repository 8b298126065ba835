#!/usr/bin/env bash
# Training that diverges on the clients: the federation pauses at once and says why and what to do,
# what was committed stays whole, and with a lower learning rate it goes on with the same round once it is
# resumed, which a restart alone does not do.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
# The reason is this sentence wherever it is shown.
reason="clients report NaN or infinite values in training"
remedy="lower training.learning_rate and restart the server"

# name, rate, lines of YAML…
server() {
  local name=$1 rate=$2
  shift 2
  write_server "$name" "model: {preset: dnn60}" \
    "training: {learning_rate: $rate, momentum: 0.9, weight_decay: 0.1, steps: 100, epochs: 0}" \
    "round: {start_clients: 3, min_responders: 2, retry: 20ms}" "$@"
  start_server "$name"
}
clients() { # server: three of them, a0 to a2 for server a
  local i
  for i in 0 1 2; do start_client "$1$i" "$dir/data/client-00$i"; done
}
# server, round, attempt
shows_the_pause() {
  ctl "$1" why >"$dir/$1.why"
  has_line "$1: why names the attempt" "$dir/$1.why" "round $2 is PAUSED: round $2 attempt $3 diverged: "
  has_line "$1: why says what clients report" "$dir/$1.why" "of 3 $reason"
  has_line "$1: why says what to do" "$dir/$1.why" "$remedy"
  ctl "$1" status >"$dir/$1.status"
  has_line "$1: status for people" "$dir/$1.status" "phase       PAUSED, round $2"
  has_line "$1: the log has the reason" "$dir/$1.log" "IDLE -> PAUSED, round $2 attempt $3 diverged: "
  # The third may have been dismissed before it came that far.
  check "$1: two clients say it themselves" \
    test "$(grep -l "round $2 failed: training diverged" "$dir/$1"[012].log | wc -l)" -ge 2
}
# server, committed rounds
keeps_its_model() {
  equal "$1: no further round is committed" "$2" "$(status_of "$1" rounds_committed)"
  check "$1: the last model is exported" ctl "$1" export --output "$dir/$1.safetensors"
  check "$1: every number of it is finite" finite "$dir/$1.safetensors"
}
ends_well() { # server
  local i
  stop "$1"
  equal "$1: exit code on SIGTERM" 0 "$rc"
  for i in 0 1 2; do stop "$1$i"; done
}

### The first round diverges
server a 1000 "rounds: 3"
clients a
wait_for "the pause" in_phase a PAUSED
reason_of_a=$(ctl a why)
shows_the_pause a 1 1
keeps_its_model a 0
equal "nobody was asked a second time" 1 "$(grep -c 'SELECTING -> TRAINING' "$dir/a.log")"
stop a
equal "exit code on SIGTERM" 0 "$rc"

# A restart stays paused. The same rate: the next attempt of the same round, and the same end.
start_server a
wait_for "the clients" connected a 3
shows_the_pause a 1 1
ctl a resume >"$dir/a.resume"
has_line "resume goes on with the round" "$dir/a.resume" "resumed: the federation continues with round 1"
wait_for "the second attempt" in_log a "round 1 attempt 2 diverged"
wait_for "the pause of the second attempt" in_phase a PAUSED
shows_the_pause a 1 2
check "the attempt is another" test "$reason_of_a" != "$(ctl a why)"
stop a

# A lower one: the same round goes on, to the end.
server a 0.05 "rounds: 3"
ctl a resume >"$dir/a.resume"
wait_for "all rounds with a lower rate" at_round a 3
equal "round 1 was done in its third attempt, then all in their first" "1.3 2.1 3.1" \
  "$(ctl a rounds --last 0 --json | json '" ".join("%d.%d" % (r["round"], r["attempt"]) for r in d)')"
keeps_its_model a 3
for i in 0 1 2; do wait_end "a$i"; done
stop a
equal "the server ends well" 0 "$rc"

### A later round, with what IGFL-C and SCAFFOLD keep beside the model
for solver in igfl_c scaffold; do
  name=${solver:0:1}
  server "$name" 0.01 "rounds: 2" "strategy: {solver: $solver}"
  clients "$name"
  wait_for "two rounds of $solver" at_round "$name" 2
  for i in 0 1 2; do wait_end "$name$i"; done
  stop "$name"
  server "$name" 1000 "rounds: 4" "strategy: {solver: $solver}"
  for i in 0 1 2; do run_client "$name$i"; done
  wait_for "the pause of $solver" in_phase "$name" PAUSED
  shows_the_pause "$name" 3 1
  keeps_its_model "$name" 2
  stop "$name"
  equal "$solver: exit code on SIGTERM" 0 "$rc"
  server "$name" 0.01 "rounds: 4" "strategy: {solver: $solver}"
  ctl "$name" resume >"$dir/$name.resume"
  wait_for "the rest of the rounds of $solver" at_round "$name" 4
  equal "$solver: round 3 was done in its second attempt" 2 \
    "$(ctl "$name" rounds --last 0 --json | json 'd[2]["attempt"]')"
  keeps_its_model "$name" 4
  ends_well "$name"
done

### One of three diverges: the round goes on without it, and says so
cat >"$dir/nan.py" <<'TEXT'
import json, struct, sys
task = json.load(open(sys.argv[1]))
raw = bytearray(open(task["model"], "rb").read())
raw[-4:] = struct.pack("<f", float("nan"))
open(task["result_model"], "wb").write(raw)
json.dump({"samples": 10, "steps": 1, "train_loss": float("nan")}, open(task["result"], "w"))
TEXT
server one 0.05 "rounds: 2"
start_client one0 "$dir/data/client-000"
start_client one1 "$dir/data/client-001"
start_client one2 "" "trainer: command" \
  "command: {program: [\"$python\", \"$dir/nan.py\", \"{task}\"], samples: 100, time_limit: 1m}"
wait_for "two rounds of two clients" at_round one 2
has_line "the round tells of the diverged client" "$dir/one.log" "committed with 2 of 3 clients, 1 diverged"
has_line "and who it is" "$dir/one.log" "client 'one2' diverged: "
keeps_its_model one 2
ends_well one
finish
