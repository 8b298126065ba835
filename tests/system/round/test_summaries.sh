#!/usr/bin/env bash
# Data summaries (FedMix) are taken back: one with an enormous value is left out, and that of a client that an operator drops,
# forgets, revokes or evicts is handed out no more: with the next round, after a restart, and after a kill in between.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 4 --seed 3
# client: a data summary that was made before, of one mean with values of 3e38, which is finite and spoils all training
poison() {
  mkdir -p "$dir/$1.state"
  "$python" - <<'PY' | "$build/tests/system/keep_summary" "$dir/$1.state"
import struct, sys
values, classes = 60, 10
body = b"FLMX" + struct.pack("<3I", values, classes, 1)
body += struct.pack("<%df" % (values + classes), *([3e38] * values + [1.0] + [0.0] * (classes - 1)))
sys.stdout.buffer.write(body)
PY
}
# name, lines of YAML…: of four clients, of which the last one has the false summary
fed() {
  local name=$1
  shift
  write_server "$name" "seed: 4" "model: {preset: dnn60}" "training: {learning_rate: 0.02}" \
    "strategy: {solver: fedmix, fraction: {fraction: 1}}" "$@"
  start_server "$name" || finish
}
clients() { # server: a0 to a3 for server a
  local i
  poison "${1}3"
  for i in 0 1 2 3; do start_client "$1$i" "$dir/data/client-00$i"; done
}
# server, client: what `flctl summaries` says of it
summary_of() { ctl "$1" summaries --json | json "[s['state'] for s in d if s['client'] == '$2'][0]"; }
sections() { "$python" "$srcdir/tests/system/container.py" "$1"; } # file
# server, clients…: the collection on the disk is that of their summaries and of no other
collects() {
  local name=$1 c
  shift
  for c in "$@"; do sections "$dir/$name.state/summaries/$c.summary"; done >"$dir/want"
  sections "$dir/$name.state/summaries/fixed" >"$dir/found"
  cmp "$dir/found" "$dir/want"
}

### Out of the range of the others
fed a "rounds: 2" "round: {start_clients: 4, min_clients: 4, min_responders: 4}"
clients a
wait_for "rounds with a false summary" at_round a 2
for i in 0 1 2 3; do wait_end "a$i"; done
has_line "the log names client, value and bound" "$dir/a.log" \
  "data summary of client 'a3' left out: its largest value 3e+38 is above"
has_line "its client says so" "$dir/a3.log" "the server does not distribute the data summary of this client"
lacks_line "the others have nothing to say" "$dir/a0.log" "the server does not distribute the data summary of this client"
check "the others are collected" collects a a0 a1 a2
equal "the list says what became of it" "left out: above the bound (limits.summary_range)" "$(summary_of a a3)"
equal "and of the others" "handed out" "$(summary_of a a0)"
check "for people" ctl a summaries
has_line "a table with a line for each" "$dir/check.out" "3e+38"
stop a

### Without a bound it spoils the training, until an operator drops it
fed b "rounds: 3" "round: {start_clients: 4, min_clients: 4, min_responders: 4, retry: 20ms}" "limits: {summary_range: 0}"
clients b
wait_for "the training to diverge" in_phase b PAUSED
equal "it is handed out" "handed out" "$(summary_of b b3)"
check "the operator drops it" ctl b summaries drop b3
check "it is out of the collection" collects b b0 b1 b2
has_line "the log says so" "$dir/b.log" "the data summary of client 'b3' is dropped by the operator"
says "not twice" 1 "there is no data summary of client 'b3'" "$build/flctl" --state-dir "$dir/b.state" summaries drop b3
has_line "and in the audit" "$dir/b.log" "audit: "
check "the line names the command" grep -q "audit: .*summaries drop.*b3" "$dir/b.log"
ctl b resume >/dev/null
wait_for "the rounds without it" at_round b 3
for i in 0 1 2 3; do wait_end "b$i"; done
equal "its client took part" "4, 4, 4" "$(ctl b rounds --last 0 --json | json '", ".join(str(r["responders"]) for r in d)')"
equal "dropped" "dropped" "$(summary_of b b3)"
check "every number of the model is finite" ctl b export --output "$dir/b.safetensors"
check "finite" finite "$dir/b.safetensors"
### A server that was killed in the middle: between removing a client's file and making the collection again
kill_hard b
rm "$dir/b.state/summaries/b1.summary"
start_server b
check "the next start finishes it" collects b b0 b2
lacks_line "it was not damaged" "$dir/b.log" "is damaged and quarantined"
### Another bound
stop b
sed -i 's/summary_range: 0/summary_range: 5/' "$dir/b.yaml"
start_server b
check "another bound makes the same of these" collects b b0 b2
check "a client is forgotten" ctl b clients forget b0
check "and its summary with it" collects b b2
check "its file too" test ! -e "$dir/b.state/summaries/b0.summary"
stop b
equal "the server ends well" 0 "$rc"

### Revoked, and evicted: of an evicted client its record stays, its summary goes
joined() { # server, client
  ctl "$1" invite "$2" >"$dir/line" 2>/dev/null
  write_client "$2" "$dir/data/client-00${2: -1}" "exit_when_done: no" "$3"
  sed -i '/^insecure:/d' "$dir/$2.yaml"
  check "$2 joins" "$build/fl-clientd" --join "$dir/$2.yaml" <"$dir/line"
  run_client "$2"
}
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
write_server c "listen: [\"127.0.0.1:$port\"]" "seed: 4" "rounds: 3" "model: {preset: dnn60}" \
  "training: {learning_rate: 0.02}" "strategy: {solver: fedmix, fraction: {fraction: 1}}" \
  "round: {start_clients: 4, min_clients: 2, min_responders: 2, retry: 20ms}" "limits: {summary_range: 0}"
sed -i '/^insecure:/d' "$dir/c.yaml"
check "init" "$build/fl-serverd" --init "$dir/c.yaml"
start_server c || finish
poison c3
for i in 0 1 2 3; do joined c "c$i" "name: c$i"; done
wait_for "the training to diverge" in_phase c PAUSED
check "its author is revoked" ctl c revoke c3 --yes --reason "false data"
kill_hard c
sed -i 's/start_clients: 4/start_clients: 2/' "$dir/c.yaml"
start_server c
removed() { [ ! -e "$dir/c.state/summaries/c3.summary" ] && collects c c0 c1 c2; }
wait_for "a kill behind the answer takes nothing back" removed
check "another is evicted" ctl c evict c2 --reason "moves"
evicted() { [ ! -e "$dir/c.state/summaries/c2.summary" ] && collects c c0 c1; }
wait_for "its summary to be removed" evicted
equal "its record stays" 1 "$(ctl c clients --json | json 'sum(l["name"] == "c2" for l in d)')"
check "a client is disabled" ctl c disable c1
check "its summary stays" collects c c0 c1
check "until it is enabled" ctl c enable c1
ctl c resume >/dev/null
wait_for "the rounds without them" at_round c 3
for i in 0 1; do # What it was given last is what was made last.
  sections "$dir/c$i.state/summaries.bin" >"$dir/found"
  check "c$i has fetched the new collection" cmp "$dir/want" "$dir/found"
done
for i in 0 1 2 3; do stop "c$i"; done
stop c
equal "c: the server ends well" 0 "$rc"
finish
