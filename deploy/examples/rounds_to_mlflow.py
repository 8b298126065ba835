#!/usr/bin/env python3
"""Figures of rounds for MLflow.

    flctl rounds --last 0 --format jsonl | rounds_to_mlflow.py edge
    flctl rounds --last 0 --follow --format jsonl | rounds_to_mlflow.py edge

Reads one JSON object per line and logs each figure as a metric of one new run of the experiment that the argument names;
its step is the round, its time that of the commit. The tracking server is that of MLFLOW_TRACKING_URI, by default the
folder mlruns. Needs the package mlflow (pip install mlflow-skinny is enough). A change of a setting in a round becomes a
tag of the run.
"""
import json
import sys

# What places a round instead of measuring it.
PLACE = {"round", "attempt", "started_ms", "ended_ms", "generation", "abandoned_ms"}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: flctl rounds --format jsonl | rounds_to_mlflow.py EXPERIMENT")
    try:
        import mlflow
    except ImportError:
        sys.exit("rounds_to_mlflow.py: no package mlflow for this Python: pip install mlflow-skinny")
    mlflow.set_experiment(sys.argv[1])
    with mlflow.start_run() as run:
        client = mlflow.tracking.MlflowClient()
        for line in sys.stdin:
            figures = json.loads(line)
            for key, value in figures.items():
                if key not in PLACE and isinstance(value, (int, float)) and not isinstance(value, bool):
                    client.log_metric(run.info.run_id, key, value, timestamp=figures["ended_ms"], step=figures["round"])
            for change in figures.get("changes", []):
                client.set_tag(run.info.run_id, "round %d: %s" % (figures["round"], change.split(":")[0]), change)


if __name__ == "__main__":
    main()
