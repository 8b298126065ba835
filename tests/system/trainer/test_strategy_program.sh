#!/usr/bin/env bash
# A strategy written in Python: the same models as the built-in median and FedYogi, in fl-serverd and fl-sim, with partial uploads and
# a lattice too; its state survives a kill and a rollback; what cannot be is refused with its line.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1
examples=$srcdir/client/python/examples
synthetic "$dir/data" 3 --seed 3
program() { echo "{policy: command, program: [\"$python\", \"$1\"${2:+, $2}]}"; } # script, further options of the list
# server, rounds, lines…: runs a federation of three and exports its model
federation() {
  local name=$1 rounds=$2
  shift 2
  write_server "$name" "seed: 7" "rounds: $rounds" "model: {preset: dnn60}" "when_finished: stay" \
    "round: {start_clients: 3, min_clients: 3, min_responders: 3}" "training: {epochs: 1, batch_size: 20, learning_rate: 0.05}" "$@"
  start_server "$name"
  clients "$name" "$rounds"
}
clients() { # server, round
  rm -rf "$dir"/c[012].state
  for k in 0 1 2; do start_client "c$k" "$dir/data/client-00$k"; done
  wait_for "$2 rounds of $1" at_round "$1" "$2"
  for k in 0 1 2; do stop "c$k"; done
}
model_of() { ctl "$1" export --output "$dir/$1.safetensors" >/dev/null; }
# two models: no entry differs by more than 1e-6, prints the largest difference otherwise
near() {
  "$python" - "$dir/$1.safetensors" "$dir/$2.safetensors" <<'PY'
import json, sys
import numpy as np
def read(path):
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    return np.frombuffer(raw[8 + n:], "<f4")
a, b = (read(p) for p in sys.argv[1:])
worst = float(np.max(np.abs(a.astype(float) - b)))
print(len(a), worst)
sys.exit(not (a.shape == b.shape and worst <= 1e-6))
PY
}

### The same models as the built-in rules, through daemons
federation median 3 "strategy: {robust: median}"
model_of median
stop median
federation median_py 3 "strategy: {aggregate: $(program "$examples/strategy_median.py")}"
model_of median_py
stop median_py
equal "a server with a program ends well" 0 "$rc"
check "the median of a script is the built-in one" near median median_py
equal "the program was started once" 1 "$(grep -c "software='fl_strategy" "$dir/median_py.log")"
check "no program is left" test -z "$(pgrep -f "$examples/strategy_median.py\$")"
federation yogi 4 "strategy: {aggregate: fedyogi}"
model_of yogi
stop yogi
federation yogi_py 4 "strategy: {aggregate: $(program "$examples/strategy_fedyogi.py")}"
model_of yogi_py
check "FedYogi of a script is the built-in one" near yogi yogi_py

### State: a rollback, a kill
check "a rollback to round 2 is requested" ctl yogi_py rollback 2
kill_hard yogi_py
start_server yogi_py || finish
has_line "and carried out" "$dir/yogi_py.log" "rolled back to round 2"
clients yogi_py 4
model_of yogi_py
check "continues with the state of round 2" near yogi yogi_py
stop yogi_py
federation killed 2 "strategy: {aggregate: $(program "$examples/strategy_fedyogi.py")}"
kill_hard killed
sed -i 's/^rounds: 2/rounds: 4/' "$dir/killed.yaml"
start_server killed
clients killed 4
model_of killed
check "a killed server continues with the state of its checkpoint" near yogi killed
stop killed

federation saved 2 "strategy: {aggregate: $(program "$examples/strategy_fedyogi.py")}"
check "a backup is made" ctl saved backup "$dir/backup"
stop saved
rm -rf "$dir/saved.state"
check "and restored" ctl saved restore "$dir/backup"
rm "$dir"/saved.state/federation.db*
says "a lost database is recovered from the checkpoint" 0 "continues after round 2" "$build/fl-serverd" --recover "$dir/saved.yaml"
sed -i 's/^rounds: 2/rounds: 4/' "$dir/saved.yaml"
start_server saved
clients saved 4
model_of saved
check "backup, restore and recovery keep the state" near yogi saved
stop saved

### Partial uploads and a lattice
federation ldf 3 "algorithm: fedldf" "strategy: {robust: {policy: median}}"
model_of ldf
stop ldf
federation ldf_py 3 "algorithm: fedldf" "strategy: {aggregate: $(program "$examples/strategy_median.py")}"
model_of ldf_py
stop ldf_py
check "layers that were sent only" near ldf ldf_py
federation lattice 3 "strategy: {aggregate: fedyogi, broadcast: lattice}"
model_of lattice
stop lattice
federation lattice_py 3 "strategy: {aggregate: $(program "$examples/strategy_fedyogi.py"), broadcast: lattice}"
model_of lattice_py
stop lattice_py
check "a broadcast on a lattice" near lattice lattice_py

### fl-sim
experiment() { # file, strategy, data
  cat >"$dir/$1.yaml" <<END
server:
  model: {preset: dnn60}
  strategy: {$2}
  training: {epochs: 1, batch_size: 20, learning_rate: 0.05}
data: {path: ${3:-$dir/data}}
stop: {rounds: 4}
trials: {seeds: [7]}
END
  check "fl-sim runs $1" "$build/fl-sim" run "$dir/$1.yaml" --quiet --out "$dir/$1.results"
  "$python" - "$(find "$dir/$1.results" -name rounds.jsonl)" >"$dir/$1.rows" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    print("%d %.5g %.5g" % (r["round"], r["train_loss"], r["loss"]))
PY
}
experiment sim_yogi "aggregate: fedyogi"
experiment sim_yogi_py "aggregate: $(program "$examples/strategy_fedyogi.py")"
check "a simulation has the same figures" diff "$dir/sim_yogi.rows" "$dir/sim_yogi_py.rows"
for with in "solver: scaffold" "codec: int8, upload: ldf" "broadcast: lattice, space: {policy: hashed, size: 80, redraw: 2}"; do
  experiment "with" "aggregate: fedyogi, $with"
  experiment "with_py" "aggregate: $(program "$examples/strategy_fedyogi.py"), $with"
  check "with $with" diff "$dir/with.rows" "$dir/with_py.rows"
  rm -rf "$dir"/with*.results
done
experiment sim_median "robust: median"
experiment sim_median_py "aggregate: $(program "$examples/strategy_median.py")"
check "with the median too" diff "$dir/sim_median.rows" "$dir/sim_median_py.rows"

### Scores
cat >"$dir/scores.py" <<END
import sys
import numpy as np
import fl_strategy


def aggregate(round):
    round.step[:] = round.mean
    distances = [np.linalg.norm(round.step - update.astype(np.float64)) for update in round.updates]
    round.scores = distances if sys.argv[1] == "distances" else [1.0 / (1 + k) ** 3 for k in range(len(distances))]


fl_strategy.run(aggregate)
END
synthetic "$dir/more" 12 --seed 4
scored() { echo "aggregate: {policy: command, program: [\"$python\", \"$dir/scores.py\", $1]}"; }
by="selection: {policy: attention, alpha: 0.1}, fraction: {policy: constant, fraction: 0.5}"
experiment drawn "aggregate: mean, $by" "$dir/more"
experiment drawn_same "$(scored distances), $by" "$dir/more"
experiment drawn_other "$(scored others), $by" "$dir/more"
check "scores that are the distances select as these" diff "$dir/drawn.rows" "$dir/drawn_same.rows"
check "others select other clients" test -n "$(diff "$dir/drawn.rows" "$dir/drawn_other.rows")"

### A run that is killed goes on with the state of its checkpoint
"$build/fl-sim" run "$dir/sim_yogi_py.yaml" --quiet --out "$dir/sim_killed.results" >/dev/null 2>&1 &
pid_of[sim]=$!
rows() { [ "$(cat "$dir"/sim_killed.results/*/*/rounds.jsonl 2>/dev/null | wc -l)" -ge 2 ] || ended sim; }
wait_for "two rounds" rows
kill_hard sim
check "it is run again" "$build/fl-sim" run "$dir/sim_yogi_py.yaml" --quiet --out "$dir/sim_killed.results"
check "with the same rows" cmp "$(find "$dir/sim_killed.results" -name rounds.jsonl)" "$(find "$dir/sim_yogi_py.results" -name rounds.jsonl)"

### The document
check "docs/adding-an-algorithm.md has the script" diff <(sed -n '/^```python$/,/^```$/p' "$srcdir/docs/adding-an-algorithm.md" | sed '1d;$d') \
  <(tail -n +3 "$examples/strategy_fedyogi.py")
has_line "a script runs by hand" <("$python" "$examples/strategy_fedyogi.py") "round 2: 5 made-up updates of 20 parameters"

### What is refused
refused() { # name, text, lines…
  local name=$1 text=$2
  shift 2
  write_server no "rounds: 1" "model: {preset: dnn60}" "$@"
  "$build/fl-serverd" --check-config "$dir/no.yaml" >"$dir/no.out" 2>&1
  has_line "$name" "$dir/no.out" "$text"
  has_line "$name: with file and line" "$dir/no.out" "no.yaml:"
}
refused "no program" "needs a program" "strategy: {aggregate: command}"
refused "one that is not there" "/nonexistent/program" "strategy: {aggregate: {policy: command, program: [/nonexistent/program]}}"
refused "a robust rule" "does by itself" "strategy: {robust: median, aggregate: $(program x.py)}"
refused "masks inside of layers" "gets whole units" "strategy: {upload: fedadp, aggregate: $(program x.py)}"
refused "personal models" "computes one model for all clients" "strategy: {personal: own, aggregate: $(program x.py)}"
finish
