#!/usr/bin/env bash
# The HTTP port of a running server and client: metrics that promtool accepts, health, documents with pages and tags,
# events as a list and as a stream, bad requests and readers that do harm.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3 --seed 3

# One request: the status to stdout, the body to $dir/body, the header fields to $dir/head.
cat >"$dir/get.py" <<'PY'
import http.client, sys
port, path, folder = sys.argv[1:4]
fields = dict(f.split(": ", 1) for f in sys.argv[4:])
method = fields.pop("method", "GET")
c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
c.request(method, path, headers=fields)
r = c.getresponse()
open(folder + "/body", "wb").write(r.read())
open(folder + "/head", "w").write(str(r.headers))
print(r.status)
PY
get() { # name of a daemon, path, fields… as "Field: value"
  "$python" "$dir/get.py" "$(http_port "$1")" "$2" "$dir" "${@:3}"
}
is() { # name of the check, daemon, path, status, text of the body, fields…
  equal "$1: the status" "$4" "$(get "$2" "$3" "${@:6}")"
  has_line "$1" "$dir/body" "$5"
}
value() { sed -n "s/^fl_$1 //p" "$dir/body"; } # series, of the body

write_server a "model: {preset: dnn60}" "round: {start_clients: 3, min_responders: 3, retry: 20ms}" "rounds: 3" \
  "evaluation: {clients: yes}" "listen: [\"unix:$dir/a.sock\"]" "http: {listen: [\"127.0.0.1:0\"]}"
start_server a
wait_for "the HTTP port" test -n "$(http_port a)"
has_line "the log names the port" "$dir/a.log" "HTTP port on '127.0.0.1:0', for every reader without a token"

### Before the first round every series is there
is "health" a /healthz 200 ok
is "readiness" a /readyz 200 ready
equal "metrics" 200 "$(get a /metrics)"
cp "$dir/body" "$dir/first"
for series in 'rounds_committed_total' 'updates_excluded_total{reason="norm_cap"}' 'work_failures_total{kind="commit"}' \
  'wire_bytes_total{direction="up"}' 'clients{state="quarantined"}' 'work_duration_seconds_bucket{kind="commit",le="0.005"}'; do
  equal "$series begins with zero" 0 "$(value "$(sed 's/[]\/$*.^[]/\\&/g' <<<"$series")")"
done
check "at most 300 series" test "$(grep -vc '^#' "$dir/body")" -le 300

### After three rounds
for i in 0 1 2; do
  start_client "c$i" "$dir/data/client-00$i" "http: {listen: [\"127.0.0.1:0\"]}" "exit_when_done: no"
done
wait_for "three rounds" at_round a 3
equal "metrics" 200 "$(get a /metrics)"
cp "$dir/body" "$dir/last"
equal "committed rounds" 3 "$(value rounds_committed_total)"
equal "attempts" 3 "$(value round_attempts_total)"
equal "connected clients" 3 "$(value clients_connected)"
equal "work that succeeded" 3 "$(value 'work_attempts_total{kind="commit"}')"
equal "no failed work" 0 "$(value 'work_failures_total{kind="commit"}')"
equal "durations are counted" 3 "$(value 'work_duration_seconds_count{kind="aggregate"}')"
equal "as many uplink bytes as flctl tells" "$(status_of a uplink_bytes)" \
  "$(($(value 'uplink_payload_bytes_total{kind="update"}') + $(value 'uplink_payload_bytes_total{kind="feedback"}')))"
check "a federation's name is a label" grep -q '^fl_federation_info{version="[^"]*",federation="integ",' "$dir/last"
equal "the same series as at the start" "$(sed -n 's/^\(fl_[^ ]*\) .*/\1/p' "$dir/first" | sed 's/algorithm=.*//')" \
  "$(sed -n 's/^\(fl_[^ ]*\) .*/\1/p' "$dir/last" | sed 's/algorithm=.*//')"
equal "OpenMetrics" 200 "$(get a /metrics "Accept: application/openmetrics-text;version=1.0.0")"
has_line "its type" "$dir/head" "application/openmetrics-text; version=1.0.0"
equal "its end" "# EOF" "$(tail -n 1 "$dir/body")"
equal "metrics of a client" 200 "$(get c0 /metrics)"
cp "$dir/body" "$dir/client"
equal "results that were accepted" 3 "$(value 'results_total{result="accepted"}')"
equal "its connection" 1 "$(value connected)"
for direction in up down; do
  check "bytes $direction of its connection" test "$(value "wire_bytes_total{direction=\"$direction\"}")" -gt 1000
done
is "health of a client" c0 /healthz 200 ok
is "readiness of a client" c0 /readyz 200 ready

### Documents: those of flctl
equal "status" 200 "$(get a /api/v1/status)"
equal "the keys of flctl status" "$(ctl a status --json | json '" ".join(d)')" "$(json '" ".join(d)' <"$dir/body")"
equal "rounds" 200 "$(get a /api/v1/rounds)"
equal "the rounds of flctl, newest first" "$(ctl a rounds --json | json 'd[::-1]')" "$(json 'd["rounds"]' <"$dir/body")"
# Of three clients the worst tenth is the lowest one, so that the highest follows from mean and median.
check "the accuracies of clients: mean, deviation, worst tenth and median, in the database too" "$python" - "$dir/body" "$dir/a.state/federation.db" <<'PY'
import json, sqlite3, sys
names = ["client_accuracy_" + name for name in ("mean", "std", "worst_tenth", "median")] + ["client_loss_mean"]
rows = dict((row[0], list(row[1:])) for row in sqlite3.connect(sys.argv[2]).execute(f"SELECT round, {', '.join(names)} FROM round"))
rounds = json.load(open(sys.argv[1]))["rounds"]
assert len(rounds) == 3
for r in rounds:
    mean, std, lowest, median, loss = values = [r[name] for name in names]
    highest = 3 * mean - lowest - median
    assert 0 <= lowest <= median <= highest + 1e-9 <= 1 + 2e-9 and loss > 0, r
    assert abs(std - (sum((x - mean) ** 2 for x in (lowest, median, highest)) / 3) ** 0.5) < 1e-9, r
    # JSON has ten digits.
    assert all(abs(x - y) < 1e-8 for x, y in zip(rows[r["round"]], values, strict=True)), (rows, values)
assert any(r["client_accuracy_std"] > 0 for r in rounds), rounds
PY
equal "as text" 3 "$(ctl a rounds --last 0 | grep -c ' worst_tenth=')"
equal "in CSV" 4 "$(ctl a rounds --last 0 --format csv | cut -d, -f"$(ctl a rounds --format csv | head -n 1 | tr , '\n' | grep -n client_accuracy_median | cut -d: -f1)" | grep -c .)"
has_line "in the status" <(ctl a status) "of clients  "
equal "a round's page" 200 "$(get a /rounds/2)"
has_line "has them" "$dir/body" "client_accuracy_worst_tenth"
equal "a page" 200 "$(get a '/api/v1/rounds?limit=2')"
equal "two rounds, and where the next are" "[3, 2] /api/v1/rounds?before=2&limit=2" \
  "$(json '"%s %s" % ([r["round"] for r in d["rounds"]], d["next"])' <"$dir/body")"
equal "the next page" 200 "$(get a '/api/v1/rounds?before=2&limit=2')"
equal "the last round, and no next" "[1] None" "$(json '"%s %s" % ([r["round"] for r in d["rounds"]], d["next"])' <"$dir/body")"
equal "one round" 200 "$(get a /api/v1/rounds/2)"
equal "it is that one" 2 "$(json 'd["round"]' <"$dir/body")"
tag=$(sed -n 's/^ETag: //p' "$dir/head")
equal "an unchanged document" 304 "$(get a /api/v1/rounds/2 "If-None-Match: $tag")"
is "a round that is not there" a /api/v1/rounds/9 404 "round 9 was not committed"
is "no round at all" a /api/v1/rounds/x 404 "expected the number of a round"
equal "clients" 200 "$(get a '/api/v1/clients?limit=2&state=connected')"
equal "two clients by name" "['c0', 'c1'] /api/v1/clients?after=c1&limit=2&state=connected" \
  "$(json '"%s %s" % ([c["name"] for c in d["clients"]], d["next"])' <"$dir/body")"
equal "the next client" 200 "$(get a '/api/v1/clients?after=c1&limit=2&state=connected')"
equal "the last client, and no next" "['c2'] None" "$(json '"%s %s" % ([c["name"] for c in d["clients"]], d["next"])' <"$dir/body")"
equal "one client" 200 "$(get a /api/v1/clients/c1)"
equal "as flctl shows it" "$(ctl a clients --json | json '[{k: c[k] for k in c if k != "last_seen_ms"} for c in d if c["name"] == "c1"][0]')" \
  "$(json '{k: d[k] for k in d if k != "last_seen_ms"}' <"$dir/body")"
is "a client that is not there" a /api/v1/clients/nobody 404 "no client 'nobody' is known"
is "a name with markup" a '/api/v1/clients/%3Cb%3E' 400 "'<b>' is no name of a client"
has_line "as text" "$dir/head" "text/plain"
equal "the phases of a round" 200 "$(get a /api/v1/rounds/2)"
check "are as long as the round, give or take a few milliseconds" "$python" - "$dir/body" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
phases = ("selecting", "training", "planning", "uploading", "aggregating", "evaluating")
assert abs(sum(r[p + "_ms"] for p in phases) - (r["ended_ms"] - r["started_ms"])) < 50, r
assert r["population"] == 3 and r["training_ms"] > 0, r
PY
equal "participations" 200 "$(get a '/api/v1/participations?limit=2')"
equal "the newest round first, its clients by name, with their layers" \
  "[(3, 'c0', 'accepted', True), (3, 'c1', 'accepted', True)]" \
  "$(json '[(p["round"], p["client"], p["state"], len(p["asked"]) == len(d["layers"]) > 0) for p in d["participations"]]' <"$dir/body")"
equal "as flctl shows them" "$(ctl a participations --last 2 --json | json d)" "$(json 'd["participations"]' <"$dir/body")"
next=$(json 'd["next"]' <"$dir/body")
equal "the next page" 200 "$(get a "$next")"
equal "it goes on" "[(3, 'c2'), (2, 'c0')]" "$(json '[(p["round"], p["client"]) for p in d["participations"]]' <"$dir/body")"
equal "of a client" 200 "$(get a '/api/v1/participations?client=c1')"
equal "all of its rounds, and no next" "[3, 2, 1] None" "$(json '"%s %s" % ([p["round"] for p in d["participations"]], d["next"])' <"$dir/body")"
equal "of a round" 200 "$(get a '/api/v1/participations?round=2')"
equal "its bytes are those of the round" "$(ctl a rounds --json | json '"%d %d" % (d[1]["uplink_bytes"], d[1]["downlink_bytes"])')" \
  "$(json '"%d %d" % (sum(p["uplink_bytes"] for p in d["participations"]), sum(p["downlink_bytes"] for p in d["participations"]))' <"$dir/body")"
equal "of no client" 200 "$(get a '/api/v1/participations?client=nobody')"
equal "an empty list" "[]" "$(json 'd["participations"]' <"$dir/body")"
is "of a client and a round" a '/api/v1/participations?client=c1&round=2' 400 "expected one of them"
is "of a name with markup" a '/api/v1/participations?client=%3Cb%3E' 400 "'<b>' is no name of a client"
is "the page of a client" a /clients/c1 200 'id="parts"'
is "its earlier rounds" a '/clients/c1?before=1' 200 "Nothing is recorded."
is "the page of a round" a /rounds/2 200 'href="/clients/c2"'
is "a place that is no number" a '/rounds/2?before=x' 400 "before: expected a number"
equal "the overview" 200 "$(get a /)"
has_line "has the grid of clients and layers" "$dir/body" 'id="c-grid"'
has_line "and the time of the phases" "$dir/body" "Round time by phase"
lacks_line "and no mixing weights, which the algorithm has not" "$dir/body" 'id="c-mixing"'
equal "events" 200 "$(get a '/api/v1/events?limit=1000&kind=round')"
check "a round's commit is an event" grep -q 'round 3 attempt 1: .*COMMITTING' "$dir/body"
is "a bad parameter" a '/api/v1/clients?limit=0' 400 "limit: expected a number from 1 to 1000, found '0'"
is "an unknown parameter" a '/api/v1/status?x=1' 400 "'x' is not known"
is "another path" a /nowhere 404 "expected one of /, /clients, "
is "another method" a /metrics 405 "read-only" "method: POST"

### A stream gets what happens from then on
"$python" - "$(http_port a)" >"$dir/stream" 2>&1 <<'PY' &
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 600)
s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
while True:
    data = s.recv(65536)
    if not data:
        break
    sys.stdout.write(data.decode())
    sys.stdout.flush()
PY
pid_of[stream]=$!
wait_for "the stream" grep -q 'text/event-stream' "$dir/stream"
stop c2
wait_for "the event" grep -q '^event: client' "$dir/stream"
check "with its document" grep -q '^data: {.*"client":"c2"' "$dir/stream"

### Readers that do harm change nothing
cat >"$dir/harm.py" <<'PY'
import socket, sys
port = int(sys.argv[1])
kept = []
for i in range(200):
    s = socket.create_connection(("127.0.0.1", port), 60)
    s.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n" if i % 2 else
              b"GET /api/v1/clients HTTP/1.1\r\nHost: localhost\r\n\r\n")
    kept.append(s)
s = socket.create_connection(("127.0.0.1", port), 60)
try:
    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + 100000 * b"a" + b"\r\n\r\n")
    s.recv(100)
except OSError:
    pass
refused = 0
for s in kept[1::2]:
    refused += b" 503 " in s.recv(100)
print("streams refused:", refused)
sys.stdout.flush()
sys.stdin.read()
PY
mkfifo "$dir/hold"
"$python" "$dir/harm.py" "$(http_port a)" <"$dir/hold" >"$dir/harm.out" 2>&1 &
pid_of[harm]=$!
exec 9>"$dir/hold"
wait_for "200 readers" grep -q 'streams refused' "$dir/harm.out"
has_line "streams beyond 64 are refused" "$dir/harm.out" "streams refused: 37"
is "others are answered" a /readyz 200 ready
equal "flctl too" 3 "$(status_of a rounds_committed)"
equal "metrics too" 200 "$(get a /metrics)"
equal "the streams are counted" 64 "$(value http_streams)"
exec 9>&-
wait_end harm

### The pages for people
is "the status page" a / 200 '<h1>Status</h1>'
has_line "its policy" "$dir/head" "Content-Security-Policy: default-src 'none'"
has_line "the sentence of flctl why" "$dir/body" "$(ctl a why | sed -n '1s/&/\&amp;/g; 1p' | cut -c1-40)"
is "the clients" a '/clients?sort=lost&down=1' 200 'href="/clients/c2"'
is "a filter that none matches" a '/clients?filter=%3Cb%3E' 200 'value="&lt;b&gt;"'
is "one client" a /clients/c1 200 '<h1>c1</h1>'
is "a client that is not known" a /clients/nobody 404 "no client 'nobody' is known"
is "a name with markup" a '/clients/%3Cscript%3E' 404 "is known: /clients lists them"
is "one round" a /rounds/2 200 '<h1>Round 2</h1>'
is "a round that was not committed" a /rounds/99 404 "none of the last"
is "an unknown parameter" a '/clients?x=1' 400 "query parameter 'x' is not known at /clients"
is "a name of another site that resolves to this host" a / 403 "answers to localhost and to addresses only" "Host: evil.example"
is "this host by name" a /healthz 200 ok "Host: localhost:7880"

### A token, and settings that are refused
echo 0123456789abcdef0123456789abcdef >"$dir/token"
write_server b "model: {preset: dnn60}" "listen: [\"unix:$dir/b.sock\"]" "http: {listen: [\"127.0.0.1:0\"], token_file: \"$dir/token\"}"
start_server b
is "without the token" b /metrics 401 "Authorization: Bearer TOKEN"
is "a probe" b /healthz 200 ok
is "pages need it, too" b / 401 "Authorization: Bearer TOKEN"
equal "with it" 200 "$(get b /metrics "Authorization: Bearer $(cat "$dir/token")")"
stop b
bad() { # name, exit code, text, line of YAML
  write_server "$1" "model: {preset: dnn60}" "listen: [\"unix:$dir/$1.sock\"]" "$4"
  says "$1" "$2" "$3" "$build/fl-serverd" "$dir/$1.yaml"
}
bad taken 6 "is used by another process" "http: {listen: [\"127.0.0.1:$(http_port a)\"]}"
says "a check finds it, too" 6 "address in use by another process" "$build/fl-serverd" --check-config "$dir/taken.yaml"
bad open 3 "is not on loopback" "http: {listen: [\"*:0\"]}"
bad no-token 3 "cannot read '$dir/none'" "http: {listen: [\"127.0.0.1:0\"], token_file: \"$dir/none\"}"

### A backup is noted
equal "no backup" 0 "$(get a /metrics >"$dir/status" && value backup_timestamp_seconds)"
check "a backup" "$build/flctl" --state-dir "$dir/a.state" backup "$dir/backup"
backed_up() { get a /metrics >"$dir/status" && [ "$(value backup_timestamp_seconds | cut -d. -f1)" -ge "$((EPOCHSECONDS - 600))" ]; }
wait_for "its time" backed_up

### promtool
promtool=$(command -v promtool) || promtool=${FL_PROMTOOL:-}
if [ -n "$promtool" ]; then
  for text in first last client; do
    check "promtool check metrics: $text" bash -c "\"$promtool\" check metrics <\"$dir/$text\""
  done
  check "the alert rules" "$promtool" check rules "${FL_SRCDIR:-$PWD}/deploy/prometheus/fl-alerts.yaml"
  check "each alert fires on its fault, and only then" "$promtool" test rules "${FL_SRCDIR:-$PWD}/tests/system/http/alerts_test.yaml"
else
  echo "promtool (package prometheus) is not installed: metrics and alerts were not checked by it"
fi
stop a
equal "the exit code of the server" 0 "$rc"
finish
