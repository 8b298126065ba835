#!/usr/bin/env bash
# The scripts that pass the figures of rounds to TensorBoard and MLflow, with those of a real federation. What
# TensorBoard's script writes is read back here byte by byte, and by tensorboard where it is installed.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../../system/lib.sh"
examples=$srcdir/deploy/examples
synthetic "$dir/data" 2 --seed 3
write_server srv "rounds: 3" "model: {preset: dnn60}" "round: {start_clients: 2, min_clients: 2}" \
  "evaluation: {every: 2, data: \"$dir/data/server\"}"
start_server srv
start_client c0 "$dir/data/client-000"
start_client c1 "$dir/data/client-001"
wait_for "all rounds" at_round srv 3
ctl srv rounds --format jsonl >"$dir/rounds.jsonl"
equal "three rounds" 3 "$(wc -l <"$dir/rounds.jsonl")"

### TensorBoard
says "without a folder" 1 "usage: flctl rounds" "$python" "$examples/rounds_to_tensorboard.py"
check "a run" "$python" "$examples/rounds_to_tensorboard.py" "$dir/runs/a" <"$dir/rounds.jsonl"
check "the event file has the figures" "$python" - "$dir/runs/a" "$dir/rounds.jsonl" <<'PY'
import glob, json, struct, sys

def crc32c(data):  # bit by bit: not the code of the script
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

assert crc32c(b"123456789") == 0xE3069283
def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

def fields(data):
    at = 0
    def varint():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return n
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 2: None, 5: 4}[key & 7]
            size = varint() if size is None else size
            value = data[at:at + size]
            at += size
        yield key >> 3, value

(path,) = glob.glob(sys.argv[1] + "/events.out.tfevents.*")
raw = open(path, "rb").read()
events = []
while raw:
    (n,) = struct.unpack("<Q", raw[:8])
    assert struct.unpack("<I", raw[8:12])[0] == masked(raw[:8])
    data, raw = raw[12:12 + n], raw[12 + n:]
    assert struct.unpack("<I", raw[:4])[0] == masked(data)
    raw = raw[4:]
    events.append(list(fields(data)))
assert dict(events[0])[3] == b"brain.Event:2"
rounds = [json.loads(line) for line in open(sys.argv[2])]
assert len(events) == 1 + len(rounds)
for event, r in zip(events[1:], rounds):
    event = dict(event)
    assert struct.unpack("<d", event[1])[0] == r["ended_ms"] / 1000 and event[2] == r["round"]
    found = {}
    for field, value in fields(event[5]):
        value = dict(fields(value))
        found[value[1].decode()] = struct.unpack("<f", value[2])[0]
    assert found.pop("seconds") > 0
    place = {"round", "attempt", "started_ms", "ended_ms"}
    want = {k: v for k, v in r.items() if k not in place and isinstance(v, (int, float))}
    assert set(found) == set(want), set(found) ^ set(want)
    for key, value in want.items():
        assert abs(found[key] - value) <= 1e-6 * abs(value), (key, found[key], value)
    assert ("accuracy" in found) == (r["accuracy"] is not None)
PY
if "$python" -c 'import tensorboard' 2>/dev/null; then
  check "tensorboard reads it" "$python" - "$dir/runs/a" <<'PY'
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
assert [e.step for e in events.Scalars("uplink_bytes")] == [1, 2, 3]
PY
else
  echo "skipped: $python has no tensorboard, only this test read the event file"
fi

### MLflow
says "without an experiment" 1 "usage: flctl rounds" "$python" "$examples/rounds_to_mlflow.py"
mkdir -p "$dir/empty" "$dir/stub/mlflow"
# What the script calls of mlflow, written down.
cat >"$dir/stub/mlflow/__init__.py" <<'PY'
import contextlib, os, sys, types
def note(*words):
    with open(os.environ["MLFLOW_NOTES"], "a") as f:
        print(*words, file=f)
def set_experiment(name):
    note("experiment", name)
@contextlib.contextmanager
def start_run():
    yield types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
    note("end")
class MlflowClient:
    def log_metric(self, run_id, key, value, timestamp=None, step=None):
        assert run_id == "r1" and isinstance(timestamp, int)
        note("metric", step, key, value)
    def set_tag(self, run_id, key, value):
        note("tag", key, value)
tracking = types.SimpleNamespace(MlflowClient=MlflowClient)
PY
export MLFLOW_NOTES=$dir/notes
check "a run of MLflow" env PYTHONPATH="$dir/stub" "$python" "$examples/rounds_to_mlflow.py" edge <"$dir/rounds.jsonl"
has_line "of the experiment" "$MLFLOW_NOTES" "experiment edge"
has_line "that ends" "$MLFLOW_NOTES" "end"
equal "each figure at its round" "1 2 3" "$(sed -n 's/^metric \([0-9]*\) uplink_bytes .*/\1/p' "$MLFLOW_NOTES" | paste -sd ' ')"
equal "not what was not measured" "2 3" "$(sed -n 's/^metric \([0-9]*\) accuracy .*/\1/p' "$MLFLOW_NOTES" | paste -sd ' ')"
if "$python" -c 'import mlflow' 2>/dev/null; then
  check "mlflow takes it" env MLFLOW_TRACKING_URI="file:$dir/mlruns" "$python" "$examples/rounds_to_mlflow.py" edge <"$dir/rounds.jsonl"
  check "and has it" "$python" - "file:$dir/mlruns" <<'PY'
import sys
import mlflow
client = mlflow.tracking.MlflowClient(sys.argv[1])
(run,) = client.search_runs([client.get_experiment_by_name("edge").experiment_id])
assert [m.step for m in client.get_metric_history(run.info.run_id, "uplink_bytes")] == [1, 2, 3]
PY
else
  says "which says so" 1 "no package mlflow for this Python" env PYTHONPATH="$dir/empty" "$python" "$examples/rounds_to_mlflow.py" edge
  echo "skipped: $python has no mlflow, an imitation of it took the figures"
fi
stop srv
finish
