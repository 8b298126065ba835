#!/usr/bin/env bash
# Programs that stay: two of them beside a built-in client; one that is killed in a round costs its client
# that round and is started again; a client that is killed takes its program with it; idle ones leave and
# come back.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/system/failures.sh
. "$srcdir/tests/system/failures.sh"
fake=$build/tests/lib/fake_trainer
[ -x "$fake" ] || skip "$fake is not built"
synthetic "$dir/data" 1 --seed 3
program() { # name, mode, more of `command:`…
  local name=$1 mode=$2
  shift 2
  echo "command: {program: [\"$fake\", $mode, \"$dir/$name.notes\", \"0.001\"], persistent: yes${*:+, $*}}"
}
noted() { grep -qxF -- "$2" "$dir/$1.notes"; }
times() { grep -c "^$2" "$dir/$1.notes"; }
times_at_least() { [ "$(times "$1" "$2")" -ge "$3" ]; }
field() { ctl "$1" clients --json | json "next(c['$3'] for c in d if c['name'] == '$2')"; }
runs() { pgrep -f "fake_trainer $2 $dir/$1.notes" >/dev/null; }
runs_not() { ! runs "$@"; }

### Two programs that stay and a built-in trainer
write_server mixed "rounds: 4" "model: {preset: dnn60}" "algorithm: fedldf" \
  "strategy: {fraction: {fraction: 1}, upload: {n: 2}}" "round: {start_clients: 3}" \
  "evaluation: {every: 1, clients: yes}"
start_server mixed
start_client one "" "trainer: command" "$(program one good)"
start_client two "" "trainer: command" "$(program two good 'environment: {CUDA_VISIBLE_DEVICES: "1"}')"
start_client own "$dir/data/client-000"
wait_for "four rounds" at_round mixed 4
ctl mixed rounds --last 0 --json >"$dir/mixed.json"
equal "all respond in all rounds" True \
  "$(json 'all(r["selected"] == r["responders"] == 3 for r in d)' <"$dir/mixed.json")"
has_line "its own number of samples counts" "$dir/one.log" "trained round 1: samples=270"
for c in one two own; do
  wait_end "$c"
  equal "$c ends with the federation" 0 "$rc"
done
for c in one two; do
  equal "$c was started once" 1 "$(times "$c" start)"
  equal "$c trained four times" 4 "$(times "$c" train)"
  check "$c is asked to evaluate" times_at_least "$c" evaluate 1
  check "$c hears bye" noted "$c" bye
done
check "the programs are gone" runs_not one good
stop mixed

### A program that is killed in a round, and a client
write_server hard "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 2, min_responders: 1}"
start_server hard
start_client lost "" "trainer: command" "$(program lost hangs)"
start_client good "" "trainer: command" "$(program good good)"
wait_for "the program to hang in a round" noted lost hangs
pkill -KILL -f "fake_trainer hangs $dir/lost.notes"
wait_for "it to be started again" times_at_least lost start 2
has_line "the server knows why" "$dir/hard.log" "was killed by signal 9 (Killed); 'done' of 'train' 1 was expected; its stderr ends: waiting for a lock"
check "and so does the client" in_log lost "waiting for a lock"
wait_for "the program to hang again" times_at_least lost hangs 2
kill_hard lost
wait_for "its program to be gone" runs_not lost hangs
wait_for "three rounds with the other" at_round hard 3
equal "nothing of the lost one is accepted" 0 "$(field hard lost accepted)"
wait_end good
stop hard

### A first start that fails is retried, with the last words in the log
cat >"$dir/late.sh" <<TEXT
[ -e "$dir/mended" ] && exec "$fake" good "$dir/late.notes" 0.001
printf 'Traceback:\\n  cannot find my data\\n' >&2
exit 3
TEXT
write_server later "rounds: 1" "model: {preset: dnn60}" "round: {start_clients: 1}"
start_server later
start_client late "" "trainer: command" "command: {program: [/bin/sh, \"$dir/late.sh\"], persistent: yes}"
wait_for "a second attempt" in_log late "the trainer failed to start, retrying in 2 s"
has_line "the log has the reason" "$dir/late.log" "ended with exit code 3; 'ready' was expected; its stderr ends: Traceback: cannot find my data"
documented_log trainer-start "$dir/late.log"
has_line "and all of stderr, line by line" "$dir/late.log" "stderr:   cannot find my data"
check "the client runs" running late
touch "$dir/mended"
wait_for "the round of the mended program" at_round later 1
wait_end late
equal "it ends well" 0 "$rc"
stop later
start_client never "" "trainer: command" "$(program never exits_start)"
wait_for "a start that fails" in_log never "the trainer failed to start"
kill -TERM "${pid_of[never]}"
wait_end never
equal "SIGTERM ends a client whose trainer never started" 0 "$rc"
write_client gone "" "trainer: command" "command: {program: [\"$dir/no-such-program\"], persistent: yes}"
documented trainer-missing "$build/fl-clientd" "$dir/gone.yaml"
write_client file "" "trainer: command" "command: {program: [\"$fake\", \"{task}\"], persistent: yes}"
says "a task file is for the other kind" 3 "has no task file" "$build/fl-clientd" "$dir/file.yaml"

### What it did not declare is refused when it joins
write_server parts "rounds: 1" "model: {preset: dnn60}" "algorithm: scaffold" "round: {start_clients: 1}"
start_server parts
start_client few "" "trainer: command" "$(program few few)" "reconnect: {after_refusal: 0s}"
wait_end few
equal "it leaves" 7 "$rc"
has_line "with the part's name" "$dir/few.log" "needs the part 'gradient' in every step"
has_line "which the server hears" "$dir/parts.log" "needs the part 'gradient' in every step"
stop parts

### A program that fills the disk on which its client keeps its results
cat >"$dir/fills.py" <<'TEXT'
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy, fl_trainer
state = sys.argv[2]
def train(model, task):
    junk = open(os.path.join(state, "junk"), "wb", 0)
    try:
        while True:
            junk.write(b"x" * 65536)
    except OSError:
        if task.round == 1 and not os.path.exists(state + ".told"):
            open(state + ".told", "w").close()
            os.unlink(os.path.join(state, "junk"))
            raise
    return 0.5, 1
fl_trainer.run({"w": numpy.ones((4, 3), "float32")}, train, samples=10)
TEXT
mkdir "$dir/fills.state"
if "$python" -c 'import numpy' 2>/dev/null && mount -t tmpfs -o size=1m none "$dir/fills.state" 2>/dev/null; then
  "$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); import numpy, fl_trainer
fl_trainer.save({"w": numpy.ones((4, 3), "float32")}, sys.argv[2])' "$srcdir/client/python" "$dir/full.safetensors"
  write_server full "rounds: 2" "model: {file: \"$dir/full.safetensors\"}" "round: {start_clients: 1, retry: 50ms}" \
    "when_finished: stay"
  start_server full
  start_client fills "" "trainer: command" \
    "command: {program: [\"$python\", \"$dir/fills.py\", \"$srcdir/client/python\", \"$dir/fills.state\"], persistent: yes}"
  wait_for "two rounds" at_round full 2
  has_line "the program that found no room is heard" "$dir/full.log" "No space left on device"
  has_line "and the client goes on without keeping its result" "$dir/fills.log" "the result is not saved on disk"
  equal "which counts all the same" 2 "$(field full fills accepted)"
  kill_hard fills
  stop full
  umount "$dir/fills.state"
else
  echo "a full disk is not tried: it takes numpy, and root who may mount one"
fi

### Idle ones leave, and come back
write_server idle "rounds: 2" "model: {preset: dnn60}" "round: {start_clients: 2}"
start_server idle
start_client waits "" "trainer: command" "$(program waits good 'idle_exit: 100ms')"
wait_for "it to be sent away, alone as it is" noted waits bye
check "the client stays" running waits
start_client second "$dir/data/client-000"
wait_for "two rounds" at_round idle 2
check "it was started again" times_at_least waits start 2
wait_end waits
equal "and ends well" 0 "$rc"
stop idle
finish
