#!/usr/bin/env bash
# fl-sim run with a training program of the user: one process for each thread acts for all clients; the files do not depend on the
# threads or on kills; the rounds are those of fl-serverd and fl-clientd with the same script; what cannot be is told before it runs.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
pid=''
trap 'kill -KILL $pid 2>/dev/null; end_all' EXIT
cd "$dir" || exit 99
"$python" -c 'import numpy' 2>/dev/null || skip "$python has no numpy"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1

cat >script.py <<'END'
import os
import sys
import time
import numpy as np
import fl_trainer

held = {}
own = sys.argv[1] != "files"


def features(folder, part):
    return np.load(f"{folder}/{part}-x.npy"), np.load(f"{folder}/{part}-y.npy")


def clients(client):
    if os.environ.get("TOLD"):
        with open(os.environ["TOLD"], "a") as file:
            print(os.getpid(), client.name, client.number, client.of, client.data, client.train and len(client.train), file=file)
    if sys.argv[1] == "fails" and client.number == 2:
        raise OSError("no such sensor")
    held["name"] = client.name
    if own:  # a client is a centre among four
        draw = np.random.default_rng(int(client.name[-1]) if client.name else 99)
        x = draw.normal(size=(60, 4)).astype(np.float32)
        y = (x @ [1, -1, 0.5, 0] > 0).astype(int)
        held["train"], held["test"] = (x[:40], y[:40]), (x[40:], y[40:])
    elif client.train is None and client.name is not None:
        held["train"], held["test"] = features(client.data, "train"), features(client.data, "test")
    elif client.name is None:
        held["test"] = features(client.data, "test")
    else:
        x, y = features(client.data, "train")
        held["train"], held["test"] = (x[client.train], y[client.train]), (x[client.test], y[client.test])
    return 0 if client.name is None else len(held["train"][1]), len(held["test"][1])


def values(m, x):
    z = x @ m["w"].T + m["b"]
    return z - np.log(np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True)) - z.max(1, keepdims=True)


leaked = []


def misbehave(m):
    mode = sys.argv[1]
    if mode == "nan":
        m["w"][0, 0] = np.nan
    if mode == "random":
        m["w"][0, 0] += np.random.default_rng().normal()
    if mode == "prints":
        print("to stdout: {}", flush=True)
        os.write(1, b"\0\x01 and more\n")
    if mode == "forks" and os.fork() == 0:
        time.sleep(1000)
    if held["name"] != "client-002":
        return
    if mode == "shape":
        m["w"] = np.zeros((3, 4), np.float32)
    if mode == "dtype":
        m["w"] = m["w"].astype(int)
    if mode == "other":
        m["w"] = "no array"
    while mode == "leaks":
        leaked.append(np.ones(1 << 20))


def train(m, task):
    optimizer = task.optimizer()
    x, y = held["train"]
    for i in task.batches():
        z = values(m, x[i])
        task.count(-z[np.arange(len(i)), y[i]].mean(), len(i))
        p = np.exp(z)
        p[np.arange(len(i)), y[i]] -= 1
        optimizer.step({"w": (p.T @ x[i] / len(i)).astype(np.float32), "b": p.mean(0).astype(np.float32)})
    misbehave(m)


def evaluate(m, task):
    x, y = held["test"]
    if sys.argv[1] == "hangs" and held["name"] is None:
        time.sleep(3600)
    z = values(m, x)
    right = z.argmax(1) == y
    metrics = {
        "recall": fl_trainer.Metric(right[y == 1].mean(), samples=int((y == 1).sum())),
        "wrong": fl_trainer.Metric(int((~right).sum()), over="sum"),
        "margin": np.abs(z[:, 0] - z[:, 1]).mean(),
    }
    return len(y), int(right.sum()), float(-z[np.arange(len(y)), y].sum()), metrics


def model():
    return {"w": np.zeros((2, 4), np.float32), "b": np.zeros(2, np.float32)}


if __name__ == "__main__":
    how = {"samples": 40, "test_samples": 20} if sys.argv[1] == "one" else {"clients": clients}
    fl_trainer.run(model(), train, evaluate, **how)
END
check "the first model is the script's" "$python" -m fl_trainer save script.py first.safetensors own

experiment() { # file, mode of the script, data, further lines
  local file=$1 mode=$2 data=$3
  shift 3
  cat >"$file" <<END
server:
  model: {file: first.safetensors}
  algorithm: scaffold
  training: {epochs: 2, batch_size: 8, learning_rate: 0.1}
  round: {start_clients: 5}
client: {trainer: command, command: {program: ["$python", script.py, $mode], persistent: yes}}
data: {$data}
END
  printf '%s\n' "$@" >>"$file"
}
files_of() { (cd "$1" && find . \( -name 'rounds.*' -o -name clients.jsonl -o -name summary.json \) -print0 | sort -z | xargs -0 sha256sum); }

### Data of the program
experiment own.yaml own "clients: 5" "stop: {rounds: 6}" "trials: 2" "world: {train: {samples_per_s: 20}}"
export TOLD=$dir/told
check "it runs" "$fl_sim" run own.yaml --quiet --clients --jobs 1 --repeat 0 --out jobs-1
equal "two processes for a thread: one counts, one of each trial trains and one evaluates" 5 "$(cut -d' ' -f1 told | sort -u | wc -l)"
unset TOLD
"$fl_sim" run own.yaml --quiet --clients --jobs 2 --out jobs-2 >jobs-2.out 2>&1
equal "it runs with two threads, and the first rounds, run again, are the same" "0 2 trials in jobs-2" "$? $(cat jobs-2.out)"
files_of jobs-1 >sums-1
files_of jobs-2 >sums-2
check "which change nothing" cmp sums-1 sums-2
equal "it learns" True "$(json 'd["accuracy"]["last"] > 0.75' <"$(find jobs-1 -name summary.json | head -n 1)")"
equal "a training takes the time that the world says: 40 samples, twice, 20 a second" 4000000 \
  "$(tail -n 1 "$(find jobs-1 -name rounds.jsonl | head -n 1)" | json 'd["training_us"]')"
kills=0
while [ "$kills" -lt 4 ]; do
  "$fl_sim" run own.yaml --quiet --clients --out killed >kill.log 2>&1 &
  pid=$!
  rows() { [ "$(cat killed/*/*/rounds.jsonl 2>/dev/null | wc -l)" -gt "$((2 * kills))" ] || ! kill -0 "$pid" 2>/dev/null; }
  wait_for "a few rounds" rows
  kill -KILL "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  kills=$((kills + 1))
done
check "it goes on" "$fl_sim" run own.yaml --quiet --clients --out killed
files_of killed >sums-killed
check "and kills change nothing" cmp sums-1 sums-killed

### The same script with the daemons
experiment daemons.yaml own "clients: 5" "stop: {rounds: 4}" "trials: {seeds: [7]}"
check "in the simulation" "$fl_sim" run daemons.yaml --quiet --out simulated
check "with the daemons" "$fl_sim" run daemons.yaml --quiet --local 5 --out real
figures='["%d %.10g %.10g %.10g %d" % (r["round"], r["accuracy"], r["loss"], r["train_loss"], r["uplink_bytes"])
  + "".join(" %s=%.7g" % m for m in sorted(r["metrics"].items())) for r in d]'
for how in simulated real; do
  "$python" -c 'import json, sys; print(json.dumps([json.loads(line) for line in open(sys.argv[1])]))' \
    "$(find "$how" -name rounds.jsonl)" >"$how.json"
  json "$figures" <"$how.json" >"$how.txt"
done
check "the rounds are those of the simulation, metrics included" diff real.txt simulated.txt
has_line "the script's metrics are in them, of the server's model" real.txt " margin="
has_line "and of the models that clients received" real.txt " received/wrong="
equal "a sum over clients is a whole number" True "$(json 'all(r["metrics"]["received/wrong"] % 1 == 0 for r in d)' <real.json)"
equal "as loss and accuracy, the metrics agree: wrong samples" True \
  "$(json 'all(abs(100 * (1 - r["received_accuracy"]) - r["metrics"]["received/wrong"]) < 1e-9 for r in d)' <real.json)"
equal "a table has the last value" 1 "$("$fl_sim" table --columns metrics.received/wrong,metrics.recall --format csv simulated | tail -n 1 | grep -cE ',[0-9.]+.*,[0-9.]+')"

### Data in files
"$python" - <<'END'
import numpy as np
draw = np.random.default_rng(3)
import os
os.makedirs("set")
for part, n in (("train", 300), ("test", 80)):
    x = draw.normal(size=(n, 4)).astype(np.float32)
    np.save(f"set/{part}-x.npy", x)
    np.save(f"set/{part}-y.npy", (x @ [1, -1, 0.5, 0] > 0).astype(np.int64))
END
experiment set.yaml files "set: $dir/set, clients: 5, test_share: 0.2" "stop: {rounds: 3}"
check "a set, of which a client has some samples" "$fl_sim" run set.yaml --quiet --out of-set
check "divided in folders" "$build/fl-data" split --input set --output folders --clients 5 --method iid --test-share 0.2 --seed 0
experiment folders.yaml files "path: $dir/folders" "stop: {rounds: 3}"
check "a folder for each client" "$fl_sim" run folders.yaml --quiet --out of-folders
check "are the same" cmp "$(find of-set -name rounds.jsonl)" "$(find of-folders -name rounds.jsonl)"

### What cannot be
experiment bad.yaml one "clients: 5" "stop: {rounds: 3}"
says "a script for one client" 1 "acts for one client only" "$fl_sim" run bad.yaml --out bad
experiment bad.yaml fails "clients: 5" "stop: {rounds: 3}"
says "one that cannot count" 1 "failed at 'client': OSError: no such sensor" "$fl_sim" run bad.yaml --out bad
experiment bad.yaml own "clients: 5" "stop: {rounds: 3}" "attackers: {share: 20%, attack: label_flip}"
says "an attack on its samples" 1 "'label_flip' changes training samples, which are those of the program" "$fl_sim" run bad.yaml --out bad
experiment bad.yaml own "set: synthetic, clients: 5" "stop: {rounds: 3}"
says "samples in no file" 1 "is generated and in no file" "$fl_sim" run bad.yaml --out bad
experiment bad.yaml own "clients: 5" "stop: {rounds: 3}"
sed -i 's/, persistent: yes//' bad.yaml
says "a program for each task" 1 "expected command.persistent: yes" "$fl_sim" run bad.yaml --out bad
sed -i 's/trainer: command, //' bad.yaml
says "no program" 1 "'clients' alone is the data of a program" "$fl_sim" run bad.yaml --out bad
experiment bad.yaml hangs "clients: 5" "stop: {rounds: 3}"
sed -i 's/persistent: yes/persistent: yes, time_limit: 1s, cancel_grace: 1s/' bad.yaml
says "an evaluation of the server that does not end" 1 "(command.time_limit)" "$fl_sim" run bad.yaml --out bad
# What one client's training makes of the model: the message has the client, and what was wrong.
# name, mode, expected texts…
refused() {
  experiment "$2.yaml" "$2" "clients: 5" "stop: {rounds: 3}"
  [ "$2" != leaks ] || sed -i 's/persistent: yes/persistent: yes, memory_limit: 400M, memory_of: resident/' leaks.yaml
  says "$1" 1 "$3" "$fl_sim" run "$2.yaml" --quiet --out "$2"
  check "$1, of a client" grep -q "client-002" "$dir/says.out"
}
refused "another shape" shape "tensor 'w' is 3x4 after"
refused "another dtype" dtype "tensor 'w' is int64 after"
refused "no array" other "tensor 'w' is str after"
refused "a leak" leaks "memory"

# What harms nothing: the rounds are those of a script that does not do it.
experiment own.yaml own "clients: 5" "stop: {rounds: 3}"
check "a script that behaves" "$fl_sim" run own.yaml --quiet --out behaves
for mode in prints forks; do
  experiment "$mode.yaml" "$mode" "clients: 5" "stop: {rounds: 3}"
  "$fl_sim" run "$mode.yaml" --quiet --out "$mode" >"$mode.out" 2>"$mode.err"
  equal "one that $mode" 0 $?
  lacks_line "$mode: its stdout is not in ours" "$mode.out" "to stdout"
  check "$mode: the same rounds" cmp "$(find behaves -name rounds.jsonl)" "$(find "$mode" -name rounds.jsonl)"
done
equal "no process of theirs is left" "" "$(pgrep -f "script.py (prints|forks|leaks)" || true)"

experiment random.yaml random "clients: 5" "stop: {rounds: 3}"
"$fl_sim" run random.yaml --quiet --out random >random.out 2>&1
equal "one that is not deterministic runs" "0 3" "$? $(cat random/*/*/rounds.jsonl | wc -l)"
has_line "with a warning that has round, figure and values" random.out "of round 1 was "
has_line "and what follows" random.out "a program of this experiment is not deterministic"
check "what was run again is gone" test ! -e random/.replay
"$fl_sim" run random.yaml --quiet --out random >random.out 2>&1
lacks_line "a finished run is not run again" random.out "not deterministic"
"$fl_sim" run random.yaml --quiet --repeat 0 --out unseen >random.out 2>&1
lacks_line "nor one that does not want it" random.out "not deterministic"

experiment nan.yaml nan "clients: 5" "stop: {rounds: 3}"
check "one that diverges ends as diverged" "$fl_sim" run nan.yaml --quiet --out nan
equal "in its round" "diverged 1" "$(json '"%s %s" % (d["ended"], d["diverged_round"])' <"$(find nan -name summary.json)")"
finish
