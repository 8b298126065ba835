#!/usr/bin/env bash
# FedMix with scripts of PyTorch under fl-clientd and fl-serverd: two clients tell the means of their data, each
# is given the other's, and Per-FedAvg with second derivatives goes on from there; a client without `summaries: yes`
# tells nothing.
# shellcheck source=tests/system/lib.sh
. "${FL_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/tests/system/lib.sh"
"$python" -c 'import torch' 2>/dev/null || skip "$python has no torch (package python3-torch)"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
cat >"$dir/script.py" <<'TEXT'
import sys, torch, fl_trainer
from torch.nn.functional import cross_entropy

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]))
y = torch.randint(0, 3, (60,))
x = torch.randn(60, 4) + 2 * torch.nn.functional.one_hot(y, 4)

def train(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        optimizer.zero_grad()
        loss = task.loss(x[i], y[i])
        loss.backward()
        optimizer.step()
        task.count(loss, len(i))
    if task.losses.mixture is not None:
        print("mixed with", len(task.losses.mixture._pairs))

def evaluate(model, task):
    out = model(x)
    return 60, (out.argmax(1) == y).sum(), cross_entropy(out, y, reduction="sum")

if __name__ == "__main__":
    fl_trainer.run(torch.nn.Linear(4, 3), train, evaluate, samples=60, test_samples=60,
                   criterion=cross_entropy, examples=list(zip(x, y)), classes=3)
TEXT
check "the first model" "$python" -m fl_trainer save "$dir/script.py" "$dir/first.safetensors" 1
client() { # name, seed, more lines of the configuration
  local name=$1 seed=$2
  shift 2
  start_client "$name" "" "trainer: command" \
    "command: {program: [\"$python\", \"$dir/script.py\", \"$seed\"], persistent: yes}" "$@"
}
federation() { # name, strategy
  write_server "$1" "rounds: 3" "model: {file: \"$dir/first.safetensors\"}" "when_finished: stay" \
    "strategy: {fraction: {fraction: 1}, solver: {$2}}" "round: {start_clients: 2}" \
    "training: {epochs: 2, batch_size: 12, learning_rate: 0.1}"
  start_server "$1"
}

federation mix "policy: fedmix, lambda: 0.1, group: 20"
client one 1 "summaries: yes"
client two 2 "summaries: yes"
wait_for "three rounds of FedMix" at_round mix 3
ctl mix rounds --json >"$dir/mix.json"
equal "both respond in all rounds" True "$(json 'all(r["responders"] == 2 for r in d)' <"$dir/mix.json")"
equal "the loss falls" True "$(json 'd[-1]["train_loss"] < d[0]["train_loss"]' <"$dir/mix.json")"
for c in one two; do
  has_line "$c tells of its data" "$dir/$c.log" "sent the data summary: 100 bytes"
  check "$c mixes with the three means of the other, and not with its own" in_log "$c" "mixed with 3"
done
stop mix

federation silent "policy: fedmix"
client closed 3 "summaries: no"
wait_for "who does not summary is refused" in_log closed "does not allow that ('summaries: yes')"
stop silent

federation bend "policy: per_fedavg, variant: hf, alpha: 0.05"
client three 1
client four 2
wait_for "three rounds with second derivatives" at_round bend 3
equal "in which both respond" True "$(ctl bend rounds --json | json 'all(r["responders"] == 2 for r in d)')"
stop bend
finish
