"""A federation in which every round has one attacker. Used by hostile.py.

Real fl-clientd train on data from here, in one step over all samples of each, so what they send is known: the gradient
is computed here in numpy. So is the new model of every round, by the rules of docs/algorithms.md, and compared with
that of fl-serverd: an update of an honest client that was lost, or more of an attacker's than the rule lets through,
is another model.
"""
import json
import os

import numpy as np

import harness as h
import peer
from harness import DEADLINE, check, contains, equal, until
from peer import Peer

FEATURES, HIDDEN, CLASSES, SAMPLES, TESTS = 8, 6, 3, 40, 20
HONEST = 5
MODEL = "model: {input: [%d], layers: [dense %d, relu, dense %d]}\n" % (FEATURES, HIDDEN, CLASSES)
TRAINING = "training: {epochs: 1, batch_size: %d, learning_rate: 0.2}\n" % SAMPLES
NORM_CLIP, NORM_CAP, WEIGHT_CAP = 4, 100, 100  # the defaults of round


# --- data and training ------------------------------------------------------------------------------


def samples(seed, n):
    """Samples around a centre for each class, a little different on each client."""
    centres = np.random.default_rng(1).normal(0, 1.5, (CLASSES, FEATURES))
    draw = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    x = centres[y] + draw.normal(0, 0.1, FEATURES) + draw.normal(0, 1, (n, FEATURES))
    return np.round(x, 3), y


def write_csv(path, x, y):
    with open(path, "w") as f:
        for row, label in zip(x, y):
            f.write(",".join("%.3f" % v for v in row) + ",%d\n" % label)


def forward(theta, x):
    w1, rest = theta[:HIDDEN * FEATURES].reshape(HIDDEN, FEATURES), theta[HIDDEN * FEATURES:]
    b1, rest = rest[:HIDDEN], rest[HIDDEN:]
    w2, b2 = rest[:CLASSES * HIDDEN].reshape(CLASSES, HIDDEN), rest[CLASSES * HIDDEN:]
    hidden = np.maximum(x @ w1.T + b1, 0)
    return w2, hidden, hidden @ w2.T + b2


def gradient(theta, x, y):
    """Of the mean cross-entropy."""
    w2, hidden, out = forward(theta, x)
    p = np.exp(out - out.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    back = (p @ w2) * (hidden > 0)
    return np.concatenate([(back.T @ x).ravel(), back.sum(axis=0), (p.T @ hidden).ravel(), p.sum(axis=0)])


def right(theta, x, y):
    return int((forward(theta, x)[2].argmax(axis=1) == y).sum())


# --- the rules of the server ------------------------------------------------------------------------


def norm(update):
    """In double, where no float overflows."""
    return float(np.linalg.norm(np.asarray(update, np.float64)))


def lower_median(values):
    values = sorted(values)
    return values[(len(values) - 1) // 2]


def left_out(updates):
    """Indices of the updates above round.norm_cap."""
    middle = lower_median([norm(u) for u in updates if norm(u) > 0])
    return [i for i, u in enumerate(updates) if norm(u) > NORM_CAP * middle]


def clip_factors(updates):
    limit = NORM_CLIP * lower_median([norm(u) for u in updates if norm(u) > 0])
    return [min(1, limit / norm(u)) if norm(u) > 0 else 1 for u in updates]


def mean(updates, weights):
    return np.average([f * u for f, u in zip(clip_factors(updates), updates)], axis=0, weights=weights)


def trimmed_mean(updates, weights):
    return np.sort(np.array(updates), axis=0)[1:-1].mean(axis=0)


def krum_scores(updates):
    near = len(updates) - 2
    return [sum(sorted(norm(u - v) ** 2 for j, v in enumerate(updates) if j != i)[:near])
            for i, u in enumerate(updates)]


def multi_krum(updates, weights):
    worst = int(np.argmax(krum_scores(updates)))
    return np.mean([u for i, u in enumerate(updates) if i != worst], axis=0)


RULES = {"none": mean, "trimmed_mean": trimmed_mean, "multi_krum": multi_krum}


# --- the federation ---------------------------------------------------------------------------------


def rows(text):
    """Of flctl --json, which prints a list, or an object with one."""
    found = json.loads(text)
    return found if isinstance(found, list) else next(v for v in found.values() if isinstance(v, list))


class Arena:
    """One fl-serverd and HONEST fl-clientd. Each round is started for one attacker and needs all of the honest ones, so
    what is asserted of each of them is asserted of every committed round."""

    def __init__(self, folder, name, rounds, conf, honest=HONEST, responders=None):
        self.server = h.Server(
            folder, name, MODEL + TRAINING + "rounds: %d\n" % rounds + conf +
            "round: {start_clients: %d, min_clients: %d, population: %d, min_responders: %d, retry: 10ms, "
            "lost_grace: 100ms}\n" %
            (honest + 1, honest + 1, honest + 1, honest if responders is None else responders))
        self.folder, self.name, self.n_rounds, self.round = folder, name, rounds, 0
        self.uploads = [0] * honest  # that each honest client has to have by now
        self.data, self.tests, self.clients = [], [], []
        for i in range(honest):
            path = os.path.join(folder, "%s-data-%d" % (name, i))
            os.mkdir(path)
            self.data.append(samples(100 + i, SAMPLES))
            self.tests.append(samples(200 + i, TESTS))
            write_csv(os.path.join(path, "train.csv"), *self.data[-1])
            write_csv(os.path.join(path, "test.csv"), *self.tests[-1])
            self.clients.append(h.clientd(folder, "%s-edge-%d" % (name, i), self.server.address, path))
        self.honest_names = [c.name for c in self.clients]
        self.own_data = samples(300, SAMPLES)  # of the attackers
        self.channel = self.server.channel()
        contains("%s: no round begins yet" % name, self.server.flctl("pause"), "paused")

    def start(self, p):
        """A round with that attacker, and no other one after it; returns its task and the model."""
        self.round += 1
        what = "%s, %s, round %d" % (self.name, p.name, self.round)
        contains("%s: begins" % what, self.server.flctl("resume"), "resumed")
        task = p.expect("task", DEADLINE)
        equal("%s: its round" % what, (task.round, task.attempt), (self.round, 1))
        contains("%s: then comes none" % what, self.server.flctl("pause"), "pause")
        return what, task, np.array(peer.floats(p.fetch(task.round)), float)

    def join(self, name, announced=SAMPLES, **hello):
        p = Peer(self.channel, name, announced).attend()
        p.hello(DEADLINE, **hello)
        return p

    def honest(self, theta, rate):
        """What the honest clients of a round send."""
        return [-rate * gradient(theta, x, y) for x, y in self.data]

    def own(self, theta, rate):
        """What the attacker would send if it were honest."""
        return -rate * gradient(theta, *self.own_data)

    def known(self):
        return {c["name"]: c for c in rows(self.server.flctl("clients", "--json"))}

    def records(self):
        return rows(self.server.flctl("rounds", "--last", "0", "--json"))

    def committed(self):
        """Waits for the record of the round."""
        def ended():
            try:
                found = self.records()
            except ValueError:
                return False
            return bool(found) and max(r["round"] for r in found) >= self.round

        until("round %d of %s" % (self.round, self.name), ended)
        return next(r for r in self.records() if r["round"] == self.round)

    def leave(self, p):
        """The attacker is in no later round."""
        p.leave()
        until("the server sees the end of '%s'" % p.name, lambda: not self.known()[p.name]["connected"])

    def honest_unharmed(self, what, asked=None):
        """Nothing that the attacker of this round did has touched another client; `asked`: those that upload in it."""
        known = self.known()
        for i, name in enumerate(self.honest_names):
            c = known[name]
            self.uploads[i] += asked is None or i in asked
            equal("%s: %s has all of its updates in the rounds so far" % (what, name),
                  (c["selected"], c["accepted"], c["rejected"], c["lost"]), (self.round, self.uploads[i], 0, 0))
            check("%s: %s is connected until all rounds are done, not quarantined, and without an error" % (what, name),
                  (c["connected"] or self.round == self.n_rounds) and not c["quarantine"] and not c["last_error"], c)
        return known

    def model(self):
        """The newest model."""
        path = os.path.join(self.folder, self.name + ".safetensors")
        if os.path.exists(path):
            os.remove(path)
        self.server.flctl("export", "--output", path)
        with open(path, "rb") as f:
            data = f.read()
        length = int.from_bytes(data[:8], "little")
        tensors = {k: v for k, v in json.loads(data[8:8 + length]).items() if k != "__metadata__"}
        order = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
        at = [tensors[k]["data_offsets"] for k in order]
        return np.concatenate([np.frombuffer(data[8 + length + a:8 + length + b], "<f4") for a, b in at]).astype(float)

    def accuracy(self, theta):
        """On the test data of all honest clients."""
        return sum(right(theta, x, y) for x, y in self.tests) / (TESTS * len(self.tests))

    def without_attackers(self, theta, rate):
        """The model after the same rounds of the honest clients alone."""
        for _ in range(self.n_rounds):
            theta = theta + np.mean(self.honest(theta, rate), axis=0)
        return theta

    def finish(self, most_log):
        """All rounds are done: everything ends well, and neither memory nor log has grown beyond its bound."""
        self.channel.close()
        for c in self.clients:
            c.ended(0)
        self.server.stop()
        log = self.server.log()
        blamed = [line for line in log.splitlines() if severe(line) and any(n in line for n in self.honest_names)]
        equal("%s: no warning names an honest client" % self.name, blamed, [])
        check("%s: the log has a bound" % self.name, len(log) <= most_log, len(log))
        memory_bounded(self.name, log)
        return log


def severe(line):
    return any(" %s " % level in line for level in ("warning", "error", "WARNING", "ERROR"))


def memory_bounded(name, log):
    for line in log.splitlines():
        if "buffered for clients at most" in line:
            used, limit = (int(line.split(key)[1].split()[0]) for key in ("bytes=", "limit="))
            # Clients within their fair share do not wait for memory that others are about to give back (libfl/base/budget.h).
            print("%s: memory for peers %d of %d" % (name, used, limit), flush=True)
            return check("%s: memory for peers is bounded" % name, used <= limit + limit // 10, line)
    return check("%s: the log has the memory for peers" % name, False, log[-500:])
