#!/usr/bin/env bash
# SCAFFOLD's control is the mean of the controls of the clients that are there: also after a client lost its
# folder, was forgotten, evicted or revoked, or the operator reset the controls.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3
# server, round, clients…: the sum in the checkpoint is that of the newest controls on the clients' disks
sums_up() {
  "$python" - "$dir" "$@" <<'PY'
import array, glob, os, struct, sys
dir, server, round, *clients = sys.argv[1:]
def floats(data):
    a = array.array("f")
    a.frombytes(data)
    return a
with open("%s/%s.state/models/round-%06d.control_sum.safetensors" % (dir, server, int(round)), "rb") as f:
    data = f.read()
total = floats(data[8 + struct.unpack("<Q", data[:8])[0]:])
sums = [0.0] * len(total)
for c in clients:
    files = glob.glob("%s/%s.state/keep/scaffold.control.*.keep" % (dir, c))
    newest = max(files, key=lambda p: int(p.split(".")[-2]))
    with open(newest, "rb") as f:
        own = floats(f.read()[4096:4096 + 4 * len(total)])
    sums = [s + x for s, x in zip(sums, own)]
largest = max(abs(s) for s in sums)
apart = max(abs(s - t) for s, t in zip(sums, total))
print("largest %g, apart %g" % (largest, apart))
sys.exit(not (largest > 0 and apart < 1e-4 * largest))
PY
}
goes_on() { # rounds, clients
  write_server fed "rounds: $1" "seed: 4" "model: {preset: dnn60}" "training: {learning_rate: 0.02}" \
    "algorithm: scaffold" "round: {start_clients: 1, min_clients: $2, min_responders: $2, lost_grace: 1s}"
  start_server fed || finish
}
ends() {
  wait_for "round $1" at_round fed "$1"
  stop fed
  for i in 0 1 2; do running "c$i" && stop "c$i"; done
}
goes_on 3 3
for i in 0 1 2; do start_client "c$i" "$dir/data/client-00$i"; done
ends 3
check "the sum is that of all controls" sums_up fed 3 c0 c1 c2

### A client loses its folder
rm -r "$dir/c2.state"
goes_on 6 3
for i in 0 1 2; do run_client "c$i"; done
ends 6
has_line "the server says that a control is lost" "$dir/fed.log" "client 'c2' lost its control, which is in the sum of controls"
has_line "and when another sum begins" "$dir/fed.log" "the server's sum of client state restarts at zero with round 5"
has_line "the client says what is lost" "$dir/c2.log" "but its client state 'scaffold.control' of that round is lost"
has_line "the others drop theirs" "$dir/c0.log" "dropping client state 'scaffold.control' of round 4"
check "after the loss it is the sum of all controls" sums_up fed 6 c0 c1 c2
equal "it is lost once" 1 "$(grep -c "lost its control" "$dir/fed.log")"

### A client is forgotten
goes_on 9 2
check "it is forgotten" ctl fed clients forget c2
for i in 0 1; do run_client "c$i"; done
ends 9
has_line "its control is in no later sum" "$dir/fed.log" "client 'c2' was forgotten, and its control is in the sum"
check "then it is the sum of those that are there" sums_up fed 9 c0 c1

### The operator's word, and a kill behind it
goes_on 11 2
says "it is answered when it is on disk" 0 "controls restart at zero with round 10" \
  "$build/flctl" --state-dir "$dir/fed.state" controls reset
kill_hard fed
goes_on 11 2
for i in 0 1; do run_client "c$i"; done
ends 11
has_line "a server that was killed goes on with it" "$dir/c1.log" "starts a new sum with round 10"
check "and it is the sum" sums_up fed 11 c0 c1

### Evicted and revoked clients leave the sum, a disabled one does not
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
tls() { # rounds, clients
  write_server tls "rounds: $1" "listen: [\"127.0.0.1:$port\"]" "seed: 4" "model: {preset: dnn60}" \
    "training: {learning_rate: 0.02}" "algorithm: scaffold" \
    "round: {start_clients: $2, min_clients: $2, min_responders: $2, lost_grace: 1s}"
  sed -i '/^insecure:/d' "$dir/tls.yaml"
}
until_round() { # round
  wait_for "round $1" at_round tls "$1"
  for i in 0 1 2; do running "t$i" && stop "t$i"; done
}
tls 2 3
check "init" "$build/fl-serverd" --init "$dir/tls.yaml"
start_server tls || finish
for i in 0 1 2; do
  ctl tls invite "t$i" >"$dir/line" 2>/dev/null
  write_client "t$i" "$dir/data/client-00$i" "exit_when_done: no"
  sed -i '/^insecure:/d' "$dir/t$i.yaml"
  check "t$i joins" "$build/fl-clientd" --join "$dir/t$i.yaml" <"$dir/line"
  run_client "t$i"
done
until_round 2
check "the sum is that of three clients" sums_up tls 2 t0 t1 t2
check "a client is disabled" ctl tls disable t1 --reason "in repair"
check "and enabled" ctl tls enable t1
check "another is evicted" ctl tls evict t2 --reason "moves"
wait_for "a new epoch" in_log tls "client 't2' was evicted, and its control is in the sum"
lacks_line "a disabled client is no reason" "$dir/tls.log" "'t1' was"
stop tls
tls 5 2
start_server tls || finish
for i in 0 1; do run_client "t$i"; done
until_round 5
has_line "the others drop theirs" "$dir/t0.log" "dropping client state 'scaffold.control' of round 2"
check "then it is the sum of the others" sums_up tls 5 t0 t1
equal "the client is evicted once" 1 "$(grep -c "'t2' was evicted, and its control" "$dir/tls.log")"
check "a client is revoked" ctl tls revoke t1 --yes --reason "stolen"
wait_for "a new epoch" in_log tls "client 't1' was forgotten, and its control is in the sum"
stop tls
tls 7 1
start_server tls || finish
run_client t0
until_round 7
check "then it is the sum of the one that remains" sums_up tls 7 t0
stop tls
equal "the server ends well" 0 "$rc"
finish
