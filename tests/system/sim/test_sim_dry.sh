#!/usr/bin/env bash
# fl-sim run --no-training: for every preset the bytes of each round are those of a run that trains, and
# no figure is invented for what was not computed. Two lengths depend on values and may differ a little:
# of counts in reports, evaluations and plans, and of ternary codes.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
fl_sim=$build/fl-sim
trap end_all EXIT
cd "$dir" || exit 99

presets=$("$build/fl-serverd" --help | sed -n '/^algorithms:/,/^networks:/p' | awk 'NF > 2 {print $1}')
cat >e.yaml <<END
server:
  algorithm: fedavg
  model: {input: [64], layers: [dense 32, relu, dense 10]}
  training: {epochs: 2, batch_size: 5, learning_rate: 0.05}
  evaluation: {every: 2, clients: yes}
client: {data: {validation: 0.2}, summaries: yes, least_group: 2}
data: {set: $srcdir/deploy/data/optdigits, method: dirichlet, alpha: 0.5, clients: 20, seed: 3}
stop: {rounds: 4}
sweep: {server.algorithm: [$(echo "$presets" | paste -sd,)]}
END
check "it trains" "$fl_sim" run e.yaml --quiet --clients --out real
check "it does not train" "$fl_sim" run e.yaml --quiet --clients --no-training --out dry

cat >compare.py <<'END'
import glob, json, os, sys

EXACT = ["uplink_bytes", "downlink_bytes", "up_update_bytes", "up_summary_bytes", "up_wasted_bytes",
         "down_model_bytes", "down_state_bytes", "down_personal_model_bytes", "down_summary_bytes",
         "down_evaluation_bytes"]
CLOSE = ["up_report_bytes", "up_control_bytes", "down_control_bytes"]
ABSENT = ["train_loss", "accuracy", "loss", "client_accuracy_mean", "client_loss_mean"]
bad = []


def rows(folder, name):
    with open(f"{folder}/seed-1/{name}.jsonl") as f:
        return [json.loads(line) for line in f]


def complain(point, key, real, dry):
    bad.append(f"{point}: {key} is {dry} without training, {real} with it")


points = sorted(os.path.dirname(os.path.dirname(p)) for p in glob.glob("real/*/seed-1/rounds.jsonl"))
for point in points:
    other = point.replace("real/", "dry/", 1)
    for real, dry in zip(rows(point, "rounds"), rows(other, "rounds")):
        for key in EXACT + CLOSE:
            coded = "lean" in point or "stc" in point or "topk" in point or "qsgd" in point
            if key in ("downlink_bytes", "down_model_bytes", "down_evaluation_bytes") and coded:
                continue  # Without training nothing changes: whole models are counted, the most that can be.
            # The values that are drawn have shorter tails than updates, for which qsgd needs fewer bits.
            slack = (0.3 if "qsgd" in point else 0.1) * real[key] if key in CLOSE or coded else 0
            if abs(real[key] - dry[key]) > slack:
                complain(point, key, real[key], dry[key])
        for key in ABSENT:
            if dry[key] is not None:
                complain(point, key, real[key], dry[key])
    if point.endswith("=fedavg"):
        for real, dry in zip(rows(point, "clients"), rows(other, "clients")):
            for key in ["train_loss", "received_accuracy", "received_loss", "personal_accuracy", "personal_loss"]:
                if dry[key] is not None:
                    complain(point, key, real[key], dry[key])
            for key in ["samples", "steps"]:
                if real[key] != dry[key]:
                    complain(point, key, real[key], dry[key])
print(len(points), "presets,", len(bad), "differences")
print("\n".join(bad))
sys.exit(len(bad) != 0)
END
check "bytes and figures of all presets" "$python" compare.py
equal "every preset is compared" "$(find real -name rounds.jsonl | wc -l)" "$(echo "$presets" | wc -l)"
equal "in a table the loss is empty" "$(head -n 2 'dry/01-algorithm=fedavg/seed-1/rounds.csv' | "$python" -c 'import csv, sys; print(next(csv.DictReader(sys.stdin))["train_loss"])')" ""

"$fl_sim" run e.yaml --quiet --no-training --set sweep= --set server.algorithm=lean+scaffold --out beside 2>beside.err
check "what no codec shrinks is said" grep -q "warning: 'base': codec 'ternary' makes .* of an update of .*, but solver 'scaffold' sends 'control_change'" beside.err

if command -v gnuplot >/dev/null; then
  says "a plot of them is one of bytes" 0 "drawing uplink_bytes; --y downlink_bytes" "$fl_sim" plot dry/01-*
  check "it is there" test -s uplink_bytes-rounds.svg
fi
says "no plot of an accuracy" 1 "'accuracy' is unknown in all rounds of these results" "$fl_sim" plot --y accuracy dry/01-*
finish
