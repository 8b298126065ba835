#!/usr/bin/env bash
# Values to be predicted: fl-data, fl-sim and the daemons train and evaluate models with model.loss, and refuse data
# that do not fit the loss.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
trap end_all EXIT
cd "$dir" || exit 99

# price = 0.5 a - 0.25 b + 0.1, and two labels: a > b, and b > 0.5.
mkdir raw
for part in train test; do
  { echo "a,b,price,more,high"
    for ((i = 0; i < 120; i++)); do
      a=$((i * 37 % 101)) b=$((i * 53 % 97))
      printf '0.%03d,0.%03d,%d.%05d,%d,%d\n' $((a * 9)) $((b * 9)) 0 $((a * 450 - b * 225 + 25000)) $((a > b ? 1 : 0)) $((b * 9 > 500 ? 1 : 0))
    done
  } >raw/$part.csv
done
"$build/fl-data" split --input raw --output prices --clients 3 --regression --target price --drop more,high >split.log 2>&1 ||
  fail "fl-data split: $(cat split.log)"
"$build/fl-data" split --input raw --output shared --clients 3 --test-share 0.25 --regression --target price --drop more,high >>split.log 2>&1 ||
  fail "fl-data split: $(cat split.log)"
"$build/fl-data" split --input raw --output labels --clients 3 --regression --target more,high --drop price >>split.log 2>&1 ||
  fail "fl-data split: $(cat split.log)"
"$build/fl-data" convert --input raw --output classes --target more --drop price,high >>split.log 2>&1 || fail "fl-data convert: $(cat split.log)"
"$build/fl-data" convert --input raw --output prices.all --regression --target price --drop more,high >>split.log 2>&1 || fail "fl-data convert"
"$build/fl-data" convert --input raw --output labels.all --regression --target more,high --drop price >>split.log 2>&1 || fail "fl-data convert"

sim() { # name, data set, model, learning rate
  printf '%s\n' "server:" "  algorithm: fedavg" "  model: $3" "  training: {epochs: 5, batch_size: 10, learning_rate: ${4:-0.5}}" \
    "data: {set: ./$2, clients: 3}" "stop: {rounds: 30}" >"$1.yaml"
  "$build/fl-sim" run "$1.yaml" --quiet --out "$1.results" >"$1.out" 2>&1
}
# name, figure: that of the last round
last() { "$python" -c 'import csv, glob, sys
row = list(csv.DictReader(open(glob.glob(sys.argv[1] + ".results/*/*/rounds.csv")[0])))[-1]
print(row[sys.argv[2]])' "$1" "$2"; }
sim mse prices.all "{input: [2], layers: [dense 1], loss: mse}"
check "fl-sim learns a line with the squared error" "$python" -c 'import sys; assert float(sys.argv[1]) < 1e-4, sys.argv' "$(last mse loss)"
equal "without an accuracy" "" "$(last mse accuracy)$(last mse client_accuracy_mean)"
printf '%s\n' "server:" "  algorithm: fedavg" "  model: {input: [2], layers: [dense 1], loss: mae}" "  training: {epochs: 5, batch_size: 10, learning_rate: 0.02}" \
  "  evaluation: {every: 1, clients: yes, metrics: [mae, mse]}" "data: {path: ./shared}" "stop: {rounds: 3}" >metrics.yaml
check "fl-sim has the metrics of values" "$build/fl-sim" run metrics.yaml --quiet --out metrics.results --keep-state --clients
cat >metrics.py <<'PY'
import glob, json, struct, sys
import numpy as np
def tensors(path):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + size])
    return {n: np.frombuffer(raw[8 + size + v["data_offsets"][0]:8 + size + v["data_offsets"][1]], np.float32).reshape(v["shape"]).astype(np.float64)
            for n, v in head.items() if n != "__metadata__"}
def measure(model, folders):
    errors = np.concatenate([np.load(f + "/test-x.npy").reshape(-1, 2).astype(np.float64) @ model["fc1.weight"].T + model["fc1.bias"]
                             - np.load(f + "/test-y.npy").reshape(-1, 1) for f in folders])
    return {"mae": np.abs(errors).mean(), "mse": (errors**2).mean()}
state = glob.glob("metrics.results/*/*/state/server/models")[0]
rows = [json.loads(line) for line in open(glob.glob("metrics.results/*/*/rounds.jsonl")[0])]
clients = sorted(glob.glob("shared/client-*"))
for prefix, folders, r in ("", ["shared/server"], 3), ("received/", clients, 2):
    want = measure(tensors(state + "/round-%06d.safetensors" % r), folders)
    for name, value in want.items():
        have = rows[2]["metrics"][prefix + name]
        assert abs(have - value) <= 1e-6 * max(1, value), (prefix, name, have, value)
assert rows[2]["accuracy"] is None and rows[2]["client_accuracy_mean"] is None, rows[2]
assert abs(rows[2]["loss"] - rows[2]["metrics"]["mae"]) < 1e-9
assert rows[2]["client_loss_mean"] > 0
each = [json.loads(line) for line in open(glob.glob("metrics.results/*/*/clients.jsonl")[0])]
of_round = {c["name"]: c for c in each if c["round"] == 3}
assert sorted(of_round) == ["client-000", "client-001", "client-002"], of_round
for name, c in of_round.items():
    want = measure(tensors(state + "/round-000002.safetensors"), ["shared/" + name])
    assert c["evaluation_samples"] == len(np.load("shared/" + name + "/test-x.npy")) and c["received_accuracy"] is None, c
    for metric, value in want.items():
        assert abs(c["metrics"]["received/" + metric] - value) <= 1e-6 * max(1, value), (metric, c, value)
    assert abs(c["received_loss"] - c["metrics"]["received/mae"]) < 1e-9, c
PY
check "they are those of numpy, on the server, on the clients, and of each client" "$python" metrics.py
"$build/fl-sim" table metrics.results --columns loss,metrics.received/mse >table.out
check "a table has the loss and a metric" grep -qE '0\.[0-9]+.*0\.[0-9]+' table.out
sed 's/stop: {rounds: 3}/stop: {rounds: 3, accuracy: 0.9}/' metrics.yaml >accuracy.yaml
"$build/fl-sim" run accuracy.yaml --quiet --out accuracy.results >accuracy.out 2>&1 && note_failure "a stopping rule without an accuracy is accepted"
has_line "a stopping rule on the accuracy is refused with its line" accuracy.out "accuracy.yaml:7: key 'stop.accuracy': the network predicts values"
sim mae prices.all "{input: [2], layers: [dense 1], loss: mae}" 0.02
check "and with the absolute error" "$python" -c 'import sys; assert float(sys.argv[1]) < 0.05, sys.argv' "$(last mae loss)"
sim bce labels.all "{input: [2], layers: [dense 8, tanh, dense 2], loss: bce}"
check "several labels are learned, and the accuracy is that of all of them" "$python" -c 'import sys; assert float(sys.argv[1]) > 0.85, sys.argv' "$(last bce accuracy)"

# The folders of the clients, and the daemons on them
of_folders() { # name, further arguments of fl-sim
  printf '%s\n' "server:" "  algorithm: fedavg" "  model: {input: [2], layers: [dense 1], loss: mse}" \
    "  training: {epochs: 5, batch_size: 10, learning_rate: 0.5}" "data: {path: ./$1}" "stop: {rounds: 5}" >"$1.yaml"
  check "$1: it runs" "$build/fl-sim" run "$1.yaml" --quiet --out "$1.$2" "${@:3}"
}
rows_of() { "$python" -c 'import csv, glob, sys
for r in csv.DictReader(open(glob.glob(sys.argv[1] + "/*/*/rounds.csv")[0])):
    print(r["round"], *("%.10g" % float(r[k]) for k in ("loss", "train_loss")))' "$1"; }
of_folders prices folders
of_folders prices daemons --local 3
equal "each client has its values" "$(rows_of prices.folders)" "$(rows_of prices.daemons)"
check "which are learned" "$python" -c 'import sys; assert float(sys.argv[1].split()[-1]) < 1e-2, sys.argv' "$(rows_of prices.folders | tail -n 1)"
cp -r prices others
"$python" - <<'PY'
import glob, numpy
for path in glob.glob("others/client-*/train-y.npy"):
    numpy.save(path, numpy.load(path) + numpy.float32(1))
PY
of_folders others folders
hash_of() { json 'list(d["partitions"].values())[0]' <"$1/run.json"; }
check "other values are other data" test "$(hash_of prices.folders)" != "$(hash_of others.folders)"

refuses() { # name, text, arguments of sim
  sim "${@:3}" && note_failure "$1: fl-sim succeeded"
  has_line "$1" "$3.out" "$2"
}
refuses "values without a loss for them" "the network predicts 0 values (0: a class), the data has 1: model.loss and the labels do not fit" \
  plain prices.all "{input: [2], layers: [dense 2]}"
refuses "a loss of values without values" "the network predicts 1 values (0: a class), the data has 0" \
  wrong classes "{input: [2], layers: [dense 1], loss: mse}"

for loss in cross_entropy mse; do
  write_server "mix-$loss" "algorithm: fedavg" "strategy: {solver: fedmix}" "model: {input: [2], layers: [dense 2], loss: $loss}"
  "$build/fl-serverd" --check-config "mix-$loss.yaml" >"mix-$loss.out" 2>&1
done
has_line "FedMix has no classes to mix" mix-mse.out "mixes the classes of samples, and the network predicts values: expected loss: cross_entropy"
lacks_line "and mixes them otherwise" mix-cross_entropy.out "mixes the classes"

write_server s "algorithm: fedavg" "model: {input: [2], layers: [dense 1], loss: mse}" "round: {start_clients: 3, min_clients: 3}" "rounds: 20" \
  "training: {epochs: 5, batch_size: 10, learning_rate: 0.5}" "evaluation: {every: 1, data: $dir/shared/server, clients: yes, metrics: [mae, mse]}"
start_server s
for k in 0 1 2; do
  start_client "s-$k" "$dir/shared/client-00$k" "name: c$k"
done
wait_for "the federation has finished" in_log s "all rounds are done"
check "the daemons learn it too" grep -qE 'loss=(0\.000|[0-9.]+e-)' "$dir/s.log"
ctl s rounds --json >rounds.json
equal "rounds have metrics and no accuracy" "True None None" "$(json '" ".join(map(str, [set(d[-1]["metrics"]) >= {"mae", "mse", "received/mae", "received/mse"}, d[-1]["accuracy"], d[-1]["received_accuracy"]]))' <rounds.json)"
ctl s participations --round 20 --json >parts.json
equal "each client has its own" "3 True" "$(json 'str(len(d)) + " " + str(all(p["received_accuracy"] is None and p["evaluation_samples"] > 0 and
  abs(p["metrics"]["received/mse"] - p["received_loss"]) < 1e-6 for p in d))' <parts.json)"
equal "which add up to those of the round" True "$(json 'abs(sum(p["metrics"]["received/mae"] * p["evaluation_samples"] for p in d) /
  sum(p["evaluation_samples"] for p in d) - json.load(open("rounds.json"))[-1]["metrics"]["received/mae"]) < 1e-9' <parts.json)"
check "and are printed" grep -qE 'metrics received/mae=[0-9.e-]+ received/mse=' <(ctl s participations --round 20)
check "status shows the loss" grep -qE '^loss +[0-9]' <(ctl s status)
lacks_line "and no accuracy" <(ctl s status) "accuracy"
check "flctl exports it as ONNX" ctl s export --onnx --output "$dir/model.onnx"
check "with the operators of its layers" grep -q Gemm "$dir/model.onnx"
equal "and nothing else" "model.onnx" "$(cd "$dir" && ls model.onnx*)"
stop s
write_server t "algorithm: fedavg" "model: {input: [2], layers: [dense 1], loss: mse}" "round: {start_clients: 1}"
start_server t
start_client t-0 "$dir/classes" "name: c3"
wait_for "a client with classes says why it cannot take part" in_log t-0 "the server's network predicts 1 values (0: a class), the training data has 0"
finish
