#!/usr/bin/env bash
# Takes the pictures of docs/ and README.md of a federation that runs for it, in the build folder:
#   ../docs/status-page.sh [DIR]      into DIR (docs/ by default)
# status-page.png is the overview, watch.png a screen of `flctl watch`, state-*.png the top of the page in each state.
# Eight clients train on the digits of deploy/data/optdigits; AdaFL selects them, FedLDF their layers. Needs chromium.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../tests/system/lib.sh"
out=${1:-$srcdir/docs}
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$srcdir/tools"
clients=(edge-000 edge-001 edge-002 edge-003 edge-004 edge-005 edge-006 edge-007)
url() { echo "http://127.0.0.1:$(grep -oE 'http_port=[0-9]+' "$dir/$1.log" | tail -n 1 | cut -d= -f2)/"; } # server
picture() { "$python" "$srcdir/tools/browser.py" "$@" || { note_failure "picture: $*"; finish; }; }
state() { picture "$(url "$2")" "$out/state-$1.png" 1100 340; } # name, server
why_has() { ctl "$1" why | grep -qF -- "$2"; }            # server, text

# name, lines of YAML…
serve() {
  local name=$1
  shift
  write_server "$name" "listen: [\"unix:$dir/$name.sock\"]" "http: {listen: [\"127.0.0.1:0\"]}" \
    "model: {input: [1, 8, 8], layers: [\"flatten\", \"dense 64\", \"relu\", \"dense 32\", \"relu\", \"dense 10\"]}" \
    "evaluation: {every: 1, data: \"$dir/data/server\"}" "$@"
  sed -i 's/^federation:.*/federation: digits/' "$dir/$name.yaml"
  start_server "$name" || finish
  wait_for "the HTTP port" test "$(url "$name")" != http://127.0.0.1:/
}
start_edge() { # number…
  local i
  for i in "$@"; do start_client "edge-00$i" "$dir/data/client-00$i" "exit_when_done: no"; done
}

# `flctl watch` in a terminal: the browser's font of equal width is the terminal.
watch_picture() {
  COLUMNS=80 LINES=24 ctl digits watch >"$dir/screen" && "$python" - "$dir/screen" >"$dir/watch.html" <<'PY'
import html, sys
print("""<!DOCTYPE html><meta charset="utf-8"><title>flctl watch</title><style>
html { background: #16191f; } body { margin: 0; padding: 14px 18px; width: max-content; }
pre { margin: 0; color: #e4e7ec; font: 14px/18px "DejaVu Sans Mono", monospace; } b { color: #7fd18b; font-weight: normal; }
</style><pre><b>$ flctl watch</b>""")
print(html.escape(open(sys.argv[1]).read()) + "</pre>")
PY
  picture "$dir/watch.html" "$out/watch.png" 712 600
}

# The page of a server that ends while a browser shows it: its script says so.
unreachable() {
  "$python" - "$(url digits)" "${pid_of[digits]}" "$out/state-unreachable.png" <<'PY' || { note_failure "unreachable"; finish; }
import os, signal, sys, time
import browser
b = browser.Browser()
try:
    b.size(1100, 100)
    b.media(prefers_color_scheme="light")
    b.open(sys.argv[1])
    os.kill(int(sys.argv[2]), signal.SIGKILL)
    while not b.run("document.body.classList.contains('stale')"):
        time.sleep(0.2)
    b.picture(sys.argv[3], 340)
finally:
    b.close()
PY
}

"$build/fl-data" split --input "$srcdir/deploy/data/optdigits" --output "$dir/data" --clients ${#clients[@]} \
  --method dirichlet --alpha 1 --seed 1 --min-samples 10 >"$dir/data.out" || finish

### Empty, waiting, running
serve digits "rounds: 60" "seed: 1" "algorithm: adafl+fedldf" "training: {epochs: 1, batch_size: 10, learning_rate: 0.05}" \
  "strategy: {fraction: {start: 0.5, end: 1.0, step: 0.1, every: 8}, upload: {share: 0.3}}" \
  "round: {start_clients: ${#clients[@]}, population: ${#clients[@]}, train_deadline: 10m, lost_grace: 10m}"
state empty digits
start_edge 0 1 2 3 4
wait_for "five clients" connected digits 5
state waiting digits
start_edge 5 6 7
wait_for "40 rounds" at_round digits 40
# A stopped client holds a round open while pictures are taken.
kill -STOP "${pid_of[edge-007]}"
wait_for "a round that waits for the client" why_has digits edge-007
picture "$(url digits)" "$out/status-page.png" 1100 1400
state running digits
watch_picture

### Paused behind the round, finished, unreachable
check "pause" ctl digits pause --reason "network maintenance until 18:00"
kill -CONT "${pid_of[edge-007]}"
wait_for "the pause" in_phase digits PAUSED
state paused digits
check "resume" ctl digits resume
wait_for "the last round" at_round digits 60
wait_for "the end" in_phase digits STOPPED
state finished digits
unreachable
for name in "${clients[@]}"; do stop "$name"; done
wait_end digits

### An error: training that diverges
serve error "training: {learning_rate: 1000, momentum: 0.9, weight_decay: 0.1, steps: 100, epochs: 0, batch_size: 10}" \
  "round: {start_clients: 2, min_clients: 2, min_responders: 2, retry: 20ms}"
start_edge 0 1
wait_for "a diverged attempt" why_has error diverged
state error error
check "status-page.png is below 300 KB" test "$(stat -c %s "$out/status-page.png")" -lt 300000
check "the states are below 600 KB together" test "$(cat "$out"/state-*.png | wc -c)" -lt 600000
finish
