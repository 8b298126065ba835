#!/usr/bin/env bash
# Another process holds a lock on the server's database: nothing is lost, the log and flctl why say it, the server stays ready to
# be asked, and the rounds go on once it is released.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 1 --seed 3
write_server srv "model: {preset: dnn60}" "rounds: 1000000" "round: {retry: 20ms}" "http: {listen: [\"127.0.0.1:0\"]}"
start_server srv || finish
start_client c "$dir/data/client-000"
ready() { # the code of /readyz, and what it says in $dir/ready
  "$python" - "http://127.0.0.1:$(http_port srv)/readyz" >"$dir/ready" <<'PY'
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=600)
except urllib.error.HTTPError as failed:
    answer = failed
print(answer.status, answer.read().decode())
PY
  cut -d' ' -f1 "$dir/ready"
}
is_ready() { [ "$(ready)" = "$1" ]; }
rounds() { ctl srv status --json | json "d['rounds_committed']"; }
more() { [ "$(rounds)" -gt "$before" ]; }
before=0
wait_for "a round" more
cat >"$dir/lock.py" <<'PY'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=600, isolation_level=None)
c.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
c.execute("ROLLBACK")
PY
mkfifo "$dir/hold"
"$python" "$dir/lock.py" "$dir/srv.state/federation.db" <"$dir/hold" >"$dir/lock.out" 2>&1 &
pid_of[lock]=$!
exec 9>"$dir/hold"
wait_for "the lock" grep -q locked "$dir/lock.out"
before=$(rounds)
logged() { grep -qF "database is locked" "$dir/srv.log"; }
wait_for "the log to say so" logged
has_line "as a failure of the server's own work, with its file" "$dir/srv.log" "work failed: "
ctl srv why >"$dir/why.out"
has_line "flctl why says it" "$dir/why.out" "locked"
wait_for "/readyz to say that it is not ready" is_ready 503
has_line "and where to look" "$dir/ready" "the newest work of the server failed and is retried: see flctl why"
check "no round meanwhile" test "$(rounds)" -le $((before + 1))
check "the server runs" running srv
check "the client runs" running c
equal "it is no failure of the client" 0 "$(ctl srv clients --json | json "d[0]['lost'] + d[0]['rejected']")"
exec 9>&-
wait_end lock
before=$(rounds)
wait_for "rounds again" more
wait_for "/readyz to say that it is ready again" is_ready 200
finish
