#!/usr/bin/env bash
# What a client tells the owner of its device, by the page of its HTTP port, /api/v1/tasks, fl-clientd --status and
# systemd: after rounds, after a restart, without an HTTP port, with a program that fails, without a server, stopped.
# In headless Chromium too, where there is one.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib/chromium.sh
. "$srcdir/tests/lib/chromium.sh"
synthetic "$dir/data" 3 --seed 3

get() { # name of a client, path: the body to $dir/body, the status to stdout
  "$python" - "$(http_port "$1")" "$2" "$dir/body" <<'PY'
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=600)
c.request("GET", sys.argv[2])
r = c.getresponse()
open(sys.argv[3], "wb").write(r.read())
print(r.status)
PY
}
status() { "$build/fl-clientd" --status "${@:2}" "$dir/$1.yaml"; }           # name, options…
exits() { status "$1" >/dev/null 2>&1; [ $? -eq "$2" ]; }                    # name, exit code
shows() { status "$1" 2>&1 | grep -qF -- "$2"; }                             # name, text
of_tasks() { status "$1" --format json | json "$2"; }                        # name, expression

write_server srv "model: {preset: dnn60}" "round: {start_clients: 2, min_responders: 2, retry: 20ms}" "rounds: 3" \
  "evaluation: {clients: yes}"
start_server srv
write_client c0 "$dir/data/client-000" "http: {listen: [\"127.0.0.1:0\"]}" "exit_when_done: no" \
  "limits: {rounds_per_day: 1000, upload_rate: 100 MB/s}" "when: {hours: [\"00:00-24:00\"], load_below: 100000}"

### A client that does not run
says "it does not run" 2 "no client runs with the state folder '$dir/c0.state': start it" "$build/fl-clientd" --status "$dir/c0.yaml"
says "a format" 2 "--format: expected text or json" "$build/fl-clientd" --status --format xml "$dir/c0.yaml"
says "a format of nothing" 2 "--format requires --status" "$build/fl-clientd" --format json "$dir/c0.yaml"
says "another command" 2 "--status can be combined with --format only" "$build/fl-clientd" --status --check-config "$dir/c0.yaml"

### Three rounds, in the words of the page, the terminal and systemd
notify_socket
run_client c0
start_client c1 "$dir/data/client-001" "exit_when_done: no"
wait_for "three rounds" at_round srv 3
wait_for "the verdict on the last one" shows c0 "last task: round 3, accepted."
equal "it works" 0 "$(status c0 >"$dir/text"; echo $?)"
has_line "the federation" "$dir/text" "This device takes part in federation 'integ' as 'c0'. Last task, of "
has_line "what leaves the device" "$dir/text" "The data itself stays on this device: it sends changes of the model"
has_line "the last task" "$dir/text" "train, send all layers"
has_line "totals" "$dir/text" "selected 3 times, 3 results accepted, 0 rejected, 0 tasks failed"
has_line "a limit" "$dir/text" "1000 (limits.rounds_per_day)"
has_line "hours" "$dir/text" "00:00-24:00 (when.hours)"
equal "three tasks to train, the newest first, each with bytes and an end" "[3, 2, 1] True" \
  "$(of_tasks c0 '"%s %s" % ([t["round"] for t in d["tasks"] if t["kind"] == "train"], all(t["bytes_down"] > 1000 and
  t["bytes_up"] > 1000 and t["ended_ms"] >= t["began_ms"] and t["result"] == "accepted" for t in d["tasks"] if t["kind"] == "train"))')"
check "evaluations are tasks, too" of_tasks c0 'any(t["kind"] == "evaluate" and t["result"] == "sent" for t in d["tasks"])'
check "bytes of tasks are among the totals" of_tasks c0 'sum(t["bytes_up"] for t in d["tasks"]) <= d["totals"]["bytes_up"]'
equal "the tasks as a document" 200 "$(get c0 /api/v1/tasks)"
equal "it is that of --status" "$(of_tasks c0 'd["tasks"]')" "$(json 'd["tasks"]' <"$dir/body")"
equal "the page" 200 "$(get c0 /)"
cp "$dir/body" "$dir/page.html"
for text in '<h1>This device</h1>' 'last task: round 3, accepted.</p>' 'train, send all layers</td>' 'The last 50 tasks are kept, also over a restart.' \
  '<dt>Certificate until</dt><dd>none' 'limits.upload_rate'; do
  has_line "the page has $text" "$dir/page.html" "$text"
done
lacks_line "no links to pages that are not there" "$dir/page.html" 'href="/clients"'
sentence=$(of_tasks c0 'd["now"]')
wait_for "the sentence in systemd's STATUS" grep -qxF "STATUS=$sentence" "$dir/notify.log"
has_line "the same on the page" "$dir/page.html" "$sentence"
equal "without an HTTP port" 0 "$(status c1 >/dev/null; echo $?)"

### In a browser
if [ "$has_chromium" = 1 ]; then
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$srcdir/tools:$srcdir/tests/libfl/page" "$python" - \
    "http://127.0.0.1:$(http_port c0)/" "$axe" >"$dir/out" 2>&1 <<'PY'
import sys, browser
from page_browser import accessible, rule
b = browser.Browser()
try:
    b.open(sys.argv[1])
    heads = b.run('Array.from(document.querySelectorAll("h1,h2")).map(h => h.textContent).join("|")')
    rule("its headings", heads == "This device|Last tasks|Limits in force", heads)
    rows = b.run('document.querySelectorAll("#task-table tbody tr").length')
    rule("a table row for each task", rows >= 3, rows)
    accessible(b, "the client's page")
    b.size(320)
    accessible(b, "the client's page, narrow")
    rule("narrow without scrolling", b.run("document.documentElement.scrollWidth") <= 320)
    rule("the console is empty", not b.console, b.console)
finally:
    b.close()
PY
  equal "the browser's program ends" "$?" 0
  browser_rules
else
  echo "chromium is not there: the page was not opened in a browser"
fi

### A restart keeps the history
stop c0
equal "its exit code" 0 "$rc"
run_client c0
wait_for "it to be connected" exits c0 0
equal "the tasks of before" "[3, 2, 1]" "$(of_tasks c0 '[t["round"] for t in d["tasks"] if t["kind"] == "train"]')"
equal "and the totals" 3 "$(of_tasks c0 'd["totals"]["selected"]')"

### Without a server
stop srv
wait_for "it to need its owner" exits c0 1
check "it names the server and what to do" shows c0 "Not connected to "
check "what to do" shows c0 "next: If it lasts: check the network of this device"
wait_for "the error" of_tasks c0 'd["needs_owner"] and len(d["errors"]) > 0'
stop c0
check "stopped" exits c0 2
stop c1

### A program that fails, and what it prints with markup
write_server bad "model: {preset: dnn60}" "round: {start_clients: 2, min_responders: 1, retry: 20ms}" "rounds: 2"
start_server bad
printf '#!/bin/sh\necho "<script>alert(1)</script>" >&2\nexit 1\n' >"$dir/fails.sh"
chmod +x "$dir/fails.sh"
start_client m0 "" "http: {listen: [\"127.0.0.1:0\"]}" "exit_when_done: no" "trainer: command" \
  "command: {program: [\"$dir/fails.sh\"], samples: 100}"
start_client m1 "$dir/data/client-001" "exit_when_done: no"
wait_for "a failed task" shows m0 "failed: "
equal "its page" 200 "$(get m0 /)"
has_line "the text is escaped" "$dir/body" "&lt;script&gt;alert(1)&lt;/script&gt;"
lacks_line "and no tag" "$dir/body" "<script>alert"
check "the failure is a task and an error" of_tasks m0 'd["totals"]["failed"] > 0 and any("alert" in e["text"] for e in d["errors"])'

### A damaged history is none; the client runs
stop m0
printf x >"$dir/m0.state/tasks.bin"
run_client m0
wait_for "it to be connected" exits m0 0
has_line "the log says so" "$dir/m0.log" "the history of tasks for the owner of this device begins again"
stop m0
stop m1
stop bad
finish
