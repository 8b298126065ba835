#!/usr/bin/env bash
# A strategy in Python that hangs, dies, prints, forks or returns what is none: the message names the program and what was expected,
# no half model is committed, and the federation continues once the script is right.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1
synthetic "$dir/data" 2 --seed 3
cat >"$dir/script.py" <<END
import os, sys, time
import numpy as np
import fl_strategy


def dies(round):
    print("out of paper", file=sys.stderr)
    os._exit(3)


def raises(round):
    raise OSError("no such table")


def harmless(round):
    print("to stdout", flush=True)
    os.write(1, b"more")
    if os.fork() == 0:
        return np.ones(1430)
    os.wait()
    if os.fork() == 0:
        time.sleep(1000)
    open("$dir/harmless", "w").close()


def assign(name, value):
    return lambda round: setattr(round, name, value)


def not_finite(round):
    round.step[17] = np.nan


modes = {
    "good": lambda round: None,
    "hangs": lambda round: time.sleep(1000),
    "dies": dies,
    "raises": raises,
    "shape": lambda round: np.zeros(3),
    "dtype": lambda round: np.zeros(1430, int),
    "list": lambda round: [0.0] * 1430,
    "much": assign("state", bytes(5000)),
    "text": assign("state", "text"),
    "scores": assign("scores", [1, -1]),
    "nan": not_finite,
    "harmless": harmless,
}


def mode():
    return open(sys.argv[1]).read().strip()


def aggregate(round):
    round.step[:] = round.mean
    round.state = b"round %d" % round.number
    return modes[mode()](round)


def carry_out(self, message, original=fl_strategy._Server._carry_out):
    return {"state_bytes": 5000, "scores": False} if mode() == "oversized" else original(self, message)


fl_strategy._Server._carry_out = carry_out  # as a program in another language could
fl_strategy.run(aggregate)
END
set_mode() { echo "$1" >"$dir/mode.new" && mv "$dir/mode.new" "$dir/mode"; } # the script reads it at any moment
set_mode good
strategy() { echo "strategy: {aggregate: {policy: command, program: [\"$python\", \"$dir/script.py\", \"$1\"], limit: 5s, state_limit: 4096}}"; }
write_server fed "seed: 7" "rounds: 0" "model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2, min_responders: 2}" \
  "$(strategy "$dir/mode")"
start_server fed
for k in 0 1; do start_client "c$k" "$dir/data/client-00$k"; done
wait_for "a round" at_round fed 1
# mode, text of the log…: misbehaves until the messages are there; then the script is right and a round follows
fails() {
  local mode=$1 text n
  shift
  set_mode "$mode"
  for text; do wait_for "the message of $mode: $text" in_log fed "$text"; done
  has_line "$mode: with the program" <(grep -F -- "$1" "$dir/fed.log") "'$python"
  n=$(status_of fed rounds_committed)
  check "$mode: the model of round $n is there" ctl fed export --output "$dir/$mode.safetensors"
  equal "$mode: it is that of its checkpoint" "$(tensors "$dir/$mode.safetensors")" \
    "$(tensors "$dir/fed.state/models/round-$(printf %06d "$n").safetensors")"
  set_mode good
  [ "$mode" != nan ] || check "$mode: an operator resumes it" ctl fed resume
  wait_for "a round after $mode" at_round fed $((n + 1))
}
fails hangs "timed out at 'aggregate' after its time limit of 5000 ms (strategy.aggregate.limit)"
has_line "it is ended" "$dir/fed.log" "did not answer 'cancel' within"
fails dies "exit code 3"
has_line "its last words are read" "$dir/fed.log" "out of paper"
fails raises "failed at 'aggregate': OSError: no such table"
fails shape "returned an array of shape (3,), expected (1430,), the parameters of the model"
fails dtype "returned an array of int64, expected an array of float64 or float32"
fails list "returned list, expected an array of float64 or float32"
fails much "round.state has 5000 bytes, expected at most 4096 (strategy.aggregate.state_limit)"
fails text "round.state is str, expected bytes"
fails scores "expected 2 finite numbers of at least 0"
fails nan "returned a step that is not finite: nan at entry 17 of layer"
fails oversized "a state of 5000 bytes in a slot of 4096"
equal "the program ended three times and was started four times" 4 "$(grep -c "software='fl_strategy" "$dir/fed.log")"

### What does no harm
failed=$(grep -c "work failed" "$dir/fed.log")
set_mode harmless
wait_for "a round that prints and forks" test -e "$dir/harmless"
set_mode good
n=$(status_of fed rounds_committed)
wait_for "a round after it" at_round fed $((n + 2))
equal "is no failure" "$failed" "$(grep -c "work failed" "$dir/fed.log")"
for k in 0 1; do stop "c$k"; done
stop fed
equal "the server ends well" 0 "$rc"
check "none of its processes is left" test -z "$(pgrep -f "$dir/script.py")"

### In fl-sim
set_mode dies
cat >"$dir/dies.yaml" <<END
server:
  model: {preset: dnn60}
  $(strategy "$dir/mode")
data: {path: $dir/data}
stop: {rounds: 3}
END
says "a simulation ends with what the script said" 1 "out of paper" "$build/fl-sim" run "$dir/dies.yaml" --quiet --out "$dir/dies"
set_mode good
check "and goes on once the script is right" "$build/fl-sim" run "$dir/dies.yaml" --quiet --out "$dir/dies"

### Programs that cannot be used
start_fails() { # name, text, program
  write_server "$1" "rounds: 3" "model: {preset: dnn60}" "strategy: {aggregate: {policy: command, program: $3}}"
  says "$1" 5 "$2" "$build/fl-serverd" "$dir/$1.yaml"
  says "$1: with the line" 5 "$1.yaml:" "$build/fl-serverd" "$dir/$1.yaml"
}
start_fails ends_at_once "cannot begin" "[/bin/sh, -c, \"echo cannot begin >&2; exit 3\"]"
start_fails missing_file "cannot read '/nonexistent.py', the script of" "[\"$python\", /nonexistent.py]"
start_fails a_trainer "cannot aggregate: its \`ready\` has no \"aggregate\"" "[\"$build/tests/lib/fake_trainer\", good]"
finish
