#!/usr/bin/env bash
# flctl against a live server: each command for people and as JSON, errors and exit codes, and a model
# that any safetensors reader opens.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
flctl=$build/flctl
synthetic "$dir/data" 3 --seed 3
state=$dir/srv.state

### Command line
says "no command" 2 "expected a command" "$flctl"
says "two commands" 2 "status: unexpected argument 'why'" "$flctl" status why
says "a slip before an argument" 2 "unknown command 'rollbak', did you mean 'rollback'?" "$flctl" rollbak 3
says "too many arguments" 2 "rollback: unexpected argument '4'" "$flctl" rollback 3 4
says "a slip" 2 "unknown command 'round', did you mean 'rounds'?" "$flctl" round
says "no such option" 2 "try flctl --help" "$flctl" --nonsense status
says "no number" 2 "--last: expected a number, found 'few'" "$flctl" --last few rounds
says "help" 0 "exit codes: 0 done, 1 the call failed, 2 usage, 3 no server at the socket or address" "$flctl" --help
says "version" 0 "flctl " "$flctl" --version

### No server
for c in status why rounds clients export; do
  says "$c without a server" 3 "no fl-serverd at '$state/admin.sock'" \
    "$flctl" --state-dir "$state" --output "$dir/none.safetensors" "$c"
done
check "an export that failed leaves nothing" test -z "$(find "$dir" -name 'none.safetensors*')"
FL_ADMIN_SOCKET=$dir/env.sock says "the socket of the environment" 3 "'$dir/env.sock'" "$flctl" status

# What programs read does not go away; a new figure adds a key.
has_keys() { # name, keys, JSON of an object or of a list of them
  equal "$1: nothing published is missing" "" \
    "$(json '" ".join(sorted(set("'"$2"'".split()) - set(d[0] if isinstance(d, list) else d)))' <<<"$3")"
}

### A server that waits
write_server srv "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 3}" "strategy: {robust: {policy: krum, report: yes}}" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server srv
c() { # name, exit code, text, arguments…
  local name=$1 want=$2 text=$3
  shift 3
  says "$name" "$want" "$text" "$flctl" -d "$state" "$@"
}
c "nobody is here" 0 "clients     0 connected, 0 known" status
c "status for people" 0 "federation  integ (fl " status
c "status as JSON" 0 '"rounds_committed": 0' --json status
has_keys status "accuracy algorithm client_accuracy_mean client_accuracy_worst_tenth clients_connected clients_known downlink_bytes effective_clients federation feedback_bytes loss personal_accuracy personal_clients personal_mean phase received_accuracy received_mean round rounds_committed rounds_total self_weight uplink_bytes uplink_bytes_full uptime_ms version why wire_down_bytes wire_up_bytes" "$(ctl srv status --json)"
equal "not evaluated is null" "None None" "$(ctl srv status --json | json '"%s %s" % (d["accuracy"], d["loss"])')"
equal "nor is what only some algorithms measure" "[None, None, None, None, None, None, None]" \
  "$(ctl srv status --json | json '[d[k] for k in ("personal_accuracy", "personal_mean", "received_accuracy", "received_mean", "effective_clients", "self_weight", "client_accuracy_worst_tenth")]')"
equal "no rounds are an empty list" "[]" "$(ctl srv rounds --json | json d)"
equal "no clients are an empty list" "[]" "$(ctl srv clients --json | json d)"
c "why nothing happens" 0 "3" why
equal "why as JSON" "missing why" "$(ctl srv why --json | json '" ".join(sorted(d))')"
c "the first model can be exported" 0 "model after round 0" -o "$dir/zero.safetensors" export

### A server that has worked
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001" 'labels: {site: north, rack: "7"}'
start_client c2 "$dir/data/client-002" 'labels: {site: "south\tend"}'
wait_for "three rounds" at_round srv 3
for i in 0 1 2; do wait_end "c$i"; done
c "rounds for people" 0 "     3        3          3" rounds
c "clients that a robust rule would leave out, for people" 0 "left out by the robust rule (client, share used, score): c" rounds
equal "two of three, with share and score" "3 2 2 True" "$(ctl srv rounds --json | json \
  '"%d %d %d %s" % (len(d), d[0]["robust_out"], len(d[0]["robust_clients"]), all(c["used"] == 0 and c["score"] >= 1 for r in d for c in r["robust_clients"]))')"
equal "the newest two" "2 3" "$(ctl srv rounds --last 2 --json | json '" ".join(str(r["round"]) for r in d)')"
has_keys rounds "accuracy attempt capped client_accuracy_mean client_accuracy_median client_accuracy_std client_accuracy_worst_tenth client_loss_mean clipped downlink_bytes effective_clients ended_ms feedback_bytes influence left_out loss norm_ratio personal_accuracy personal_clients personal_mean received_accuracy received_mean responders robust_clients robust_out robust_used round selected self_weight share_capped started_ms train_loss uplink_bytes uplink_bytes_full wire_down_bytes wire_up_bytes" "$(ctl srv rounds --json)"
equal "rounds: sound values" True "$(ctl srv rounds --json | json \
  'all(0 < r["accuracy"] <= 1 and r["loss"] > 0 and r["ended_ms"] >= r["started_ms"] > 1.6e12 for r in d)')"
c "clients for people" 0 "c2 " clients
has_keys clients "accepted agent connected ineligible labels last_error last_error_ms last_loss last_seen_ms lost name rejected samples score selected share_capped state takeovers" "$(ctl srv clients --json)"
version=$("$flctl" --version | cut -d' ' -f2)
equal "the agent of each client as JSON" "fl-clientd $version" \
  "$(ctl srv clients --json | json '" ".join(sorted({c["agent"] for c in d}))')"
equal "and for people: of all of them" 3 "$("$flctl" -d "$state" clients | grep -c "^c[0-2] .*Z  fl-clientd $version\$")"
c "labels for people" 0 "labels site=north rack=7" clients
c "without control characters" 0 "labels site=south?end" clients
equal "labels as JSON" "{} {'site': 'north', 'rack': '7'} {'site': 'south\\tend'}" \
  "$(ctl srv clients --json | json '" ".join(str(c["labels"]) for c in sorted(d, key=lambda c: c["name"]))')"
equal "status sums the rounds" \
  "$(ctl srv rounds --json | json 'sum(r["uplink_bytes"] for r in d)')" "$(status_of srv uplink_bytes)"
c "why: the end" 0 "the federation is STOPPED: all 3 rounds are done" why
c "status: the end" 0 "phase       STOPPED, all 3 rounds are done" status
equal "status: the last round, none behind it" 3 "$(status_of srv round)"

### Forgetting
c "forget whom?" 2 "expected the name of a client, or --unseen-for" clients forget
c "no such client" 1 "no client 'nobody' is known" clients forget nobody
c "no span" 2 "--unseen-for: expected a duration such as 10s, at least 1ms, found 'long'" --unseen-for long clients forget
c "nobody is away for so long" 0 "0 clients forgotten" --unseen-for 30d clients forget
c "forget one" 0 "1 client forgotten" clients forget c1
c "that is a promise" 0 "the deletion is durable, also if the server is killed now" clients forget c2
names() { ctl srv clients --json | json '" ".join(sorted(x["name"] for x in d))'; }
equal "they are not known any more" "c0" "$(names)"
kill_hard srv
start_server srv
equal "nor after a kill" "c0" "$(names)"
c "as JSON" 0 '"forgotten": 0' --json --unseen-for 30d clients forget

### Killed before it is on disk: no answer, and the client is known again
mkfifo "$dir/hold"
cat >"$dir/hold.py" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open(sys.argv[2], "w").close()
sys.stdin.read()  # until it is killed
PY
"$python" "$dir/hold.py" "$state/federation.db" "$dir/held" <"$dir/hold" &
pid_of[hold]=$!
exec 8>"$dir/hold"
wait_for "the lock on the database" test -e "$dir/held"
"$flctl" -d "$state" clients forget c0 >"$dir/forget.out" 2>&1 &
pid_of[forget]=$!
nobody() { [ -z "$(names)" ]; }
wait_for "the server to forget it" nobody
kill_hard srv
wait_end forget
equal "the call failed" 1 "$rc"
check "without a promise" test -z "$(grep forgotten "$dir/forget.out")"
exec 8>&-
wait_end hold
start_server srv
equal "and it is known" "c0" "$(names)"

### An answer that is too long says so
"$python" - "$state/federation.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO change (round, generation, at_ms, name, before, after) VALUES (1000000, 9, 1, 'the model', '', ?)",
           ("1: " + "x" * 1000,))
columns = [(row[1], row[2]) for row in db.execute("PRAGMA table_info(abandoned)") if row[1] != "sum"]
values = {"generation": "0", "round": "i", "accuracy": "0.5", "robust_clients": "'%s'" % ("x" * 1000)}
db.execute("WITH RECURSIVE n (i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n WHERE i < 1036000)"
           " INSERT INTO abandoned (%s) SELECT %s FROM n" % (
               ", ".join(name for name, _ in columns),
               ", ".join(values.get(name, "NULL" if type == "REAL" else "1") for name, type in columns)))
db.commit()
PY
# On a machine so busy that this takes ten seconds, the server answers that its disk is slow: the command is repeated.
asked() { # exit code, text, arguments…
  local code=0
  "$flctl" -d "$state" "${@:3}" >"$dir/asked.out" 2>&1 || code=$?
  [ "$code" -eq "$1" ] && grep -qF -- "$2" "$dir/asked.out"
}
wait_for "the answer that more is not sent" asked 1 "the answer would be longer than the limit of 64 MB" --abandoned --last 0 rounds
wait_for "an answer that is shorter" asked 0 " 1036000 " --abandoned --last 2 rounds

### Export
c "export" 0 "$dir/m.safetensors: model after round 3, " -o "$dir/m.safetensors" export
# A sanitizer wants to be the first library itself.
if ! ldd "$build/flctl" | grep -qE 'lib(a|t|m)san' &&
   ${CC:-cc} -shared -fPIC -O1 -o "$dir/order.so" "$srcdir/tests/system/order.c" -ldl 2>"$dir/cc.out"; then
  FL_ORDER=$dir/order LD_PRELOAD=$dir/order.so c "export, watched" 0 "model after round 3" -o "$dir/w.safetensors" export
  equal "a model is synced, then renamed, then its folder synced" \
    "sync $dir/w.safetensors.tmp rename $dir/w.safetensors.tmp sync $dir" "$(paste -sd ' ' "$dir/order")"
fi
c "export as JSON" 0 '"round": 3' -j -o "$dir/n.safetensors" export
check "the same model twice is the same file" cmp "$dir/m.safetensors" "$dir/n.safetensors"
check "without leftovers" test -z "$(find "$dir" -name '*.safetensors.tmp')"
c "where nothing can be written" 1 "$dir/none/m.safetensors" -o "$dir/none/m.safetensors" export
mkfifo "$dir/pipe"
c "in place of something that is no file" 1 "'$dir/pipe' is not a regular file" -o "$dir/pipe" export
check "which is still there" test -p "$dir/pipe"
c "in place of a folder" 1 "'$dir/data' is not a regular file" -o "$dir/data" export
check "the tensors are named and whole" "$python" - "$dir/m.safetensors" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
(n,) = struct.unpack("<Q", raw[:8])
head = json.loads(raw[8 : 8 + n])
meta = head.pop("__metadata__")
assert meta["federation"] == "integ" and meta["round"] == "3", meta
assert {k: v["shape"] for k, v in head.items()} == {
    "fc1.weight": [20, 60], "fc1.bias": [20], "fc2.weight": [10, 20], "fc2.bias": [10]}, head
end = 0
for t in sorted(head.values(), key=lambda t: t["data_offsets"]):
    assert t["data_offsets"][0] == end, head
    end = t["data_offsets"][1]
assert 8 + n + end == len(raw)
PY
if "$python" -c 'import numpy' 2>/dev/null; then
  # The exported model itself, run in numpy, has the accuracy that the server reports.
  check "the model scores as reported" "$python" - "$dir" "$(status_of srv accuracy)" "$srcdir" <<'PY'
import sys
sys.path.insert(0, sys.argv[3] + "/deploy/examples")
sys.dont_write_bytecode = True
import numpy as np
from trainer_numpy import load_safetensors
m = load_safetensors(sys.argv[1] + "/m.safetensors")
x = np.load(sys.argv[1] + "/data/server/test-x.npy")
y = np.load(sys.argv[1] + "/data/server/test-y.npy")
h = np.maximum(x @ m["fc1.weight"].T + m["fc1.bias"], 0)
found = ((h @ m["fc2.weight"].T + m["fc2.bias"]).argmax(1) == y).mean()
assert abs(found - float(sys.argv[2])) < 2 / len(y), (found, sys.argv[2])
PY
else
  echo "skipped: $python has no numpy, the model was not run with it"
fi

### A full disk, a server that goes
"$flctl" -d "$state" clients >/dev/full 2>&1
equal "a full disk is told by the exit code" 1 $?
stop srv
c "a server that is gone" 3 "no fl-serverd at" status
### An instance of the unit's template
says "--instance names the socket of fl-serverd@NAME" 3 "/run/fl-serverd-no.such_one/admin.sock" "$flctl" --instance no.such_one status
says "a path is no instance" 2 "--instance: expected the NAME of fl-serverd@NAME, found '../x'" "$flctl" --instance ../x status
finish
