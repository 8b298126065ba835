#!/usr/bin/env bash
# Programs of the user as trainers: two clients with deploy/examples/trainer_numpy.py beside a built-in
# one; a program that fails costs its client the round and nobody else, and its last words are read.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
trainer=$srcdir/deploy/examples/trainer_numpy.py
synthetic "$dir/data" 3 --seed 3
data() { echo "$dir/data/client-00$1"; }
program() { # arguments…: a YAML list
  local list='' a
  for a in "$@"; do list+="${list:+, }\"$a\""; done
  echo "command: {program: [$list], samples: 100, ${limit_name:-time_limit}: ${limit:-1m}}"
}
field() { ctl "$1" clients --json | json "next(c['$3'] for c in d if c['name'] == '$2')"; }

### Two programs and a built-in trainer learn together; in round 1 programs count with the samples that they announce
write_server mixed "rounds: 8" "model: {preset: dnn60}" "algorithm: fedldf" \
  "strategy: {fraction: {fraction: 1}, upload: {n: 2}}" "round: {start_clients: 3}" \
  "evaluation: {every: 1, data: \"$dir/data/server\"}"
start_server mixed
start_client py0 "$(data 0)" "trainer: command" "$(program "$python" "$trainer" "{task}")"
start_client py1 "$(data 1)" "trainer: command" "$(program "$python" "$trainer" "{task}")"
start_client own "$(data 2)"
wait_for "eight rounds of three kinds of clients" at_round mixed 8
ctl mixed rounds --last 0 --json >"$dir/mixed.json"
equal "all respond in all rounds" True \
  "$(json 'all(r["selected"] == r["responders"] == 3 for r in d)' <"$dir/mixed.json")"
equal "the loss falls" True "$(json 'd[-1]["train_loss"] < d[0]["train_loss"]' <"$dir/mixed.json")"
equal "they learn something" True "$(json 'd[-1]["accuracy"] > 0.5' <"$dir/mixed.json")"
samples=$("$python" -c 'import numpy, sys; print(len(numpy.load(sys.argv[1])))' "$(data 0)/train-y.npy")
has_line "the program's samples count" "$dir/py0.log" "trained round 1: samples=$samples"
check "the model is exported" ctl mixed export --output "$dir/mixed.safetensors"
check "and finite" finite "$dir/mixed.safetensors"
for c in py0 py1 own; do
  wait_end "$c"
  equal "$c ends with the federation" 0 "$rc"
done
stop mixed

### The accuracy that programs tell is shown, and what cannot be is said
cat >"$dir/tells.py" <<'TEXT'
import json, shutil, sys
task = json.load(open(sys.argv[1]))
shutil.copy(task["model"], task["result_model"])
# More test samples than the first time are more weight than this client has.
told = [40, 40, 4000][min(task["round"], 3) - 1]
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0,
           "received": {"samples": told, "correct": told * 3 // 4, "loss_sum": 4.0}},
          open(task["result"], "w"))
TEXT
write_server told "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 1}" \
  "evaluation: {every: 1, clients: yes}" "when_finished: stay"
start_server told
start_client tells "" "trainer: command" "$(program "$python" "$dir/tells.py" "{task}")"
wait_for "three rounds of a program that tells" at_round told 3
equal "its accuracy is in the rounds" "[0.75, 0.75, None]" \
  "$(ctl told rounds --last 0 --json | json '[r["received_accuracy"] for r in d]')"
ctl told rounds >"$dir/told.rounds"
has_line "for people too" "$dir/told.rounds" "received=0.7500"
has_line "more than it told of first is left out" "$dir/told.log" "more samples than were announced"
has_line "nobody evaluates the new model: when it joins" "$dir/told.log" \
  "client 'tells' announced no test samples: it is not asked to evaluate"
has_line "and in each round, as a warning" "$dir/told.log" \
  "evaluation.clients is on, but no connected client can evaluate"
stop told

### Programs that fail
cat >"$dir/fails.sh" <<'TEXT'
echo "nobody reads this"
echo "cannot find my glasses" >&2
exit 3
TEXT
cat >"$dir/silent.sh" <<'TEXT'
exit 0
TEXT
cat >"$dir/nan.py" <<'TEXT'
import json, struct, sys
task = json.load(open(sys.argv[1]))
raw = bytearray(open(task["model"], "rb").read())
raw[-4:] = struct.pack("<f", float("nan"))
open(task["result_model"], "wb").write(raw)
json.dump({"samples": 10, "steps": 1, "train_loss": 1.0}, open(task["result"], "w"))
TEXT
echo 'exec sleep 1000' >"$dir/slow.sh"
write_server failing "rounds: 2" "model: {preset: dnn60}" "round: {start_clients: 6, min_responders: 1}"
start_server failing
start_client good "$(data 0)"
start_client fails "" "trainer: command" "$(program /bin/sh "$dir/fails.sh" "{task}")"
start_client silent "" "trainer: command" "$(program /bin/sh "$dir/silent.sh" "{task}")"
start_client nan "" "trainer: command" "$(program "$python" "$dir/nan.py" "{task}")"
write_client missing "" "trainer: command" "$(program /nonexistent/program "{task}")"
says "a program that is not there is told at the start" 5 \
  "cannot run '/nonexistent/program': No such file or directory" "$build/fl-clientd" "$dir/missing.yaml"
start_client hung "" "trainer: command" "$(limit_name=first_limit limit=300ms program /bin/sh "$dir/slow.sh")"
limit=300ms start_client slow "" "trainer: command" "$(limit=300ms program /bin/sh "$dir/slow.sh")"
wait_for "two rounds with one good client" at_round failing 2
equal "one response of six" "6 1" \
  "$(ctl failing rounds --last 0 --json | json '"%d %d" % (d[0]["selected"], d[0]["responders"])')"
has_line "the client's log has the last words" "$dir/fails.log" "cannot find my glasses"
has_line "the server hears them too" "$dir/failing.log" "cannot find my glasses"
equal "and it is the last error of the client" True \
  "$(field failing fails last_error | grep -q 'exit code 3; its stderr ends: cannot find my glasses$' && echo True)"
has_line "and the exit code" "$dir/failing.log" "3"
lacks_line "what it says on stdout is not mixed in" "$dir/failing.log" "nobody reads this"
has_line "a program without result" "$dir/failing.log" "client 'silent'"
has_line "a program with NaN" "$dir/nan.log" "not finite"
has_line "a program that takes too long" "$dir/slow.log" "time"
has_line "a first run that hangs loses its part in the round" "$dir/failing.log" \
  "the first run here may take no longer (command.first_limit)"
for c in fails silent nan slow hung; do
  equal "$c: nothing accepted" 0 "$(field failing "$c" accepted)"
done
check "no program is left behind" test -z "$(pgrep -f "$dir/slow.sh")"
equal "the good one is in both rounds" 2 "$(field failing good accepted)"
stop failing
equal "the server ends well" 0 "$rc"
finish
