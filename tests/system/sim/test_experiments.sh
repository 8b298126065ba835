#!/usr/bin/env bash
# A miniature of each experiment of bench/experiments and of the README: bit for bit the same for one and for two
# threads (with FL_SLOW_TESTS=no one thread: test_sim_run.sh proves it for one experiment), and for what is the same on every machine (rounds, clients, bytes, simulated times) the one that is
# recorded in experiments.csv. With another BLAS kernel trained weights differ in the last bits: accuracies may be off by
# a few test samples (under attack by any number), and coded updates and downloads, whose length follows from the weights, by a few bytes.
#   test_experiments.sh --record     prints the file anew
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
sim=$build/fl-sim
record=$srcdir/tests/system/experiments.csv
# Digits in place of MNIST, which is not everywhere; under their short name, which the results keep, wherever this was built.
export FL_DATA_DIR=$srcdir/deploy/data
digits=(--set "data={set: digits, method: shards, clients: 20, seed: trial}"
  --set "server.model={input: [1, 8, 8], layers: [flatten, dense 32, relu, dense 10]}" --set stop.accuracy=1)

# file, options…: $dir/NAME-1 and -2, and what is recorded of them
miniature() {
  local file=$1 name jobs
  shift
  name=$(basename "$file" .yaml)
  local threads=(1 2)
  ! everyday || threads=(1)
  for jobs in "${threads[@]}"; do
    check "$name runs with $jobs" "$sim" run "$file" --quiet --jobs "$jobs" --out "$dir/$name-$jobs" \
      --set stop.rounds=3 --set trials=1 --set server.round.start_clients=20 "$@" || return
  done
  [ ${#threads[@]} -eq 1 ] || check "$name: two threads change nothing" diff -r --exclude run.json --exclude .lock "$dir/$name-1" "$dir/$name-2"
  "$python" - "$name" "$dir/$name-1" >>"$dir/found.csv" <<'END'
import json, os, sys
name, folder = sys.argv[1:]
points = [point["point"] for point in json.load(open(os.path.join(folder, "run.json")))["points"]]
for point in points:
    for line in open(os.path.join(folder, point, "seed-1", "rounds.jsonl")):
        row = json.loads(line)
        best = row["personal_accuracy"] if row["personal_accuracy"] is not None else row["accuracy"]
        print(name, point, row["round"], row["responders"], row["up_update_bytes"], row["down_model_bytes"],
              row["time_us"], "" if best is None else f"{best:.4f}", sep=",")
END
}

echo "experiment,point,round,responders,up_update_bytes,down_model_bytes,time_us,accuracy" >"$dir/found.csv"
for file in "$srcdir"/bench/experiments/*.yaml; do
  case $file in
    */fedmcsa-synthetic.yaml | */defaults-personal.yaml | */imitation.yaml) miniature "$file" --set data.clients=20 --set server.evaluation.every=2 ;;
    # Their points name networks for pictures of 28 x 28.
    */fedmcsa-mnist.yaml | */fedmcsa-fashion.yaml)
      sed '/^- {label: dnn /d; s/model: {preset: [a-z]*}, //' "$file" >"$dir/$(basename "$file")"
      miniature "$dir/$(basename "$file")" "${digits[@]}" --set server.evaluation.every=2
      ;;
    # Krum behind buckets needs all its clients.
    */bucketing-mimic.yaml) miniature "$file" "${digits[@]}" --set data.clients=25 --set server.round.start_clients=25 ;;
    */bucketing-clean.yaml) miniature "$file" "${digits[@]}" --set data.clients=24 --set server.round.start_clients=24 ;;
    # Grids: one split, of the attacks the last one, and all rules.
    */heat-*.yaml | */tailored.yaml | */backdoor.yaml)
      grid=(--set "sweep.data=[{set: digits, method: iid, clients: 20, seed: trial}]")
      attack=$(sed -n 's/^  - {\(clients: [1-9].*\)}/\1/p' "$file" | tail -n 1)
      [ -z "$attack" ] || grid+=(--set "sweep.attackers=[{$attack}]")
      miniature "$file" "${digits[@]}" "${grid[@]}"
      ;;
    # One split of those that are compared.
    */fedldf.yaml | */igfl-devices.yaml)
      miniature "$file" "${digits[@]}" --set "sweep.data=[{set: digits, method: shards, clients: 20, seed: trial}]"
      ;;
    *) miniature "$file" "${digits[@]}" ;;
  esac
done
miniature "$srcdir/deploy/examples/what-would-it-save.yaml" "${digits[@]}"
# A point with daemons
point=$dir/hashed-confirm-1/hashed-growing
check "a point with daemons" "$build/fl-sim" run "$point/experiment.yaml" --quiet --local 20 --out "$dir/local" --set "stop={rounds: 3}" \
  --set "trials={seeds: [1]}"
three_rounds() { # folder
  head -n 3 "$(find "$1" -name rounds.jsonl)" | "$python" -c 'import json, sys
for r in map(json.loads, sys.stdin):
    print(r["round"], r["selected"], r["uplink_bytes"], r["downlink_bytes"], *("%.10g" % r[k] for k in ("accuracy", "loss", "train_loss")))'
}
equal "its rounds are those of the simulation" "$(three_rounds "$point/seed-1")" "$(three_rounds "$dir/local")"
# What is kept of a run, then of one with other seeds beside it, in a copy of the folder.
mkdir -p "$dir/kept/bench" "$dir/kept/docs"
cp -r "$srcdir/bench/experiments" "$dir/kept/bench/"
report=$dir/kept/bench/experiments/report.py
adafl=$srcdir/bench/experiments/adafl-mnist.yaml
check "a run is kept" "$python" "$report" --sim "$sim" keep "$dir/adafl-mnist-1"
check "with other seeds" "$sim" run "$adafl" --quiet --out "$dir/adafl-2" --set stop.rounds=3 --set "trials={seeds: [2, 3]}" \
  --set server.round.start_clients=20 "${digits[@]}"
check "it is kept beside the first" "$python" "$report" --sim "$sim" keep --add "$dir/adafl-2"
says "seeds that overlap are refused" 1 "expected the same or all others" "$python" "$report" --sim "$sim" keep --add "$dir/adafl-2"
check "each row is what fl-sim table makes of all seeds" "$python" - "$sim" "$dir" <<'END'
import csv, subprocess, sys
sim, folder = sys.argv[1:]
text = subprocess.run([sim, "table", "--merge", "--format", "csv", "--columns", "trials,best", folder + "/adafl-mnist-1", folder + "/adafl-2"],
                      check=True, capture_output=True, text=True).stdout
both = {row["point"]: row for row in csv.DictReader(text.splitlines())}
lines = open(folder + "/kept/bench/experiments/adafl-mnist.csv").read().splitlines()
assert "# seeds: 1 2 3" in lines, lines[:9]
rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
assert len(rows) == len(both) == 6
for row in rows:
    of = both[row["point"]]
    assert row["trials"] == of["trials"] == row["best.trials"] == "3", row
    for key in ("best", "best.std"):
        assert abs(float(row[key]) - float(of[key])) < 1e-12, (key, row[key], of[key])
END
check "its picture has a line for each row" "$python" - "$python" "$report" <<'END'
import subprocess, sys, xml.etree.ElementTree as tree
text = subprocess.run([*sys.argv[1:], "adafl-mnist", "--print"], check=True, capture_output=True, text=True).stdout
found = tree.fromstring(text).findall("{http://www.w3.org/2000/svg}polyline")
assert len(found) == 6 and all(len(line.get("points").split()) == 3 for line in found), text
END
# The scores of the attention, which are in the record of daemons.
check "silos with daemons" "$sim" run "$srcdir/bench/experiments/igfl-attention.yaml" --quiet --local 10 --keep-state --out "$dir/attention" \
  --set "stop={rounds: 3}" --set "trials={seeds: [1]}" --set "data={set: digits, method: silo, clients: 10, seed: trial, shard_size: 70}" \
  --set "server.model={input: [1, 8, 8], layers: [flatten, dense 10]}" --set server.training.batch_size=10
check "their scores are kept" "$python" "$report" --sim "$sim" keep "$dir/attention"
check "ten for each client, which add up to 1, and the picture has them all" "$python" - "$python" "$report" "$dir/kept/bench/experiments" <<'END'
import subprocess, sys
sys.path.insert(0, sys.argv[3])
import report
clients = report.scored(1)
assert [name for name, _, _ in clients] == [f"client-{i:03}" for i in range(10)], clients
assert all(labels and len(scores) == 10 and abs(sum(scores) - 1) < 1e-3 for _, labels, scores in clients), clients
text = subprocess.run([*sys.argv[1:3], "igfl-attention", "--print"], check=True, capture_output=True, text=True).stdout
assert text.count("<rect") == 101 and report.attention().count("\n| 1 | 0.") == 1, text
END
if [ "${1:-}" = --record ]; then
  cat "$dir/found.csv"
  exit
fi
check "as recorded" "$python" - "$record" "$dir/found.csv" <<'END'
import csv, sys
recorded, found = (list(csv.reader(open(name))) for name in sys.argv[1:])
assert len(recorded) == len(found), f"{len(recorded)} lines are recorded, found {len(found)}"
def like(a, b, share, least):
    return a == b or (a != "" and b != "" and abs(float(a) - float(b)) <= max(share * float(a), least))
attacked = ("attack", "heat-map", "tailored", "backdoor", "imitation")
for a, b in zip(recorded, found):
    coded = a[0].startswith("hashed") or any(name in a[1] for name in ("lean", "stc", "lattice", "hashed"))
    ok = a[:4] == b[:4] and all(like(a[i], b[i], 0.01 * coded, 8 * coded) for i in (4, 5, 6)) and \
        (a == b or like(a[7], b[7], 0, 1 if any(name in a[0] for name in attacked) else 0.02))
    assert ok, f"recorded {a}, found {b}"
END
finish
