#!/usr/bin/env bash
# Data that changes while a client runs: it is read again before the next task, the server has the new
# number of samples, and data that is gone is not trained on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3
count() { "$build/fl-data" inspect "$1" --json | json 'd["parts"][0]["samples"]'; }
put() { # from, to: as one that writes beside and renames
  local f
  for f in "$1"/*; do cp "$f" "$2/.new" && mv "$2/.new" "$2/$(basename "$f")"; done
}
samples_of() { ctl "$1" clients --json | json "[c['samples'] for c in d if c['name'] == '$2'][0]"; }
says_samples() { [ "$(samples_of "$1" "$2")" = "$3" ]; }
trained_by() { grep -c "trained round" "$dir/$1.log"; }
trained_more() { [ "$(trained_by "$1")" -gt "$2" ]; }
mkdir "$dir/here" "$dir/still" "$dir/away"
put "$dir/data/client-000" "$dir/here"
put "$dir/data/client-000" "$dir/still"
before=$(count "$dir/data/client-000") after=$(count "$dir/data/client-001")
check "the two differ" test "$before" != "$after"

write_server srv "rounds: 0" "model: {preset: dnn60}" "strategy: {fraction: {fraction: 1}}" \
  "round: {start_clients: 2, min_responders: 1, lost_grace: 1s}"
start_server srv
start_client a "$dir/here"
start_client b '' "data: {path: \"$dir/still\", reload: never}"
wait_for "a round" at_round srv 1
equal "the server knows how many samples" "$before" "$(samples_of srv a)"

### Other data
put "$dir/data/client-001" "$dir/here"
put "$dir/data/client-001" "$dir/still"
wait_for "it to be read again" in_log a "changed and was read again: samples=$after (before: "
wait_for "the server to know" says_samples srv a "$after"
wait_for "training on it" in_log a ": samples=$after steps="
lacks_line "data that is never looked at again" "$dir/b.log" "read again"
equal "has the samples that it had" "$before" "$(samples_of srv b)"

### No data
mv "$dir/here" "$dir/away/here"
mv "$dir/still" "$dir/away/still"
wait_for "the client to say so" in_log a "the data in '$dir/here' is missing: not training until it is back"
wait_for "the server to say so" in_log srv "client 'a' cannot take part: its data is missing"
trained=$(trained_by a)
n=$(status_of srv rounds_committed)
wait_for "rounds without it" at_round srv $((n + 5))
equal "it trains nothing" "$trained" "$(trained_by a)"
check "the client stays" running a
lacks_line "the other one trains on what it read" "$dir/b.log" "is missing"
mv "$dir/away/here" "$dir/here"
wait_for "the data to be back" in_log a "the data in '$dir/here' is back"
wait_for "it to train again" trained_more a "$trained"

### Data that cannot be read
for f in "$dir/here"/train*; do printf x >"$f"; done
wait_for "the client to say why" in_log a "the data changed and cannot be read, not training"
put "$dir/data/client-000" "$dir/here"
wait_for "the good data" in_log a "changed and was read again: samples=$before (before: $after)"
finish
