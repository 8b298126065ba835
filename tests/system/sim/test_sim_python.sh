#!/usr/bin/env bash
# The Python module fl_sim: the notebook of docs/simulation.md runs, and its tables are those of the files.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../lib.sh"
export PYTHONPATH=$srcdir/client/python PYTHONDONTWRITEBYTECODE=1 PATH=$build:$PATH FL_DATA_DIR=$srcdir/deploy/data
cd "$dir" || exit 99
check "an experiment" fl-sim new digits
says "the notebook runs" 0 "fedldf: accuracy" "$python" "$srcdir/client/python/examples/experiment_notebook.py" digits.yaml
says "it shows all rounds: two points, three seeds, three rounds" 0 "18 rounds: point, seed, round" \
  "$python" "$srcdir/client/python/examples/experiment_notebook.py" digits.yaml

# As lists, whether pandas is there or not
cat >tables.py <<'END_OF_TABLES'
import csv, glob, json, os, sys
sys.modules["pandas"] = None
import fl_sim

r = fl_sim.load("digits.results")
lines = [json.loads(line) for p in ("1-fedavg", "2-fedldf") for s in (1, 2, 3) for line in open(f"digits.results/{p}/seed-{s}/rounds.jsonl")]
assert [{k: v for k, v in row.items() if k not in ("point", "seed")} for row in r.rounds] == lines
assert [(row["point"], row["seed"]) for row in r.summary] == [(p, s) for p in ("fedavg", "fedldf") for s in (1, 2, 3)]
table = list(csv.DictReader(open("digits.results/results.csv")))
assert [float(t["accuracy.last"]) for t in table] == [row["accuracy.last"] for row in r.summary]
assert {row["name"] for row in r.clients} >= {"client-000", "client-009"}

with open("digits.results/1-fedavg/seed-1/rounds.jsonl", "a") as file:
    file.write('{"round": 4')
assert len(r.rounds) == 18, "a line that is being written is left out"


def fails(text, call):
    try:
        call()
    except fl_sim.Error as e:
        assert text in str(e), str(e)
    else:
        raise AssertionError(f"no error with '{text}'")


fails("not a folder of results of fl-sim", lambda: fl_sim.load("nowhere"))
fails("unknown key", lambda: fl_sim.run("digits.yaml", set={"server.roundz": 1}, out="bad", progress=False))
fails("cannot start 'no-such-fl-sim'", lambda: fl_sim.run("digits.yaml", program="no-such-fl-sim"))
open("broken.json", "w").write("{")
os.makedirs("broken"); os.replace("broken.json", "broken/run.json")
fails("broken/run.json", lambda: fl_sim.load("broken"))
os.makedirs("other"); json.dump({"format": 9}, open("other/run.json", "w"))
fails("expected format 1", lambda: fl_sim.load("other"))
END_OF_TABLES
check "the tables are those of the files, and errors say what is wrong" "$python" tables.py

# As data frames: the same rows, and what a notebook does with them.
if "$python" -c 'import pandas' 2>/dev/null; then
  cat >frames.py <<'END_OF_FRAMES'
import sys
import pandas
import fl_sim

frames = fl_sim.load("digits.results")
tables = {name: getattr(frames, name) for name in ("rounds", "summary", "clients")}
assert all(isinstance(t, pandas.DataFrame) for t in tables.values()), {n: type(t) for n, t in tables.items()}
sys.modules["pandas"] = None
plain = fl_sim.load("digits.results")
lists = {name: getattr(plain, name) for name in tables}
sys.modules["pandas"] = pandas
for name, frame in tables.items():
    rows = lists[name]
    assert len(frame) == len(rows) > 0, name
    assert list(frame.columns)[:2] == list(rows[0])[:2], name
    for have, want in zip(frame.to_dict("records"), rows):
        assert all(have[key] == value or value is None or value != value for key, value in want.items()), (have, want)
rounds = tables["rounds"]
curve = rounds.groupby(["point", "round"])["accuracy"].mean().unstack("point")
assert curve.shape == (3, 2) and curve.notna().all().all(), curve
best = tables["summary"].groupby("point")["accuracy.last"].mean()
assert set(best.index) == {"fedavg", "fedldf"} and best.between(0, 1).all(), best
sent = tables["clients"].pivot_table(index="name", columns="point", values="bytes_up", aggfunc="sum")
assert (sent["fedldf"] < sent["fedavg"]).all(), sent
END_OF_FRAMES
  check "with pandas the tables are data frames of the same rows" "$python" frames.py
else
  echo "skipped: $python has no pandas (python3-pandas), the data frames were not checked"
fi
finish
