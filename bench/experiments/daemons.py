#!/usr/bin/env python3
"""A point of an experiment through real daemons, beside what fl-sim found.

    fl-sim run bench/experiments/NAME.yaml
    bench/experiments/daemons.py NAME.results/POINT [--seed N] [--rounds N] [--build DIR]

Starts fl-serverd and an fl-clientd for each client on this machine, with the data that fl-sim gave them, and compares
the accuracy, loss and payloads of each round with those of fl-sim, which are to be equal. Prints a line for each round
that differs, and a last line with totals; exit status 0: all are equal. Experiments with a `world` have times that no
machine keeps, and clients that are lost: they are refused. Data sets are found as fl-sim finds them ($FL_DATA_DIR).
"""
import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time

FIGURES = ("selected", "responders", "accuracy", "loss", "train_loss", "uplink_bytes", "feedback_bytes",
           "downlink_bytes")


def section(text, name):
    """The lines below `name:`, one level out; plain block style, as fl-sim writes it."""
    found = re.search(rf"^{name}:\n((?: .*\n)+)", text, re.MULTILINE)
    return re.sub(r"^  ", "", found[1], flags=re.MULTILINE) if found else ""


def keys(text):
    return dict(re.findall(r"^(\w+): (.+)$", text, re.MULTILINE))


def data_folder(name):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    if name == "digits":
        return os.path.join(root, "deploy", "data", "optdigits")
    return os.path.join(os.environ.get("FL_DATA_DIR", os.path.join(root, "..", "shared", "data")), name)


def split(build, data, seed, out):
    options = {"seed": str(seed) if data.get("seed") == "trial" else data.get("seed", "0")}
    options.update((key, value) for key, value in data.items() if key not in ("set", "seed"))
    command = [os.path.join(build, "fl-data"), "split", "--input", data_folder(data["set"]), "--output", out]
    for key, value in options.items():
        command += ["--" + key.replace("_", "-"), value]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Federation:
    """The daemons, in a folder of their own."""

    def __init__(self, build, folder, server, data):
        self.build, self.folder = build, folder
        self.state = os.path.join(folder, "server.state")
        self.socket = os.path.join(folder, "server.sock")
        self.running = []
        config = self.write("server", server + f'federation: experiment\nstate_dir: "{self.state}"\ninsecure: yes\n'
                            f'listen: ["unix:{self.socket}"]\n')
        self.start("fl-serverd", config)
        while not os.path.exists(self.socket):
            self.check()
            time.sleep(0.05)
        for name in sorted(os.listdir(data)):
            if name.startswith("client-"):
                config = self.write(name, f'server: "unix:{self.socket}"\nname: {name}\ninsecure: yes\nexit_when_done: yes\n'
                                    f'state_dir: "{folder}/{name}.state"\ndata: {{path: "{data}/{name}"}}\n')
                self.start("fl-clientd", config)

    def write(self, name, text):
        path = os.path.join(self.folder, name + ".yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, program, config):
        with open(config[:-5] + ".log", "wb") as log:
            process = subprocess.Popen([os.path.join(self.build, program), config], stdout=log, stderr=log,
                                       env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        process.config = config
        self.running.append(process)
        return process

    def check(self):
        """Nothing has failed."""
        for process in self.running:
            if process.poll() not in (None, 0):
                name = process.config[:-5] + ".log"
                with open(name, encoding="utf-8", errors="replace") as log:
                    sys.exit(f"daemons.py: {os.path.basename(name)}: exit {process.returncode}:\n" + log.read()[-2000:])

    def rounds(self):
        text = subprocess.run([os.path.join(self.build, "flctl"), "-d", self.state, "rounds", "--json", "--last", "100000"],
                              check=False, capture_output=True, text=True).stdout
        return json.loads(text) if text else []

    def end(self):
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()


def same(own, theirs):
    """fl-sim leaves out what is not known; flctl writes ten digits."""
    return own is None and theirs == "" or own is not None and theirs != "" and f"{own:.10g}" == f"{float(theirs):.10g}"


def compare(found, expected):
    bad = 0
    for own, theirs in zip(found, expected):
        off = [f"{key} {own.get(key)} and {theirs[key]}" for key in FIGURES if not same(own.get(key), theirs[key])]
        if off:
            bad += 1
            print(f"round {theirs['round']}: daemons and fl-sim differ in {'; '.join(off)}")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("point", metavar="RESULTS/POINT")
    parser.add_argument("--seed", type=int, help="default: the first trial's")
    parser.add_argument("--rounds", type=int, default=20, help="default 20, at most those of the trial")
    parser.add_argument("--build", default=".", help="folder with the programs (default: the current one)")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.point, "experiment.yaml")):
        sys.exit(f"daemons.py: {options.point} is no point of a run: it has no experiment.yaml; expected a folder such as "
                 "NAME.results/1-LABEL, which fl-sim run makes")
    with open(os.path.join(options.point, "experiment.yaml"), encoding="utf-8") as file:
        text = file.read()
    seeds = sorted(int(name[5:]) for name in os.listdir(options.point) if name.startswith("seed-"))
    seed = options.seed if options.seed is not None else seeds[0]
    data = keys(section(text, "data"))
    if re.search(r"^world:", text, re.MULTILINE) or "set" not in data:
        sys.exit(f"daemons.py: {options.point} has a world, or a folder of data: only 'set' without a world can be run")
    with open(os.path.join(options.point, f"seed-{seed}", "rounds.csv"), encoding="utf-8") as file:
        expected = list(csv.DictReader(file))[:options.rounds]
    build = os.path.abspath(options.build)
    with tempfile.TemporaryDirectory(prefix="fl-daemons-") as folder:
        shards = os.path.join(folder, "data")
        split(build, data, seed, shards)
        server = section(text, "server") + f'seed: {seed}\nrounds: {len(expected)}\n'
        if "evaluation:" not in server:
            server += f'evaluation: {{data: "{shards}/server"}}\n'
        began = time.monotonic()
        federation = Federation(build, folder, server, shards)
        try:
            found, shown = [], 0
            while len(found) < len(expected):
                federation.check()
                time.sleep(0.5)
                found = federation.rounds()
                if sys.stderr.isatty() and len(found) > shown:
                    shown = len(found)
                    print(f"\rround {shown} of {len(expected)}", end="", file=sys.stderr, flush=True)
        finally:
            federation.end()
        sys.stderr.write("\n" if shown else "")
    bad = compare(found, expected)
    print(f"{options.point} seed {seed}: {len(found)} rounds of {len(federation.running) - 1} clients in "
          f"{time.monotonic() - began:.0f} s, {bad} differ from fl-sim; accuracy {found[-1]['accuracy']}, "
          f"{sum(r['uplink_bytes'] for r in found)} bytes up")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as failed:
        sys.exit(f"daemons.py: {failed}")
