#!/usr/bin/env bash
# What the operator of a client lets a server ask for: how few samples and steps an update is made of,
# how large the model is, in how many rounds of a day it trains. Both sides say what was refused.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
synthetic "$dir/data" 3
again="reconnect: {first: 50ms, longest: 200ms, after_refusal: 24h}"
refuses() { # client, text, limits, lines of YAML…
  start_client "$1" "$dir/data/client-000" "$again" ${3:+"limits: {$3}"} "${@:4}"
  wait_for "the server to read what $1 refuses" in_log srv "client '$1' cannot take part: $2"
  has_line "$1 says it too" "$dir/$1.log" "cannot take part in this federation, leaving: $2"
  wait_for "$1 to be away for long" in_log "$1" "reconnecting in"
  lacks_line "$1 trained nothing" "$dir/$1.log" "trained round"
  stop "$1"
}

### An update of one sample nearly is that sample
write_server srv "rounds: 1" "model: {preset: dnn60}" "training: {epochs: 0, steps: 1, batch_size: 1}" \
  "round: {start_clients: 1}"
start_server srv
refuses one "an update would use 1 samples"
refuses step "an update would take 1 steps, fewer than limits.least_steps of this client, 2" "least_samples: 1, least_steps: 2"
refuses large "the server's model has " "least_samples: 1, largest_model: 1K"

### A program has to tell how many samples it has, before it trains and in its result
cat >"$dir/few.py" <<'PY'
import json, shutil, sys
task = json.load(open(sys.argv[1]))
shutil.copy(task["model"], task["result_model"])
json.dump({"samples": 3, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
PY
refuses silent "limits.least_samples of this client is 5, and its training program does not report how many samples" \
  "least_samples: 5" "trainer: command" "command: {program: [\"$python\", \"$dir/few.py\", \"{task}\"]}"
start_client bold "$dir/data/client-001" "$again" "limits: {least_samples: 1}"
wait_for "a round with the one that allows it" at_round srv 1
stop bold
stop srv

### What its result says is compared, too
write_server many "rounds: 1" "model: {preset: dnn60}" "round: {start_clients: 1}"
start_server many
start_client boasts "$dir/data/client-000" "$again" "limits: {least_samples: 5}" "trainer: command" \
  "command: {program: [\"$python\", \"$dir/few.py\", \"{task}\"], samples: 100}"
wait_for "its program to say what it has" in_log boasts \
  "an update of 3 samples, fewer than limits.least_samples of this client, 5: the update is not sent"
wait_for "the server to read that" in_log many "an update of 3 samples, fewer than limits.least_samples of this client, 5"
lacks_line "its update is not kept" "$dir/boasts.log" "trained round"
stop boasts
stop many

### Rounds of a day
write_server day "rounds: 5" "model: {preset: dnn60}" "strategy: {fraction: {fraction: 1}}" \
  "round: {start_clients: 2, min_responders: 1, lost_grace: 1s}"
start_server day
start_client some "$dir/data/client-001" "$again" "limits: {rounds_per_day: 2}"
start_client all "$dir/data/client-002" "$again"
wait_for "it to leave" in_log some "leaving until tomorrow: it trained in 2 rounds today"
wait_for "the server to read why" in_log day "it trained in 2 rounds today, its limit (limits.rounds_per_day)"
wait_for "the rounds of the other" at_round day 5
equal "it trained in two" 2 "$(grep -c "trained round" "$dir/some.log")"
stop some
run_client some
wait_for "a restart does not begin the day again" \
  eval '[ "$(grep -c "leaving until tomorrow" "$dir/some.log")" -ge 2 ]'
equal "it trained in two still" 2 "$(grep -c "trained round" "$dir/some.log")"
finish
