#!/usr/bin/env bash
# Ten thousand readers of the event stream: those within the limits get it, the others are answered 503 or refused, the server
# keeps few descriptors for them, and federation, flctl and the HTTP port go on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
n=10000
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge $((n + 100)) ] || skip "only $(ulimit -Hn) descriptors for the test"
synthetic "$dir/data" 1 --seed 3
write_server srv "model: {preset: dnn60}" "rounds: 1000000" "round: {retry: 20ms}" "http: {listen: [\"127.0.0.1:0\"]}"
start_server srv || finish
start_client c "$dir/data/client-000"
rounds() { ctl srv status --json | json "d['rounds_committed']"; }
more() { [ "$(rounds)" -gt "$before" ]; }
goes_on() { # name
  before=$(rounds)
  wait_for "$1" more
}
goes_on "rounds before"
port=$(grep -oE 'http_port=[0-9]+' "$dir/srv.log" | tail -n 1 | cut -d= -f2)
descriptors() { find "/proc/${pid_of[srv]}/fd" -mindepth 1 -maxdepth 1 | wc -l; }
idle=$(descriptors)
cat >"$dir/many.py" <<'PY'
"""Opens the streams from many addresses, and counts what each got first. Keeps those that are open."""
import collections, errno, resource, selectors, socket, sys

port, n = int(sys.argv[1]), int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard == resource.RLIM_INFINITY else min(hard, n + 100), hard))
counts = collections.Counter()
waits = selectors.DefaultSelector()
open_ones = []
ASK = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"


def result(s, what):
    waits.unregister(s)
    counts[what] += 1
    if what == "200":
        open_ones.append(s)
    else:
        s.close()


def look(timeout):
    for key, events in waits.select(timeout):
        s = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                s.send(ASK)
                waits.modify(s, selectors.EVENT_READ)
                continue
            data = s.recv(65536)
        except OSError:
            result(s, "refused")
            continue
        result(s, data[9:12].decode() if data.startswith(b"HTTP/1.1 ") else "refused")


for i in range(n):
    s = socket.socket()
    s.setblocking(False)
    s.bind((f"127.0.{1 + i % 64}.1", 0))
    if s.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
        counts["refused"] += 1
        s.close()
        continue
    waits.register(s, selectors.EVENT_WRITE)
    if i % 50 == 0:
        look(0)
while waits.get_map():
    look(60)
print("all", " ".join(f"{k}={v}" for k, v in sorted(counts.items())), flush=True)
sys.stdin.read()
PY
mkfifo "$dir/hold"
"$python" "$dir/many.py" "$port" $n <"$dir/hold" >"$dir/many.out" 2>&1 &
pid_of[many]=$!
exec 9>"$dir/hold"
wait_for "all of them" grep -q '^all' "$dir/many.out"
count() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" "$dir/many.out"; }
opened=$(count 200)
check "some streams are open" test "${opened:-0}" -gt 0
check "at most the limit" test "${opened:-0}" -le 64
check "others are answered 503" test "$(count 503)" -gt 0
check "few descriptors: $(descriptors), $idle before" test "$(descriptors)" -le $((idle + 340))
goes_on "rounds beside them"
check "the server says so once a while" test "$(grep -c 'http' "$dir/srv.log")" -le 200
exec 9>&-
wait_end many
answered() { "$python" -c "import sys, urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/readyz', timeout=60)"; }
wait_for "the port to answer again" answered
goes_on "rounds behind them"
finish
