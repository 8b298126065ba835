#!/usr/bin/env bash
# Ending and coming back: SIGTERM in every state, kill -9 of the server in every phase and of clients
# within a round. The federation goes on after the last committed round and ends with a whole model.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"

synthetic "$dir/data" 3 --seed 3
data() { echo "$dir/data/client-00$1"; }

part_state() { # server, client, state
  ctl "$1" clients --json | json "any(c['name'] == '$2' and c['state'] == '$3' for c in d)"
}
stops_cleanly() { # name, when
  stop "$1"
  equal "exit code of $1, stopped $2" 0 "$rc"
}
rounds_are() { # server, number: each committed once, in order
  equal "rounds of $1 are 1 to $2, each once" "$(seq -s ' ' "$2")" \
    "$(ctl "$1" rounds --last 0 --json | json '" ".join(str(r["round"]) for r in d)')"
}

### SIGTERM without clients, while training, and with clients that wait for a server. A training of so
### many steps ends by itself long after the patience of this test.
write_server long "rounds: 2" "model: {preset: dnn60}" "training: {epochs: 0, steps: 1000000000}" \
  "round: {start_clients: 2}"
start_server long
stops_cleanly long "idle"
start_server long
start_client a "$(data 0)"
start_client b "$(data 1)"
wait_for "a trains" part_state long a selected
wait_for "b trains" part_state long b selected
stops_cleanly b "while it trains"
stops_cleanly long "while clients train"
has_line "a client is told that the server stops" "$dir/a.log" "the server is stopping"
stops_cleanly a "while it trains without a server"
# The log of before holds such a line already.
: >"$dir/a.log"
start_client a "$(data 0)"
wait_for "a looks for the server" in_log a "no connection to"
stops_cleanly a "while it looks for a server"

### SIGTERM and SIGINT while uploads are on their way. Clients that stand still keep the phase.
wide='model: {input: [60], layers: [dense 2000, relu, dense 2000, relu, dense 10]}'
write_server up "rounds: 3" "$wide" "training: {epochs: 0, steps: 1}" "algorithm: fedldf" \
  "strategy: {fraction: {fraction: 1}, upload: {n: 3}}" "round: {start_clients: 3, lost_grace: 1m}"
start_server up

# server, text [signal [to whom [function that starts it all]]]: sends the signal as soon as a line
# of the server's log that comes from now on holds the text
struck=no
strike_on() {
  local name=$1 text=$2 signal=${3:-KILL} whom=${4:-$1} line follower
  struck=no
  exec 7< <(exec tail -n +$(($(wc -l <"$dir/$name.log") + 1)) -s 0.02 -f "$dir/$name.log" 2>/dev/null)
  follower=$!
  # Whoever has been waiting for the follower may start now.
  [ $# -lt 5 ] || "$5"
  while read -r -t "$patience" line <&7; do
    case $line in
      *"$text"*)
        kill -s "$signal" "${pid_of[$whom]}"
        struck=yes
        break
        ;;
    esac
  done
  kill "$follower" 2>/dev/null
  exec 7<&-
  if [ "$struck" = no ]; then
    checks=$((checks + 1))
    note_failure "$name never said '$text'"
    finish
  fi
}
go() { for i in 0 1 2; do start_client "u$i" "$(data $i)"; done; }
strike_on up "-> UPLOADING" STOP up go
for i in 0 1 2; do kill -STOP "${pid_of[u$i]}"; done
kill -CONT "${pid_of[up]}"
stops_cleanly up "while clients upload"
for i in 0 1 2; do kill -CONT "${pid_of[u$i]}"; done
before=$(grep -c ' committed: ' "$dir/up.log")
start_server up
for i in 0 1 2; do stops_cleanly "u$i" "in the middle of a round"; done
for i in 0 1 2; do run_client "u$i"; done
wait_for "the rest of the rounds" at_round up 3
rounds_are up 3
check "nothing committed was done again" test "$before" -lt 3
stop up INT
equal "SIGINT ends the server too" 0 "$rc"
for i in 0 1 2; do wait_end "u$i"; done
start_server up
check "a finished federation stays finished" at_round up 3
stop up

### kill -9 of the server: between rounds, and in every phase
phases=(SELECTING TRAINING PLANNING UPLOADING AGGREGATING EVALUATING COMMITTING IDLE)
# Without an end: how many rounds pass between a start and the next kill depends on the machine.
write_server hard "rounds: 0" "$wide" "training: {epochs: 0, steps: 2}" "algorithm: fedldf" \
  "strategy: {fraction: {fraction: 1}, upload: {n: 1}}" "round: {start_clients: 3, lost_grace: 1m}" "log_level: debug" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server hard
hit=''
go() { for i in 0 1 2; do start_client "h$i" "$(data $i)"; done; }
strike_on hard "-> ${phases[0]}" KILL hard go
for k in "${!phases[@]}"; do
  [ "$k" -eq 0 ] || strike_on hard "-> ${phases[k]}"
  wait_end hard 2>/dev/null
  equal "the server was killed" 137 "$rc"
  # Where it really was: the signal comes a moment after the line.
  hit+=" $(sed -n 's/.* -> \([A-Z]*\),.*/\1/p' "$dir/hard.log" | tail -n 1)"
  before=$(sed -n 's/.* round \([0-9]*\) committed: .*/\1/p' "$dir/hard.log" | tail -n 1)
  if [ "$k" -lt $((${#phases[@]} - 1)) ]; then
    start_server hard
  else # The last time it is asked before any client can be back.
    for i in 0 1 2; do kill_hard "h$i"; done
    start_server hard
    check "a new start goes on after the last committed round" at_round hard "${before:-0}"
    for i in 0 1 2; do run_client "h$i"; done
  fi
done
echo "killed in:$hit"
wait_for "more rounds in spite of ${#phases[@]} kills" at_round hard $((${before:-0} + 3))
# Only what is committed counts: without clients nothing is added while it is looked at.
stops_cleanly hard "when clients are in a round"
for i in 0 1 2; do kill_hard "h$i"; done
start_server hard
rounds_are hard "$(ctl hard rounds --last 0 --json | json "len(d)")"
equal "every client answered in every round" "True" \
  "$(ctl hard rounds --last 0 --json | json 'all(r["selected"] == 3 and r["responders"] == 3 for r in d)')"
equal "no update counts twice: bytes of each round are exact" "True" \
  "$(ctl hard rounds --last 0 --json | json \
    'all(r["uplink_bytes"] == r["uplink_bytes_full"] // 3 + r["feedback_bytes"] for r in d)')"
check "the model is exported" ctl hard export --output "$dir/hard.safetensors"
check "every number of it is finite" finite "$dir/hard.safetensors"
stops_cleanly hard "when all are gone"

### kill -9 of clients within a round
write_server clients "rounds: 0" "model: {preset: dnn60}" "training: {epochs: 100}" \
  "round: {start_clients: 3, lost_grace: 300ms, min_responders: 1}"
start_server clients
go() { for i in 0 1 2; do start_client "k$i" "$(data $i)"; done; }
strike_on clients "round 1 attempt 1: SELECTING -> TRAINING" KILL k0 go
wait_end k0 2>/dev/null
wait_for "the round goes on without k0" at_round clients 1
# All three again, then k1 is away for less and for more than lost_grace.
run_client k0
strike_on clients "3 clients have" KILL k1
wait_end k1 2>/dev/null
run_client k1
strike_on clients "3 clients have" KILL k1
kill_hard k2
wait_end k1 2>/dev/null
before=$(status_of clients rounds_committed)
wait_for "one client carries on" at_round clients $((before + 2))
kill_hard k0
rounds_are clients "$(ctl clients rounds --last 0 --json | json "len(d)")"
check "the model is exported" ctl clients export --output "$dir/clients.safetensors"
check "every number of it is finite" finite "$dir/clients.safetensors"
# The other two may have been ready before the signal came; k0 has much more to do.
equal "a lost client is counted" True \
  "$(ctl clients clients --json | json 'any(c["name"] == "k0" and c["lost"] > 0 for c in d)')"
stops_cleanly clients "at the end"

### kill -9 of a client that has a result: the result is sent after the next start
write_server kept "rounds: 1" "model: {preset: dnn60}" "training: {epochs: 300}" \
  "algorithm: fedldf" "strategy: {fraction: {fraction: 1}, upload: {n: 2}}" \
  "round: {start_clients: 2, lost_grace: 1m}"
start_server kept
start_client r0 "$(data 2)"
start_client r1 "$(data 0)" # has much more to do
wait_for "r0 has trained" in_log r0 "trained round 1"
kill_hard r0
run_client r0
wait_for "the round" at_round kept 1
equal "both responded" "2 2" \
  "$(ctl kept rounds --last 0 --json | json '"%d %d" % (d[0]["selected"], d[0]["responders"])')"
equal "r0 did not train twice" 1 "$(grep -c 'trained round' "$dir/r0.log")"
stops_cleanly kept "at the end"

### a damaged checkpoint: the newest good one before it is taken, the rounds after it run again
write_server torn "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 2}"
start_server torn
for i in 0 1; do start_client "t$i" "$(data $i)"; done
wait_for "three rounds" at_round torn 3
stop torn
for i in 0 1; do stop "t$i"; done
printf 'torn' >"$dir/torn.state/models/round-000003.safetensors"
write_server torn "rounds: 5" "model: {preset: dnn60}" "round: {start_clients: 2}"
start_server torn
has_line "it says so" "$dir/torn.log" "resuming from round 2, the newest"
for i in 0 1; do run_client "t$i"; done
wait_for "two more rounds" at_round torn 5
rounds_are torn 5
stops_cleanly torn "at the end"
finish
