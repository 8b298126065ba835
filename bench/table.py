"""The table of README.md, of a file of bench/all: rows name figures, and a figure that is not there is an error.

In a row's text {LINE.KEY} is the median of a figure that the benchmark printed, {LINE.KEY/1e6} that by a number, and
{LINE[key=value].KEY} says which line when several begin alike.
"""
import os
import re
import shlex
import statistics

import recorded
from recorded import Bad

TRAINED = "{train.samples_per_s} samples/s, {train.ratio} times PyTorch"
ROUND = "{round.seconds} s, {round.ratio} times a TCP stream of its bytes; server's peak {round.server_peak_rss_mb} MB"
ROWS = (
    ("training 784-10 (mlr), batch 20, one thread", TRAINED, "train --model mlr --batch 20 --threads 1 --torch"),
    ("training 784-200-200-10 (mlp200), batch 10", TRAINED, "train --model mlp200 --batch 10 --threads 1 --torch"),
    ("the same, batch 50", TRAINED, "train --model mlp200 --batch 50 --threads 1 --torch"),
    ("training a convolutional network (cifar_cnn32), batch 100", TRAINED,
     "train --model cifar_cnn32 --batch 100 --threads 1 --torch"),
    ("training fedmix_cnn, batch 10", TRAINED, "train --model fedmix_cnn --batch 10 --threads 1 --torch"),
    ("training vgg9_bn, batch 64", TRAINED + ", {train.peak_rss_bytes/1e6} MB in all",
     "train --model vgg9_bn --batch 64 --threads 1 --torch"),
    ("fl-clientd training vgg9_bn, batch 64, on 1 000 pictures", "peak {client.client_peak_mb} MB",
     "client --model vgg9_bn --batch 64"),
    ("a round of 10 clients x 100 MB, no training", ROUND, "round --clients 10 --model-mb 100 --rounds 7"),
    ("the same, FedLDF's uploads", ROUND, "round --clients 10 --model-mb 100 --rounds 7 --upload fedldf"),
    ("the same, ternary uploads", ROUND, "round --clients 10 --model-mb 100 --rounds 7 --upload ternary"),
    ("the first one with durability power", ROUND, "round --clients 10 --model-mb 100 --rounds 7 --durability power"),
    ("a round of 200 clients x 0.8 MB", ROUND, "round --clients 200 --model-mb 0.8 --rounds 15"),
    ("a round of 100 clients with 1 430 parameters", "{round.seconds/1e-3} ms",
     "round --clients 100 --parameters 1430 --rounds 100"),
    ("calls beside a raw TCP stream, up and down", "{wire.upload_ratio} and {wire.download_ratio} times its "
     "{wire.raw_tcp_mb_s/1e3} GB/s",
     "wire --mb 1024 --runs 5 --tls --cpu"),
    ("an idle client at the server, over TLS with its certificate", "{idle[certificate=yes].bytes/1e3} KB", "idle"),
    ("the commit of 100 responders among 100 000 known clients", "{commit[known=100000].commit_ms} ms", "commit"),
    ("a simulated round of 10 000 clients beyond their training", "{sim[clients=10000].beyond_ms} ms", "sim"),
    ("a simulation's rounds of 60 000 samples beside a plain PyTorch loop, all cores", "{against.ratio} times as fast",
     "sim --against torch"),
)

FIGURE = re.compile(r"\{([A-Za-z][A-Za-z0-9_ ]*)(?:\[(\w+)=(\S+?)\])?\.(\w+)(?:/([0-9.e-]+))?\}")


def shown(value):
    """Three digits, or two and all before the point; thousands apart."""
    if abs(value) >= 99.5:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2f}"


def figure(path, records, found):
    line, key, value, name, by = found.groups()
    values = []
    for record in records:
        here = [values for printed, values in record.figures
                if printed == line and (key is None or str(values.get(key)) == value)]
        if len(here) != 1 or not isinstance(here[0].get(name), (int, float)):
            said = f"it failed: {record.error}" if record.error is not None else f"it has {len(here)} such lines"
            raise Bad(f"{record.where}: {record.command}: the table of {path} needs {found[0]}, {said}")
        values.append(here[0][name])
    return shown(statistics.median(values) / float(by or 1))


def heading(records):
    """Where, when and how often the figures were taken."""
    first, m = records[0], records[0].machine
    runs = min(sum(record.command == one.command for record in records) for one in records)
    loads = [record.load[0] for record in records if record.load]
    for record in records:
        if record.machine != m or record.commit != first.commit:
            raise Bad(f"{record.where}: of another machine or commit than {first.where}: a table is of one")
    caches = m.get("caches") or {}
    cache = f", L2 {caches['L2']}, L3 {caches['L3']}" if "L2" in caches and "L3" in caches else ""
    load = f"; load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    if loads and min(loads) > m.get("cores", 0):
        load += ": other work was done beside all of it, only ratios tell something"
    return (f"{'Of one run' if runs == 1 else f'Medians of {runs} runs'} on {first.when[:10]}, commit {first.commit}, "
            f"{m.get('cores')} cores of {m.get('cpu')}{cache}, {m.get('memory_mb', 0) / 1024:.0f} GiB, "
            f"{m.get('distribution')}, {m.get('compiler')}, `{m.get('flags')}`{load}.")


def make(path):
    records = recorded.read(path)
    rows = []
    for what, text, command in ROWS:
        mine = [record for record in records if record.command == shlex.join(shlex.split(command))]
        if not mine:
            raise Bad(f"{path}: no line of '{command}', which the table needs")
        made = FIGURE.sub(lambda found, of=mine: figure(path, of, found), text)
        if "{" in made:
            raise Bad(f"bench/table.py: '{what}': cannot read '{made}'")
        program = command.split()[0]
        folder = "bench" if os.path.exists(os.path.join(os.path.dirname(__file__), program)) else "build/bench"
        rows.append(f"| {what} | {made} | `{folder}/{command}` |")
    return "\n".join([heading(records), "", "| what | figure | command |", "| --- | --- | --- |", *rows])


def into(page, made):
    """The page's text with the table between its marks."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = "<!-- bench/compare --table -->\n", "<!-- end of bench/compare --table -->"
    head, found, rest = text.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found or not found_end:
        raise Bad(f"{page}: has no place for the table, between {begin.strip()} and {end}")
    return head + begin + made + "\n" + end + tail
