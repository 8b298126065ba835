#!/usr/bin/env bash
# AdaFL through the daemons: the clients of each round follow the growing fraction exactly
# (gamma_t = min(end, start + step * floor((t - 1) / every))), attention is a
# distribution whatever happens, and the bytes are those of the schedule.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
n=10
synthetic "$dir/data" "$n" --seed 3
clients=$(seq 0 $((n - 1)))
folder() { printf '%s/data/client-%03d' "$dir" "$1"; }

# start end step every, rounds: numbers of selected clients, one a round
schedule() {
  "$python" - "$n" "$@" <<'PY'
import sys
from fractions import Fraction as F
n, start, end, step, every, rounds = (F(a) for a in sys.argv[1:])
def k(t):  # llround: halves go up
    return int(n * min(end, start + step * ((t - 1) // every)) + F(1, 2))
print(*(k(t) for t in range(1, int(rounds) + 1)))
PY
}
# server, strategy, algorithm, rounds
federation() {
  local name=$1 i
  write_server "$name" "rounds: $4" "model: {preset: mlr60}" "algorithm: $3" "strategy: {$2}" \
    "training: {epochs: 0, steps: 5}" "round: {start_clients: $n}"
  start_server "$name"
  for i in $clients; do start_client "$name-$i" "$(folder "$i")" "name: c$i"; done
  wait_for "the rounds of $name" at_round "$name" "$4"
  ctl "$name" rounds --last 0 --json >"$dir/$name.rounds.json"
  ctl "$name" clients --json >"$dir/$name.clients.json"
  stop "$name"
  for i in $clients; do wait_end "$name-$i"; done
}
selected() { json '" ".join(str(r["selected"]) for r in d)' <"$dir/$1.rounds.json"; }
attention_is_a_distribution() { # server
  equal "$1: attention sums to 1" True \
    "$(json 'abs(sum(c["score"] for c in d) - 1) < 1e-9 and all(c["score"] > 0 for c in d)' <"$dir/$1.clients.json")"
}

### The steps of AdaFL, shortened: three rounds each instead of 200
federation steps "fraction: {start: 0.1, end: 0.5, step: 0.1, every: 3}" adafl 17
equal "clients per round follow the schedule" "$(schedule 1/10 1/2 1/10 3 17)" "$(selected steps)"
equal "the cumulative units too" "$((3 * (1 + 2 + 3 + 4) + 5 * 5))" \
  "$(json 'sum(r["selected"] for r in d)' <"$dir/steps.rounds.json")"
equal "bytes: one model per unit" "$((3 * (1 + 2 + 3 + 4) + 5 * 5)) units of 2440 bytes" \
  "$(json '"%d units of %d bytes" % (sum(r["uplink_bytes"] for r in d) // 2440, 2440)' <"$dir/steps.rounds.json")"
attention_is_a_distribution steps
equal "attention has moved from the shares of the data" True \
  "$(json 'any(abs(c["score"] - c["samples"] / sum(x["samples"] for x in d)) > 1e-6 for c in d)' <"$dir/steps.clients.json")"
equal "counters of the clients add up" "$((3 * (1 + 2 + 3 + 4) + 5 * 5))" \
  "$(json 'sum(c["accepted"] for c in d)' <"$dir/steps.clients.json")"

### Steps that do not end on the last value, and fractions that are no whole number of clients: rounded, halves up
federation uneven "fraction: {start: 0.15, end: 0.8, step: 0.25, every: 2}" adafl 9
equal "the last step is cut at the end" "$(schedule 3/20 4/5 1/4 2 9)" "$(selected uneven)"

### alpha = 1: attention stays the shares of the data
federation fixed "selection: {alpha: 1}, fraction: {start: 0.3, end: 0.6, step: 0.3, every: 2}" adafl 6
equal "alpha 1 leaves attention alone" True \
  "$(json 'all(abs(c["score"] - c["samples"] / sum(x["samples"] for x in d)) < 1e-9 for c in d)' <"$dir/fixed.clients.json")"

### With layer-wise uploads, and with a client that dies
federation both "fraction: {start: 0.5, end: 1, step: 0.5, every: 2}, upload: {n: 1}" adafl+fedldf 4
equal "schedule" "$(schedule 1/2 1 1/2 2 4)" "$(selected both)"
equal "one model a round, and 4 bytes per unit and client" True \
  "$(json 'all(r["uplink_bytes"] == 2440 + 4 * r["selected"] for r in d)' <"$dir/both.rounds.json")"
attention_is_a_distribution both

write_server lossy "rounds: 0" "model: {preset: mlr60}" "algorithm: adafl" \
  "strategy: {fraction: {start: 1, end: 1, step: 0, every: 1}}" \
  "round: {start_clients: $n, lost_grace: 100ms}"
start_server lossy
for i in $clients; do start_client "lossy-$i" "$(folder "$i")" "name: c$i"; done
wait_for "two rounds" at_round lossy 2
kill_hard lossy-4
kill_hard lossy-7
before=$(status_of lossy rounds_committed)
wait_for "rounds without them" at_round lossy $((before + 3))
ctl lossy clients --json >"$dir/lossy.clients.json"
attention_is_a_distribution lossy
kill_hard lossy
start_server lossy
wait_for "rounds after a kill" at_round lossy $((before + 5))
ctl lossy clients --json >"$dir/lossy.clients.json"
attention_is_a_distribution lossy
stop lossy
finish
