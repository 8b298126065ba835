#!/usr/bin/env bash
# What an operator does to the rounds of a server that runs: pause, resume, drain, abort-round.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 2 --seed 3

# Training that takes as long as the test wants: it waits for the file "go".
cat >"$dir/slow.py" <<'TEXT'
import json, os, shutil, sys, time
task = json.load(open(sys.argv[1]))
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
shutil.copy(task["model"], task["result_model"])
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
TEXT
server() { # name, lines of YAML…
  local name=$1
  shift
  write_server "$name" "model: {preset: dnn60}" \
    "round: {start_clients: 2, min_responders: 2, retry: 20ms}" "$@"
  start_server "$name"
}
client() { # name, folder
  start_client "$1" "$dir/data/$2"
}
slow_client() {
  start_client "$1" "" "trainer: command" \
    "command: {program: [\"$python\", \"$dir/slow.py\", \"{task}\", \"$dir/go\"], samples: 10, time_limit: 1h}"
}
asks() { # name, exit code, text, server, arguments of flctl…
  says "$1" "$2" "$3" "$build/flctl" --state-dir "$dir/$4.state" "${@:5}"
}
attempts() { ctl "$1" rounds --last 0 --json | json '" ".join("%d.%d" % (r["round"], r["attempt"]) for r in d)'; }
training_of() { # server, round, attempt
  in_log "$1" "round $2 attempt $3: SELECTING -> TRAINING"
}

### A pause waits for the open round, and outlives a kill
server a "rounds: 4"
for i in 0 1; do slow_client "a$i"; done
wait_for "the first round" training_of a 1 1
asks "the open round is finished first" 0 \
  "round 1 is finished first, then the federation pauses: paused by the operator: new data" \
  a pause --reason "new data"
kill_hard a
start_server a
asks "a pause that is there already is told" 0 "already so: " a pause --reason "more"
touch "$dir/go"
wait_for "the pause" in_phase a PAUSED
equal "the open round was finished" 1 "$(status_of a rounds_committed)"
ctl a why >"$dir/a.why"
has_line "why tells the reason, and what goes on" "$dir/a.why" \
  "round 2 is PAUSED: paused by the operator: new data; 'flctl resume' continues"
kill_hard a
start_server a
wait_for "the pause after a kill" in_phase a PAUSED
wait_for "both clients, who did not take the pause for the end" connected a 2
asks "nothing can be aborted" 1 "no round is open" a abort-round
ctl a resume --json >"$dir/a.resume"
equal "the answer as JSON" "2 resumed: the federation continues with round 2" \
  "$(json '"%d %s" % (d["round"], d["text"])' <"$dir/a.resume")"
wait_for "the rest of the rounds" at_round a 4
for i in 0 1; do
  wait_end "a$i"
  equal "client a$i ends well" 0 "$rc"
done
asks "a finished federation has nothing to resume" 0 "the federation is not paused" a resume
asks "and stops" 0 "the server stops" a drain
wait_end a
equal "drained when all is done: exit code" 0 "$rc"

### An attempt that is aborted is followed by the next
rm -f "$dir/go"
server b "rounds: 1"
for i in 0 1; do slow_client "b$i"; done
wait_for "the first attempt" training_of b 1 1
asks "the attempt is over" 0 "round 1 attempt 1 is aborted; the next attempt follows" \
  b abort-round --reason "wrong data"
wait_for "the second attempt" training_of b 1 2
touch "$dir/go"
wait_for "the round" at_round b 1
equal "it was done in the second attempt" "1.2" "$(attempts b)"
has_line "the log tells why" "$dir/b.log" "aborted (by the operator: wrong data)"
for i in 0 1; do wait_end "b$i"; done
stop b

### Drained, a server finishes the open round and ends; its clients wait for the next start
rm -f "$dir/go"
server c "rounds: 2"
for i in 0 1; do slow_client "c$i"; done
wait_for "the first round" training_of c 1 1
asks "the open round is finished first" 0 "round 1 is finished first, then the server stops" c drain
asks "a pause on top of it is for the next start" 0 "is paused after its restart" c pause
touch "$dir/go"
wait_end c
equal "drained: exit code" 0 "$rc"
for i in 0 1; do
  wait_for "client c$i to hear of it" in_log "c$i" "the server is draining: the server stops; reconnecting in"
  check "client c$i waits" running "c$i"
done
start_server c
equal "the round that was open is committed" 1 "$(status_of c rounds_committed)"
wait_for "the pause" in_phase c PAUSED
asks "goes on" 0 "resumed: the federation continues with round 2" c resume
wait_for "the second round" at_round c 2
for i in 0 1; do
  wait_end "c$i"
  equal "client c$i ends well" 0 "$rc"
done
stop c

### SIGTERM does not wait for the round, which goes on with the next start
rm -f "$dir/go"
server d "rounds: 1"
for i in 0 1; do slow_client "d$i"; done
wait_for "the first attempt" training_of d 1 1
stop d
equal "exit code on SIGTERM in a round" 0 "$rc"
for i in 0 1; do
  wait_for "client d$i to hear of it" in_log "d$i" "the server is draining: the server is stopping; reconnecting in"
done
touch "$dir/go"
start_server d
wait_for "the round" at_round d 1
equal "it was the same attempt" "1.1" "$(attempts d)"
for i in 0 1; do wait_end "d$i"; done
stop d

### Usage
says "a reason that is too long is refused" 2 "at most 300" \
  "$build/flctl" pause --reason "$(printf '%0301d' 0)"
asks "no server" 3 "no fl-serverd" c pause
finish
