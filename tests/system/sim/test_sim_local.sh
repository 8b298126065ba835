#!/usr/bin/env bash
# fl-sim run --local: the same experiment with fl-serverd and fl-clientd on this machine. Its rounds are those of the simulation; a
# run that is killed goes on; no process outlives it; what cannot be is found before a process starts.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
pid=''
trap 'kill -KILL $pid 2>/dev/null; end_all' EXIT
cd "$dir" || exit 99
"$build/fl-data" synthetic --output set --clients 1 --alpha 0 --beta 0 --seed 3 --test-share 0.3 >/dev/null
experiment() { # file, further lines
  local file=$1
  shift
  cat >"$file" <<END
server:
  model: {preset: dnn60}
  training: {epochs: 1, batch_size: 10, learning_rate: 0.05}
stop: {rounds: 5}
END
  printf '%s\n' "$@" >>"$file"
}
figures='["%d %d %d %.10g %.10g %.10g %d %d" % (r["round"], r["selected"], r["responders"], r["accuracy"], r["loss"], r["train_loss"], r["uplink_bytes"], r["downlink_bytes"]) for r in d]'
rounds_of() { # folder of a trial
  "$python" -c 'import json, sys; print(json.dumps([json.loads(line) for line in open(sys.argv[1])]))' "$1/rounds.jsonl" | json "$figures"
}
# Daemons of this test's folder
left() { pgrep -f "fl-(serverd|clientd) $dir/" || true; }

### All clients: the rounds of the simulation
experiment all.yaml "data: {set: synthetic, clients: 6, alpha: 0.5, beta: 0.5, seed: 3}" "trials: {seeds: [5]}" "sweep:" \
  "- {label: half, server: {algorithm: fedavg-0.5}}" "- {label: lean, server: {algorithm: lean}}" \
  "- {label: own, server: {algorithm: fedmcsa}, client: {data: {validation: 0.25}}}"
check "in the simulation" "$fl_sim" run all.yaml --quiet
check "with daemons" "$fl_sim" run all.yaml --quiet --local 6
for point in 1-half 2-lean 3-own; do
  equal "$point: the same rounds" "$(rounds_of "all.results/$point/seed-5")" "$(rounds_of "all.local/$point/seed-5")"
done
check "a table of them" "$fl_sim" table all.local
check "a page of them" test -s all.local/report.html
equal "nothing is left of the state" "" "$(find all.local -name '*.state')"
equal "no process is left" "" "$(left)"
check "what is finished is not run again" "$fl_sim" run all.yaml --quiet --local 6
says "one folder holds one kind of run" 1 "all.results" "$fl_sim" run all.yaml --local 6 --out all.results

### Killed, and stopped: the same command goes on
experiment long.yaml "data: {set: synthetic, clients: 3, alpha: 0.5, beta: 0.5}" "trials: {seeds: [1]}"
sed -i 's/rounds: 5/rounds: 400/' long.yaml
state=long.local/base/seed-1
some_rounds() { [ "$(wc -l <"$state/rounds.jsonl" 2>/dev/null)" -gt "$1" ]; }
"$fl_sim" run long.yaml --quiet --local 3 >long.log 2>&1 &
pid=$!
wait_for "some rounds" some_rounds 30
sockets=$(grep -rhoE --include='*.yaml' '/tmp/fl-sim\.[A-Za-z0-9]{6}' "$state" long.local | head -n 1)
check "its sockets are in a folder" test -d "$sockets"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
gone() { [ -z "$(left)" ]; }
wait_for "the daemons to be gone" gone
rm "$state/rounds.jsonl" # The next run creates it again, so that its rows are those of that run.
"$fl_sim" run long.yaml --quiet --local 3 >long.log 2>&1 &
pid=$!
wait_for "some more" some_rounds 60
kill -INT "$pid"
wait "$pid"
equal "an interrupt is not the end" 3 $?
equal "and leaves no process" "" "$(left)"
check "it goes on" "$fl_sim" run long.yaml --quiet --local 3
check "the sockets' folder of the killed run is gone" test ! -e "$sockets"
equal "with all rounds" 400 "$(wc -l <"$state/rounds.jsonl")"

### A stop rule
experiment stop.yaml "data: {set: synthetic, clients: 3, alpha: 0, beta: 0}" "trials: {seeds: [1]}"
sed -i 's/stop: .*/stop: {accuracy: 0.2}/' stop.yaml
check "it ends" "$fl_sim" run stop.yaml --quiet --local 3
equal "by the rule" "stopped accuracy" "$(json '"%s %s" % (d["ended"], d["reason"])' <"$(find stop.local -name summary.json)")"

### What cannot be
says "more clients than there are" 1 "the data has 3 clients, fewer than the 4 of --local" "$fl_sim" run long.yaml --local 4 --out bad
says "a round that never begins" 1 "add --set server.round.start_clients=2" \
  "$fl_sim" run long.yaml --local 2 --out bad --set server.round.start_clients=3
says "attackers" 1 "expected no 'attackers'" "$fl_sim" run long.yaml --local 3 --out bad --set "attackers={share: 40%, attack: sign_flip}"
says "no client" 2 "expected 1 to" "$fl_sim" run long.yaml --local 0
mkdir "$dir/alone" && cp "$fl_sim" "$dir/alone"
says "no daemons" 1 "--local needs 'fl-serverd', which is neither beside fl-sim nor in PATH" \
  env PATH=/usr/bin:/bin "$dir/alone/fl-sim" run long.yaml --local 3 --out bad
says "no training" 2 "--local goes without --no-training" "$fl_sim" run long.yaml --local 3 --no-training
cat >broken.py <<'END'
raise SystemExit("no camera")
END
experiment broken.yaml "data: {path: set}" \
  "client: {trainer: command, command: {program: [\"$python\", $dir/broken.py], persistent: yes}}"
says "a program that does not start" 1 "no camera" "$fl_sim" run broken.yaml --local 1 --out broken
equal "and no process is left" "" "$(left)"
finish
