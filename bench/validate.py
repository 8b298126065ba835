#!/usr/bin/env python3
"""Are the times of fl-sim those of daemons? The same five small worlds twice: fl-serverd and fl-clientd
on loopback, paced by the clients' `limits` and by a trainer that sleeps; and fl-sim with the same world
as a table. Prints how far the rounds' times are apart, in how many rounds the same clients were late, and
whether four presets come in the same order; docs/simulation.md says what is expected. Measures, asserts
nothing: exits with 0 whatever it finds, with 1 only when something did not run.

The worlds are made so that not the machine is measured: payload of 0.1 MB, rounds of one to two
seconds, and clients that wait most of the time.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SEED = 11
CLIENTS = 10
FAST = 100_000_000  # bytes/s: what is not meant to take time
MODEL = "{input: [60], layers: [dense 120, relu, dense 120, relu, dense 10]}"
BOUNDS = {"median": 0.05, "p95": 0.15, "late": 0.95}

# A trainer that changes nothing and takes $2 seconds of sleep: what a round costs is time alone.
SLEEPER = r"""#!/bin/sh
field() { sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p' "$2"; }
sleep "$2" &
cp "$(field model "$1")" "$(field result_model "$1")" || exit 1
echo '{"samples": 20, "steps": 2, "train_loss": 1.0}' >"$(field result "$1")"
wait
"""


def spread(best, worst, order, slow=()):
    """CLIENTS values from best to worst in equal ratios, the last ones `slow`, dealt out in `order`."""
    n = CLIENTS - len(slow)
    values = [best * (worst / best) ** (i / (n - 1)) for i in range(n)] + list(slow)
    return [round(values[order[i]]) for i in range(CLIENTS)]


# Who is where among the slow ones, so that no client is the slowest of all in everything.
ORDERS = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [7, 2, 9, 4, 0, 6, 1, 8, 3, 5], [3, 8, 1, 6, 9, 2, 5, 0, 7, 4])


class World:
    """Links and machines of the clients, and the rounds of a server."""

    def __init__(self, name, up=None, down=None, train_ms=None, algorithm="fedavg-0.5", rules=""):
        self.name, self.algorithm, self.rules = name, algorithm, rules
        self.up = up or [FAST] * CLIENTS
        self.down = down or [FAST] * CLIENTS
        self.train_ms = train_ms or [0] * CLIENTS
        self.sleeps = train_ms is not None

    def table(self):
        head = "# source: bench/validate.py\nuplink [B/s], downlink [B/s], train [ms]\n"
        rows = zip(self.up, self.down, self.train_ms)
        return head + "".join("%d, %d, %d\n" % row for row in rows)


# The two slow ones of a world miss its deadline by a quarter, and all others keep it by a tenth: how late a
# client is that misses it by less than a machine's noise, nobody can tell beforehand.
def worlds():
    up = spread(250_000, 84_000, ORDERS[0], slow=(53_000, 47_000))
    yield World("uplink", up=up, rules="upload_deadline: 1300ms, min_responders: 1")
    yield World("uplink-layers", up=spread(200_000, 72_000, ORDERS[0], slow=(30_000, 26_000)),
                algorithm="fedldf-0.8", rules="upload_deadline: 1500ms, min_responders: 1")
    yield World("downlink", down=spread(250_000, 84_000, ORDERS[1], slow=(53_000, 47_000)),
                rules="train_deadline: 1300ms, min_responders: 1")
    yield World("sleeping", train_ms=spread(400, 1250, ORDERS[2], slow=(2000, 2600)),
                rules="train_deadline: 1500ms, min_responders: 1")
    yield World("mixed", up=spread(400_000, 120_000, ORDERS[0]), down=spread(500_000, 180_000, ORDERS[1]),
                train_ms=spread(200, 700, ORDERS[2], slow=(1700, 2000)),
                rules="train_deadline: 1400ms, upload_deadline: 1s, min_responders: 1")


def presets():
    up = spread(300_000, 70_000, ORDERS[1])
    for algorithm in ("fedavg", "adafl", "fedldf", "lean"):
        yield World("preset " + algorithm, up=up, algorithm=algorithm)


def server_keys(world, rounds):
    # Two steps a round: arithmetic is not what is measured.
    return [
        "rounds: %d" % rounds,
        "algorithm: %s" % world.algorithm,
        "model: %s" % MODEL,
        "training: {epochs: 0, steps: 2, batch_size: 10, learning_rate: 0.01}",
        "round: {start_clients: %d%s}" % (CLIENTS, ", " + world.rules if world.rules else ""),
    ]


class Daemons:
    """One federation of real processes."""

    def __init__(self, build, scratch, data, world, rounds):
        self.build, self.dir, self.data = build, os.path.join(scratch, "daemons"), data
        self.world, self.rounds = world, rounds
        self.processes = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, program, name, lines, extra=()):
        with open(self.path(name + ".yaml"), "w") as f:
            f.write("\n".join(lines) + "\n")
        log = open(self.path(name + ".log"), "wb")
        argv = [os.path.join(self.build, program), *extra, self.path(name + ".yaml")]
        p = subprocess.Popen(argv, stdout=subprocess.PIPE if program == "fl-serverd" else log, stderr=log)
        self.processes.append(p)
        return p

    def start_client(self, i, address):
        w, name = self.world, "client-%03d" % i
        lines = [
            'server: "%s"' % address, "name: %s" % name, 'state_dir: "%s"' % self.path(name + ".state"),
            "insecure: yes", "exit_when_done: yes", "log_level: warning",
            "limits: {upload_rate: %dB/s, download_rate: %dB/s}" % (w.up[i], w.down[i]),
        ]
        if w.sleeps:
            lines += ["trainer: command",
                      'command: {program: ["%s", "{task}", "%.3f"], samples: 20}'
                      % (self.path("sleeper"), w.train_ms[i] / 1000)]
        else:
            lines.append('data: {path: "%s/%s"}' % (self.data, name))
        self.start("fl-clientd", name, lines)

    def run(self):
        os.makedirs(self.dir)
        with open(self.path("sleeper"), "w") as f:
            f.write(SLEEPER)
        os.chmod(self.path("sleeper"), 0o755)
        try:
            server = self.start("fl-serverd", "server", [
                "federation: validate", 'state_dir: "%s"' % self.path("state"), "insecure: yes",
                'listen: "127.0.0.1:0"', "log_level: debug", "seed: %d" % SEED, *server_keys(self.world, self.rounds)])
            address = self.address_of(server)
            for i in range(CLIENTS):
                self.start_client(i, address)
            until = time.monotonic() + 60 + 30 * self.rounds
            for p in self.processes[1:]:  # They end with the federation, the server stays.
                p.wait(timeout=max(0, until - time.monotonic()))
                if p.returncode != 0:
                    raise RuntimeError("a client of world '%s' ended with %d" % (self.world.name, p.returncode))
            return self.figures()
        finally:
            for p in self.processes:
                if p.poll() is None:
                    p.send_signal(signal.SIGKILL)
                p.wait()
            shutil.rmtree(self.dir)

    def address_of(self, server):
        for line in server.stdout:
            if line.startswith(b"listening "):
                return line.split()[1].decode()
        with open(self.path("server.log")) as f:
            raise RuntimeError("fl-serverd does not listen: " + f.read()[-500:])

    def figures(self):
        """Seconds of each round but the first, and who was selected and not accepted in it."""
        rounds = {}
        with open(self.path("server.log")) as f:
            for line in f:
                decision = re.search(r" decision: (\w+) '([^']+)' round=(\d+) attempt=(\d+)", line)
                if decision:
                    what, name, number, attempt = decision.groups()
                    r = rounds.setdefault(int(number), {}).setdefault(int(attempt), {})
                    r.setdefault(what, set()).add(name)
                done = re.match(r"(\S+)T(\d+):(\d+):([\d.]+)Z .* round (\d+) committed:", line)
                if done:
                    t = int(done[2]) * 3600 + int(done[3]) * 60 + float(done[4])
                    rounds.setdefault(int(done[5]), {})["t"] = t
        result = []
        for number in range(2, self.rounds + 1):
            if "t" not in rounds.get(number, {}):
                raise RuntimeError("world '%s': round %d was not committed" % (self.world.name, number))
            attempts = {k: v for k, v in rounds[number].items() if k != "t"}
            last = attempts[max(attempts)]
            took = (rounds[number]["t"] - rounds[number - 1]["t"]) % 86400
            result.append((took, len(attempts), last["task"] - last.get("accepted", set())))
        return result


def simulate(build, scratch, data, world, rounds):
    folder = os.path.join(scratch, "sim")
    os.makedirs(folder)
    with open(os.path.join(folder, "world.csv"), "w") as f:
        f.write(world.table())
    column = "{table: world.csv, column: %s, assign: in_order}"
    lines = ["name: validate", "server:"] + ["  " + line for line in server_keys(world, rounds)]
    lines += ["data: {path: %s}" % data, "trials: {seeds: [%d]}" % SEED, "stop: {rounds: %d}" % rounds,
              "world:", "  uplink: " + column % "uplink", "  downlink: " + column % "downlink"]
    if world.sleeps:
        lines += ["  train:", "    fixed: " + column % "train"]
    with open(os.path.join(folder, "experiment.yaml"), "w") as f:
        f.write("\n".join(lines) + "\n")
    out = os.path.join(folder, "out")
    subprocess.run([os.path.join(build, "fl-sim"), "run", "--quiet", "--jobs", "1", "--clients", "--out", out,
                    os.path.join(folder, "experiment.yaml")], check=True, stdout=subprocess.DEVNULL)
    found = []
    for top, _, files in os.walk(out):
        if "rounds.jsonl" in files:
            found.append(top)
    if len(found) != 1:
        raise RuntimeError("fl-sim left %d trials in %s" % (len(found), out))
    with open(os.path.join(found[0], "rounds.jsonl")) as f:
        records = [json.loads(line) for line in f]
    late = {}
    with open(os.path.join(found[0], "clients.jsonl")) as f:
        for line in f:
            c = json.loads(line)
            if c["state"] not in ("accepted", "empty"):  # empty: it was asked for nothing
                late.setdefault((c["round"], c["attempt"]), set()).add(c["name"])
    shutil.rmtree(folder)
    return [(r["wall_us"] / 1e6, r["attempts"], late.get((r["round"], r["attempts"]), set()))
            for r in records if r["round"] > 1]


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def compare(real, sim):
    """Errors of the rounds' times, and in how many rounds the same clients were late."""
    if len(real) != len(sim):
        raise RuntimeError("%d rounds of daemons, %d of fl-sim" % (len(real), len(sim)))
    errors = [abs(s[0] - r[0]) / r[0] for r, s in zip(real, sim)]
    same = sum(r[2] == s[2] for r, s in zip(real, sim))
    return errors, same


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.environ.get("FL_BUILDDIR", "build"), help="the build folder (build)")
    p.add_argument("--rounds", type=int, default=20, help="of each world that are compared (20)")
    p.add_argument("--quick", action="store_true", help="5 rounds")
    p.add_argument("--only", help="the worlds whose name begins so; no presets")
    p.add_argument("--verbose", action="store_true", help="each round too")
    args = p.parse_args()
    rounds = 5 if args.quick else args.rounds
    build = os.path.abspath(args.build)
    scratch = tempfile.mkdtemp(prefix="fl-validate.")
    began = time.monotonic()
    try:
        data = os.path.join(scratch, "data")
        subprocess.run([os.path.join(build, "fl-data"), "synthetic", "--output", data, "--clients", str(CLIENTS),
                        "--seed", "3"], check=True, stdout=subprocess.DEVNULL)

        def both(world, n):
            return (Daemons(build, scratch, data, world, n + 1).run(),
                    simulate(build, scratch, data, world, n + 1))

        found = run(args, rounds, both)
        print("validate: rounds=%d median_percent=%.1f p95_percent=%.1f same_late_percent=%.1f s=%.0f"
              % (rounds, *found, time.monotonic() - began))
    except (RuntimeError, OSError, subprocess.SubprocessError) as e:
        print("bench/validate.py: %s" % e, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


def show_rounds(real, sim):
    for i, (r, s) in enumerate(zip(real, sim)):
        print("    round %2d: daemons %.3f s, fl-sim %.3f s, attempts %d and %d, late %s%s"
              % (i + 2, r[0], s[0], r[1], s[1], " ".join(sorted(r[2])) or "none",
                 "" if r[2] == s[2] else "; in fl-sim " + (" ".join(sorted(s[2])) or "none")))


def run(args, rounds, both):
    all_errors, all_same, n = [], 0, 0
    print("%-14s %8s %8s %10s %8s %8s %12s" % ("world", "daemons", "fl-sim", "late", "median", "p95", "same late"))
    for world in worlds():
        if args.only and not world.name.startswith(args.only):
            continue
        real, sim = both(world, rounds)
        errors, same = compare(real, sim)
        print("%-14s %6.2f s %6.2f s %4d of %-3d %6.1f %% %6.1f %% %5d of %d"
              % (world.name, statistics.mean(r[0] for r in real), statistics.mean(s[0] for s in sim),
                 sum(len(r[2]) > 0 for r in real), len(real), 100 * statistics.median(errors),
                 100 * quantile(errors, 0.95), same, len(real)), flush=True)
        if args.verbose:
            show_rounds(real, sim)
        all_errors += errors
        all_same += same
        n += len(real)
    found = (100 * statistics.median(all_errors), 100 * quantile(all_errors, 0.95), 100 * all_same / n)
    verdict("median error of a round's time", found[0], "at most", 100 * BOUNDS["median"])
    verdict("95th percentile", found[1], "at most", 100 * BOUNDS["p95"])
    verdict("rounds with the same late clients", found[2], "at least", 100 * BOUNDS["late"])
    if not args.only:
        order(rounds, both)
    return found


def verdict(what, value, word, bound):
    kept = value <= bound if word == "at most" else value >= bound
    print("%s: %.1f %%, expected %s %.0f %%: %s" % (what, value, word, bound, "kept" if kept else "NOT KEPT"))


def order(rounds, both):
    times = {}
    for world in presets():
        real, sim = both(world, max(4, rounds // 2))
        times[world.algorithm] = (statistics.mean(r[0] for r in real), statistics.mean(s[0] for s in sim))
        print("%-14s %6.2f s %6.2f s a round" % (world.algorithm, *times[world.algorithm]), flush=True)
    by_daemons = sorted(times, key=lambda a: times[a][0])
    by_sim = sorted(times, key=lambda a: times[a][1])
    print("presets by time: daemons %s; fl-sim %s: %s" % (" < ".join(by_daemons), " < ".join(by_sim),
                                                         "kept" if by_daemons == by_sim else "NOT KEPT"))


if __name__ == "__main__":
    sys.exit(main())
