"""Clients that attack by their update, one in each round, against the defaults and two robust rules. Used by hostile.py.

Some know the updates of all honest clients of their round, which here needs no magic: they are computed in arena.py.
"""
import math
import os

import numpy as np

import arena
from arena import Arena, norm
from harness import DEADLINE, check, contains, ends, equal

REJECTED, LEFT_OUT, CLIPPED, UNSEEN = "rejected", "left out", "shortened", "not told from honest ones"
BY_LENGTH = "one of the last three, by its length"  # which depends on how far the model is


class Seen:
    """What an attacker may know in its round."""

    def __init__(self, theta, rate, honest, data, rule):
        self.theta, self.rate, self.honest, self.data, self.rule = theta, rate, np.array(honest), data, rule
        self.own = self.trained(*data)
        self.mean, self.deviation = self.honest.mean(axis=0), self.honest.std(axis=0)
        self.draw = np.random.default_rng(len(theta))

    def trained(self, x, y):
        """The update of a training on these samples."""
        return -self.rate * arena.gradient(self.theta, x, y)


def one_entry(seen, value):
    update = seen.own.copy()
    update[7] = value
    return update


def farthest(seen, apart):
    """The largest step away from the mean for which the distances to honest updates are no larger together than those of an
    honest one can be."""
    limit = max(apart([norm(u - v) for u in seen.honest]) for v in seen.honest)
    low, high = 0.0, 1e3
    for _ in range(60):
        g = (low + high) / 2
        fits = apart([norm(seen.mean - g * seen.deviation - u) for u in seen.honest]) <= limit
        low, high = (g, high) if fits else (low, g)
    return low


def min_max(seen):
    return seen.mean - farthest(seen, max) * seen.deviation


def min_sum(seen):
    return seen.mean - farthest(seen, lambda lengths: sum(d * d for d in lengths)) * seen.deviation


def tailored(seen):
    """It knows the rule: of steps from an eighth to 16 times that of min_max the one that moves the result farthest."""
    least = farthest(seen, max) / 8
    tried = [seen.mean - least * 2 ** k * seen.deviation for k in range(8)]
    return min(tried, key=lambda u: float(seen.rule(list(seen.honest) + [u], None) @ seen.deviation))


def label_flip(seen):
    x, y = seen.data
    return seen.trained(x, arena.CLASSES - 1 - y)


def backdoor(seen):
    """Every second sample has a trigger, and class 0; ten times the update, to replace the model."""
    x, y = (part.copy() for part in seen.data)
    x[::2, -3:], y[::2] = x.max(), 0
    return 10 * seen.trained(x, y)


def mimic(seen):
    """The honest update that lies furthest out in the direction in which they differ most."""
    centred = seen.honest - seen.mean
    direction = np.linalg.svd(centred)[2][0]
    return seen.honest[int(np.argmax(np.abs(centred @ direction)))]


# Name, update, what the server does about it by default.
ATTACKS = (
    ("nan", lambda s: one_entry(s, math.nan), REJECTED),
    ("infinity", lambda s: one_entry(s, -math.inf), REJECTED),
    ("largest-float", lambda s: np.full_like(s.own, 3.4e38), LEFT_OUT),
    ("one-largest-float", lambda s: one_entry(s, -3.4e38), LEFT_OUT),
    ("huge", lambda s: np.full_like(s.own, 1e30), LEFT_OUT),
    ("scaling", lambda s: 100.5 * s.own * norm(s.mean) / norm(s.own) * 3, LEFT_OUT),
    ("scaling-below-the-cap", lambda s: 50 * s.own, CLIPPED),
    ("sign-flip", lambda s: -s.own, UNSEEN),
    ("sign-flip-longer", lambda s: -10 * s.own, CLIPPED),
    ("gaussian", lambda s: s.draw.normal(0, norm(s.own) / math.sqrt(len(s.own)), len(s.own)), UNSEEN),
    ("gaussian-wide", lambda s: s.draw.normal(0, 20 * norm(s.own) / math.sqrt(len(s.own)), len(s.own)), CLIPPED),
    ("free-rider", lambda s: s.draw.normal(0, 1e-6, len(s.own)), UNSEEN),
    ("free-rider-of-zeros", lambda s: np.zeros_like(s.own), UNSEEN),
    ("alie", lambda s: s.mean + 1.5 * s.deviation, UNSEEN),
    ("ipm", lambda s: -0.1 * s.mean, UNSEEN),
    ("ipm-over-the-others", lambda s: -len(s.honest) * 1.2 * s.mean, CLIPPED),
    ("min-max", min_max, UNSEEN),
    ("mimic", mimic, UNSEEN),
    ("min-sum", min_sum, UNSEEN),
    ("label-flip", label_flip, BY_LENGTH),
    ("backdoor", backdoor, BY_LENGTH),
    ("imitation", lambda s: 3 * s.mean, UNSEEN),
    ("tailored", tailored, BY_LENGTH),
)


class Poisoned:
    """The rounds of one federation: each attack of a list, and what became of it."""

    def __init__(self, folder, policy, attacks):
        self.policy, self.attacks = policy, attacks
        self.arena = Arena(folder, policy.replace("_", "-"), len(attacks), "algorithm: fedavg\n"
                           "evaluation: {every: 0}\nstrategy: {fraction: {fraction: 1}%s}\n" % (
                               "" if policy == "none" else ", robust: {policy: %s, f: 1}" % policy))
        self.steps = []

    def attack(self, name, make, expected):
        """One round with that attacker."""
        a = self.arena
        p = a.join(name)
        what, task, theta = a.start(p)
        if a.round == 1:
            self.first, self.rate = theta, task.learning_rate
        else:
            self.judge(theta)
        seen = Seen(theta, task.learning_rate, a.honest(theta, task.learning_rate), a.own_data, arena.RULES[self.policy])
        with np.errstate(over="ignore"):
            update = make(seen).astype("<f4")
        if expected == BY_LENGTH:
            updates = list(seen.honest) + [update.astype(float)]
            expected = LEFT_OUT if arena.left_out(updates) else CLIPPED if arena.clip_factors(updates)[-1] < 1 else UNSEEN
        p.report(task)
        parts, data = p.update(update, task.plan)
        if expected == REJECTED:
            ends("%s: its upload" % what, "INVALID_ARGUMENT", lambda: p.push(task, parts, data, timeout=DEADLINE))
            contains("%s: why" % what, p.expect("rejected", DEADLINE).reason, "finite")
        else:
            p.push(task, parts, data, timeout=DEADLINE)
            p.expect("accepted", DEADLINE)
        record = a.committed()
        a.leave(p)
        self.told(what, name, update.astype(float), expected, seen, record)

    def told(self, what, name, update, expected, seen, record):
        """Is it named, and what does its round say? Remembers what the next model has to be."""
        mine = self.arena.honest_unharmed(what)[name]
        updates = list(seen.honest) + ([update] if expected != REJECTED else [])
        out = arena.left_out(updates)
        check("%s: only its update can be left out" % what, out in ([], [arena.HONEST]), out)
        if self.policy != "none" and expected == CLIPPED:
            expected = UNSEEN  # a rule bounds by itself
        clipped = [i for i, f in enumerate(arena.clip_factors(updates)) if f < 1] if not out else []
        if expected in (REJECTED, LEFT_OUT):
            equal("%s: its rejected updates" % what, (mine["accepted"], mine["rejected"]), (0, 1))
            contains("%s: flctl clients says why" % what, mine["last_error"] or "",
                     "finite" if expected == REJECTED else "update left out: its norm is far above the median")
            contains("%s: a warning names it" % what, "".join(
                line for line in self.arena.server.log().splitlines() if arena.severe(line)), "'%s'" % name)
        else:
            equal("%s: its accepted updates" % what, (mine["accepted"], mine["rejected"]), (1, 0))
        equal("%s: responders" % what, record["responders"], arena.HONEST + (expected in (CLIPPED, UNSEEN)))
        equal("%s: the attempt" % what, record["attempt"], 1)
        equal("%s: left out" % what, (record["left_out"], bool(out)), (int(expected == LEFT_OUT), expected == LEFT_OUT))
        if self.policy == "none":
            equal("%s: shortened" % what, (record["clipped"], clipped),
                  (1, [arena.HONEST]) if expected == CLIPPED else (0, []))
        if expected == CLIPPED:
            contains("%s: the log says whose update was shortened" % what, self.arena.server.log(),
                     "round %d: 1 of 6 updates shortened, with their factor (round.norm_clip): %s" % (
                         self.arena.round, name))
        if self.policy == "multi_krum" and not out and int(np.argmax(arena.krum_scores(updates))) == arena.HONEST:
            contains("%s: the log says whose update the rule does not use" % what, self.arena.server.log(),
                     "round %d: of 1 of 6 updates the robust rule uses less than 0.05 of an equal share (client, share, score): %s " % (
                         self.arena.round, mine["name"]))
        self.steps.append((what, seen, updates[:arena.HONEST] if out else updates))

    def judge(self, theta):
        """The model after the last round."""
        what, seen, updates = self.steps[-1]
        found, expected = theta - seen.theta, arena.RULES[self.policy](updates, None)
        size = max(np.abs(seen.honest).max(), np.abs(expected).max())
        check("%s: the step of the model is that of the rule" % what,
              np.abs(found - expected).max() <= 1e-3 * size + 1e-6, (found - expected)[:5])
        self.bounded(what, seen, updates, found)

    def bounded(self, what, seen, updates, step):
        """Whatever the attacker sent, the step is near what the honest ones want."""
        slack = 1e-3 * norm(seen.mean) + 1e-5
        if self.policy == "none":
            # mean - honest mean = (f u - honest mean) / N, and f u is at most norm_clip times the median.
            middle = arena.lower_median([norm(u) for u in updates if norm(u) > 0])
            limit = (arena.NORM_CLIP * middle + norm(seen.mean)) / len(updates)
            check("%s: how far from the honest mean" % what, norm(step - seen.mean) <= limit + slack,
                  (norm(step - seen.mean), limit))
        elif self.policy == "trimmed_mean":
            # Without its largest and smallest value each entry is within the honest ones.
            low, high = seen.honest.min(axis=0) - slack, seen.honest.max(axis=0) + slack
            check("%s: each entry is within the honest ones" % what, ((step >= low) & (step <= high)).all())
        else:
            # Of n - 1 chosen updates at most one is the attacker's, and no further away than honest ones are.
            widest = max(norm(u - v) for u in seen.honest for v in seen.honest)
            check("%s: how far from the honest mean" % what, norm(step - seen.mean) <= widest + slack,
                  (norm(step - seen.mean), widest))

    def run(self):
        for name, make, expected in self.attacks:
            self.attack(name, make, expected)
        a = self.arena
        theta = a.model()
        self.judge(theta)
        # What the bounds of the rounds amount to: most of what the honest ones reach alone.
        first, without = a.accuracy(self.first), a.accuracy(a.without_attackers(self.first, self.rate))
        check("%s: accuracy after all attacks" % self.policy, a.accuracy(theta) >= (first + without) / 2,
              (first, a.accuracy(theta), without))
        a.finish(200 * 1024)


def trusted_mean(updates, reference):
    """robust: fltrust."""
    trust = [max(0, u @ reference / (norm(u) * norm(reference))) for u in updates]
    return sum(t * norm(reference) / norm(u) * u for t, u in zip(trust, updates)) / sum(trust)


def trusted(folder):
    """A server that trains itself gives a flipped update no weight, and moves the model by the rule. Which of its 31
    samples it draws is not computed here: they are the same 30 in all rounds."""
    path = os.path.join(folder, "fltrust-data")
    os.mkdir(path)
    x, y = arena.samples(400, 31)
    arena.write_csv(os.path.join(path, "test.csv"), x, y)
    a = Arena(folder, "fltrust", 2, "algorithm: fedavg\nstrategy: {fraction: {fraction: 1}, "
              "robust: {policy: fltrust, samples: 30}}\nevaluation: {every: 0, data: \"%s\"}\n" % path)
    steps = []
    for name, factor in (("flip", -1), ("flip-longer", -3)):
        p = a.join(name)
        what, task, theta = a.start(p)
        update = (factor * a.own(theta, task.learning_rate)).astype("<f4")
        p.report(task)
        parts, data = p.update(update, task.plan)
        p.push(task, parts, data, timeout=DEADLINE)
        p.expect("accepted", DEADLINE)
        record = a.committed()
        a.leave(p)
        a.honest_unharmed(what)
        equal("%s: its update alone has no trust" % what,
              [(c["client"], c["used"]) for c in record["robust_clients"]], [(name, 0)])
        contains("%s: flctl rounds says so" % what, a.server.flctl("rounds"), name + " 0 ")
        steps.append((theta, task.learning_rate, a.honest(theta, task.learning_rate) + [update.astype(float)]))
    ends_at = [theta for theta, _, _ in steps[1:]] + [a.model()]
    drawn = set(range(len(y)))
    for (theta, rate, updates), after in zip(steps, ends_at):
        for i in sorted(drawn):
            rest = np.arange(len(y)) != i
            expected = trusted_mean(updates, -rate * arena.gradient(theta, x[rest], y[rest]))
            if np.abs(after - theta - expected).max() > 1e-4 * np.abs(expected).max() + 1e-6:
                drawn.remove(i)
    equal("fltrust: the steps are those of the rule, with one sample left out", len(drawn), 1)
    a.finish(200 * 1024)


def poisoned(folder):
    for policy in arena.RULES:
        Poisoned(folder, policy, ATTACKS).run()
