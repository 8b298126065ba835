"""Run experiments of fl-sim from Python, and read their results.

    import fl_sim

    results = fl_sim.run("experiment.yaml", set={"server.training.learning_rate": 0.1}, jobs=2)
    results.rounds          # a row a round; a pandas DataFrame where pandas is installed, else a list of dictionaries

    results = fl_sim.load("experiment.results")

Needs the program fl-sim in PATH to run, and nothing beside the standard library. docs/simulation.md#in-python has more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

__version__ = "0.1.0"
__all__ = ["Error", "Results", "load", "run"]

#: The version of run.json that this module reads.
FORMAT = 1

Row = Dict[str, Any]


class Error(Exception):
    """A run that failed, with what fl-sim said; or a folder without results."""


class Results:
    """The results of a run. Each attribute is read from the files when it is used, also while the run is writing."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = os.fspath(path)
        self.run = _read_json(os.path.join(self.path, "run.json"))
        if not isinstance(self.run, dict) or self.run.get("format") != FORMAT:
            raise Error(f"{self.path}/run.json: not results of this version of fl-sim (expected format {FORMAT})")

    def __repr__(self) -> str:
        return f"fl_sim.load({self.path!r})"

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.run["experiment"]["name"])

    @property
    def points(self) -> List[str]:
        """Labels of the points of the sweep, in their order."""
        return [_label(p) for p in self.run["points"]]

    @property
    def rounds(self) -> Any:
        """A row for each round of each trial: point, seed, and every key of rounds.jsonl."""
        return _table(self._lines("rounds.jsonl"))

    @property
    def clients(self) -> Any:
        """A row for each client in an attempt at a round: point, seed, and every key of clients.jsonl.

        Empty unless the run had clients=True.
        """
        return _table(self._lines("clients.jsonl"))

    @property
    def summary(self) -> Any:
        """A row for each finished trial: point, seed, and summary.json with keys as accuracy.reached.0.9.time_us."""
        rows = []
        for head, folder in self._trials():
            path = os.path.join(folder, "summary.json")
            if os.path.exists(path):
                rows.append({**head, **{k: v for k, v in _flat(_read_json(path)).items() if k not in (*head, "label")}})
        return _table(rows)

    def _trials(self) -> Iterator[Tuple[Row, str]]:
        for point in self.run["points"]:
            for seed in self.run["seeds"]:
                folder = os.path.join(self.path, point["point"], f"seed-{seed}")
                if os.path.isdir(folder):
                    yield {"point": _label(point), "seed": seed}, folder

    def _lines(self, name: str) -> List[Row]:
        rows = []
        for head, folder in self._trials():
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if not line.endswith("\n"):
                        break  # the run is writing it
                    try:
                        rows.append({**head, **json.loads(line)})
                    except ValueError as e:
                        raise Error(f"{path}:{number}: {e}") from e
        return rows


def load(path: "str | os.PathLike[str]") -> Results:
    """The results in a folder of fl-sim run. Raises Error."""
    return Results(path)


def run(
    path: "str | os.PathLike[str]",
    *,
    set: Optional[Mapping[str, Any]] = None,
    out: Union[None, str, "os.PathLike[str]"] = None,
    jobs: Optional[int] = None,
    clients: bool = False,
    training: bool = True,
    keep_state: bool = False,
    progress: bool = True,
    program: str = "fl-sim",
) -> Results:
    """Run an experiment, or what is missing of it, and load its results.

    path
        The file of the experiment.
    set
        Keys of the file and their values, in place of those of the file: as fl-sim run --set.
    out
        Folder of the results; not given: the file's name with .results in place of .yaml, in the current folder.
    jobs, clients, training, keep_state
        As --jobs, --clients, --no-training (training=False) and --keep-state.
    progress
        Print the lines of progress to stderr as they come.
    program
        fl-sim, if it is not in PATH.

    Raises Error with the message of fl-sim. Ctrl-C stops fl-sim; the same call continues the run.
    """
    file = os.fspath(path)
    folder = os.fspath(out) if out is not None else os.path.basename(file).removesuffix(".yaml") + ".results"
    command = [program, "run", "--out", folder]
    if jobs is not None:
        command += ["--jobs", str(jobs)]
    command += ["--clients"] * bool(clients) + ["--no-training"] * (not training) + ["--keep-state"] * bool(keep_state)
    command += [] if progress else ["--quiet"]
    for key, value in (set or {}).items():
        command += ["--set", f"{key}={json.dumps(value)}"]  # JSON is YAML
    command += ["--", file]
    last: List[str] = []
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    last = [*last, line.rstrip("\n")][-20:]
                    if progress:
                        print(line, end="", file=sys.stderr, flush=True)
            except BaseException:
                child.terminate()  # it stops after the last committed rounds
                raise
    except OSError as e:
        raise Error(f"cannot start '{program}': {e.strerror}") from e
    if child.returncode != 0:
        raise Error("\n".join(last) or f"fl-sim run ended with {child.returncode}")
    return load(folder)


def _label(point: Mapping[str, Any]) -> str:
    return str(point["label"] or point["point"])


def _read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as e:
        raise Error(f"{path}: {e.strerror}: not a folder of results of fl-sim") from e
    except ValueError as e:
        raise Error(f"{path}: {e}") from e


def _flat(value: Mapping[str, Any], before: str = "") -> Row:
    flat: Row = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat.update(_flat(inner, f"{before}{key}."))
        else:
            flat[before + key] = inner
    return flat


def _table(rows: List[Row]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
