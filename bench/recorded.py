"""What bench/all writes and bench/compare reads: a JSON object a line, for one run of one benchmark.

    {"benchmark": "wire", "arguments": ["--mb", "1024"], "run": 1, "when": "2026-11-23T01:40:00Z", "seconds": 5.3,
     "commit": "c4e6bc41c0de", "changed": false, "load": [0.3, 0.4, 0.5], "machine": {"cpu": "…", …},
     "figures": [{"line": "wire", "values": {"upload_mb_s": 5034, …}}, …]}

A benchmark that failed has "error", a text, in place of "figures". A benchmark prints its figures as

    NAME: key=value key=value …

and the names here are those that it printed.
"""
import decimal
import json
import re
import shlex

PRINTED = re.compile(r"([A-Za-z][A-Za-z0-9_ ]*): +(.*\S)")
PAIR = re.compile(r"([A-Za-z][A-Za-z0-9_]*)=(\S+)")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")  # of JSON


class Bad(Exception):
    """What a person gave us cannot be used; the text says where and why."""


class Number(float):
    """What was printed with a point or an exponent, and what one in its last digit is."""

    def __new__(cls, text):
        self = super().__new__(cls, text)
        self.step = 10.0 ** decimal.Decimal(text).as_tuple().exponent
        return self


def printed(text):
    """The figures in what a benchmark printed, as JSON text; None when there are none. Numbers keep their digits."""
    figures = []
    for line in text.splitlines():
        found = PRINTED.fullmatch(line.strip())
        pairs = dict(PAIR.findall(found[2])) if found else {}
        if pairs:
            values = ", ".join(f"{json.dumps(key)}: {value if NUMBER.fullmatch(value) else json.dumps(value)}"
                               for key, value in pairs.items())
            figures.append(f'{{"line": {json.dumps(found[1])}, "values": {{{values}}}}}')
    return f"[{', '.join(figures)}]" if figures else None


# --- reading ---

class Record:
    """One line of a file."""

    def __init__(self, where, value):
        self.where = where
        for key, kind in (("benchmark", str), ("arguments", list), ("commit", str), ("when", str), ("machine", dict)):
            if not isinstance(value.get(key), kind):
                raise Bad(f"{where}: key '{key}' is missing or of another type: expected a line of bench/all")
        self.command = shlex.join([value["benchmark"], *map(str, value["arguments"])])
        self.commit = value["commit"] + ("+" if value.get("changed") else "")
        self.when, self.machine, self.load = value["when"], value["machine"], value.get("load", [])
        self.error = value.get("error")
        self.figures = [] if self.error is not None else self.checked(value.get("figures"))

    def checked(self, figures):
        """(name of the printed line, its values) each."""
        if not isinstance(figures, list) or not figures:
            raise Bad(f"{self.where}: {self.command}: key 'figures' is missing or empty, and there is no 'error'")
        for one in figures:
            if (not isinstance(one, dict) or not isinstance(one.get("line"), str) or not isinstance(one.get("values"), dict)
                    or not all(isinstance(value, (int, float, str)) for value in one["values"].values())):
                raise Bad(f"{self.where}: {self.command}: expected {{\"line\": NAME, \"values\": {{KEY: NUMBER or TEXT}}}} "
                          "in 'figures'")
        return [(one["line"], one["values"]) for one in figures]


def read(path):
    """The records of a file, in its order."""
    records = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                where = f"{path}:{number}"
                try:
                    value = json.loads(line, parse_float=Number)
                except ValueError as e:
                    raise Bad(f"{where}: no JSON: {e}; expected the lines that bench/all writes") from e
                if not isinstance(value, dict):
                    raise Bad(f"{where}: expected a JSON object a line, as bench/all writes them")
                records.append(Record(where, value))
    except (OSError, UnicodeDecodeError) as e:
        raise Bad(f"{path}: {e.strerror if isinstance(e, OSError) else e}") from e
    if not records:
        raise Bad(f"{path}: holds no line")
    return records


# --- what a figure means ---

# The first row that matches "LINE KEY" says which direction is better, and the words for better and worse. THEIRS is
# what ours is measured against in the same run: it moves with the machine, and nothing of ours got better or worse.
FASTER, SMALLER, BETTER, THEIRS = ("faster", "slower"), ("smaller", "larger"), ("better", "worse"), ("machine", "machine")
KINDS = [(re.compile(pattern), more_is_better, words) for pattern, more_is_better, words in (
    (r".* (raw_tcp_mb_s|raw_write_s|\w+_peak_gflops|torch_\w+|wire_\w*s|loop_\w+|fma_ratio|fma_both_gflops)", True, THEIRS),
    (r"(loop|torch) .*", True, THEIRS),
    (r".* \w*(samples_per_s|mb_s|gflops)", True, FASTER),
    (r".* \w*(share_of_peak|peak_share|accuracy|same_late_percent)", True, BETTER),
    (r"threads (one|both|lowest|highest)", True, FASTER),
    # Ours over something else that does the same; elsewhere a ratio says how many times more.
    (r"(wire|tls|train|against|threads) \w*ratio", True, BETTER),
    (r".* (\w*ratio|exponent|different|imports|\w+_percent)", False, BETTER),
    (r".* (\w+_)?(ms|us|ns|s|seconds|min|max)", False, FASTER),
    (r".* (\w+_)?(bytes|kb|mb|models)", False, SMALLER),
)]
# They tell lines of one name apart; so does what nothing here knows.
ARGUMENTS = {"model", "algorithm", "batch", "clients", "rounds", "model_mb", "tls", "certificate", "known", "responders",
             "samples", "values", "parameters", "selected", "hostile", "threads", "rate_mb_s", "cores", "torch", "wanted", "upload",
             "durability"}
# What a run found out about its surroundings.
FACTS = {"kernel", "aes", "hash", "n", "instructions", "version", "tried", "best_share"}


def kind(line, key):
    """(more is better, words for better and worse), or None of what is no measured figure."""
    if key in ARGUMENTS or key in FACTS or (line, key) == ("hand_over", "mb"):
        return None
    return next(((more, words) for pattern, more, words in KINDS if pattern.fullmatch(f"{line} {key}")), None)


def is_known(line, key):
    return key in ARGUMENTS or key in FACTS or (line, key) == ("hand_over", "mb") or kind(line, key) is not None


def label(line, values):
    """The line's name, and what it repeats of its arguments."""
    arguments = [f"{key}={value}" for key, value in values.items() if key not in FACTS and kind(line, key) is None]
    return line + (f"[{' '.join(arguments)}]" if arguments else "")
