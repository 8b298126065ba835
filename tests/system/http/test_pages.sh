#!/usr/bin/env bash
# The status pages of a running federation with 10 000 clients in headless Chromium: headings, console, axe, charts with
# their tables, and every client by the keyboard alone; each page has at most 60 KB compressed. Skipped without
# chromium; without axe-core ($FL_AXE, or npm that can fetch it) only that part.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/chromium.sh
. "$srcdir/tests/lib/chromium.sh"
[ "$has_chromium" = 1 ] || skip "chromium (package chromium) is not there"
synthetic "$dir/data" 3 --seed 3

### Three rounds, and 10 000 more clients in the records that the server starts again from
write_server a "algorithm: fedldf" "model: {preset: dnn60}" "round: {start_clients: 3, min_responders: 3, retry: 20ms, lost_grace: 0s}" \
  "rounds: 3" "listen: [\"unix:$dir/a.sock\"]" "http: {listen: [\"127.0.0.1:0\"]}"
start_server a
for i in 0 1 2; do
  start_client "c$i" "$dir/data/client-00$i" "exit_when_done: no"
done
wait_for "three rounds" at_round a 3
stop a
"$python" - "$dir/a.state/federation.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
columns = [r[1] for r in db.execute("PRAGMA table_info(client)")]
row = dict(zip(columns, db.execute("SELECT * FROM client WHERE name = 'c0'").fetchone()))
for i in range(10000):
    row.update(id=1000 + i, name="x%05d" % i, samples=600 + i, sum=None)
    db.execute("INSERT INTO client VALUES (%s)" % ", ".join("?" * len(columns)), [row[c] for c in columns])
db.commit()
PY
equal "the records are there" 0 "$?"
start_server a
wait_for "the HTTP port" test -n "$(http_port a)"
root="http://127.0.0.1:$(http_port a)"

### What a reader downloads
for path in / /clients /clients/c0 /clients/x09999 /rounds/2; do
  "$python" - "$root$path" >"$dir/size" <<'PY'
import sys, urllib.request, zlib
with urllib.request.urlopen(sys.argv[1], timeout=600) as answer:
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    print(len(zlib.compress(answer.read())))
PY
  equal "$path: it is answered with a strict policy" 0 "$?"
  check "$path: at most 60 KB compressed" test "$(cat "$dir/size")" -le 60000
done

### What a browser makes of it
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$srcdir/tools:$srcdir/tests/libfl/page" "$python" \
  "$srcdir/tests/system/http/pages_running.py" "$root" "$axe" >"$dir/out" 2>&1
equal "the program ends" "$?" 0
browser_rules
finish
