#!/usr/bin/env bash
# fl_trainer under fl-clientd and fl-serverd: a script's first model begins a federation, two clients train it
# by a program per task, with and without a pull; another model is refused with the tensor's name.
# shellcheck source=tests/system/lib.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/tests/system/lib.sh"
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1
cat >"$dir/script.py" <<'TEXT'
import numpy, sys, fl_trainer

def make(hidden=3):
    return {"layer.weight": numpy.zeros((4, hidden), "f4"), "layer.bias": numpy.zeros(hidden, "f4")}

where = numpy.random.default_rng(int(sys.argv[1])).normal(size=(30, 4))
target = where @ numpy.arange(12).reshape(4, 3) / 10 + 1

def gradients(model, i):
    away = where[i] @ model["layer.weight"] + model["layer.bias"] - target[i]
    return {"layer.weight": where[i].T @ away / len(i), "layer.bias": away.sum(0) / len(i)}, (away**2).sum() / len(i)

def train(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        g, loss = gradients(model, i)
        optimizer.step(g)
        task.count(loss, len(i))

def evaluate(model, task):
    loss = gradients(model, numpy.arange(30))[1]
    return 30, 30 if loss < 0.1 else 0, loss * 30

if __name__ == "__main__":
    fl_trainer.run(make(int(sys.argv[2])), train, evaluate, samples=30, test_samples=30)
TEXT
sed 's/^where = .*/where = numpy.zeros((1, 4))/' "$dir/script.py" >"$dir/first.py"
check "the first model" "$python" -m fl_trainer save "$dir/first.py:make" "$dir/first.safetensors"
client() { # name, seed, hidden
  start_client "$1" "" "trainer: command" \
    "command: {program: [\"$python\", \"$dir/script.py\", \"$2\", \"$3\"], samples: 30, time_limit: 5m}"
}

for solver in sgd prox; do
  write_server $solver "rounds: 4" "model: {file: \"$dir/first.safetensors\"}" "when_finished: stay" \
    "strategy: {fraction: {fraction: 1}, solver: {policy: $solver}}" "round: {start_clients: 2}" \
    "training: {epochs: 5, batch_size: 5, learning_rate: 0.1, momentum: 0.5}"
  start_server $solver
  client $solver-one 1 3
  client $solver-two 2 3
  wait_for "four rounds of $solver" at_round $solver 4
  ctl $solver rounds --json >"$dir/$solver.json"
  equal "$solver: both respond in all rounds" True "$(json 'all(r["responders"] == 2 for r in d)' <"$dir/$solver.json")"
  equal "$solver: the loss falls" True \
    "$(json 'd[-1]["train_loss"] < 0.1 * d[0]["train_loss"]' <"$dir/$solver.json")"
  equal "$solver: what they tell of the received model is shown" "[0.0, 1.0]" \
    "$(json '[d[0]["received_accuracy"], d[-1]["received_accuracy"]]' <"$dir/$solver.json")"
  stop $solver
done

write_server other "rounds: 1" "model: {file: \"$dir/first.safetensors\"}" "round: {start_clients: 1}"
start_server other
client wide 1 7
wait_for "the other model is named" grep -q "tensor 'layer.weight' is 4x7 in the program, 4x3 on the server" "$dir/wide.log"
stop other
finish
