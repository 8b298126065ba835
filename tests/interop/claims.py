"""Clients that claim what is not so, one in each round: divergences, samples, losses and accuracies. Used by hostile.py."""
import math
import struct

import numpy as np

import arena
import peer
from arena import Arena, norm
from fl.v1 import federation_pb2 as pb
from harness import DEADLINE, check, contains, ends, equal

# --- divergences ------------------------------------------------------------------------------------

FALSE, FITS, UNASKED, BAD = "contradicts its report: divergence", "accepted", "nothing is asked", "not a finite number"

# Name, the claimed divergences of the layers by their true ones, what becomes of it.
DIVERGENCES = (
    ("divergence-3e38", lambda d: [3e38] * len(d), FALSE),
    ("divergence-10x", lambda d: [10 * x for x in d], FALSE),
    ("divergence-1-percent", lambda d: [1.01 * x for x in d], FALSE),
    ("divergence-of-one-layer", lambda d: [d[0], 3 * d[1]], FALSE),
    ("layers-swapped", lambda d: d[::-1], FALSE),
    ("divergence-within-1-256", lambda d: [1.003 * x for x in d], FITS),
    ("divergence-too-small", lambda d: [0.01 * x for x in d], UNASKED),
    ("divergence-nan", lambda d: [math.nan] * len(d), BAD),
    ("divergence-negative", lambda d: [-x for x in d], BAD),
)
# The same client with the same claim, until it is quarantined.
AGAIN = 3


def ternary(values):
    """Bytes of a unit in CODEC_TERNARY: its first half of the entries kept, with their signs (codec_ternary.c)."""
    kept = max(1, len(values) // 2)
    bits = "".join("0" + ("1" if v < 0 else "0") for v in values[:kept])  # Rice parameter 0, no gaps
    bits += "0" * (-len(bits) % 8)
    return struct.pack("<BIfB", 0, kept, float(np.abs(values[:kept]).mean()), 0) + bytes(
        int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


class Claiming:
    """The rounds of one federation with uploads by divergence."""

    def __init__(self, folder, name, conf, rounds):
        self.arena = Arena(folder, name, rounds, conf + "evaluation: {every: 0}\n")
        self.lean = name == "lean"
        self.last = None

    def coded(self, p, update, plan):
        if not self.lean:
            return p.update(update, plan)
        ranges = peer.unit_ranges(p.welcome.model)
        units = peer.planned_units(plan, len(ranges))
        pieces = [ternary(update[ranges[u][0]:ranges[u][1]]) for u in units]
        return [pb.Part(payload="update", unit=u, codec=pb.CODEC_TERNARY, bytes=len(piece))
                for u, piece in zip(units, pieces)], b"".join(pieces)

    def round_of(self, p, make, expected):
        """One round of that attacker; its verdict is as expected, and no honest client has lost anything."""
        a = self.arena
        what, task, theta = a.start(p)
        self.judge(theta)
        ranges = peer.unit_ranges(p.welcome.model)
        # Longer than those of the others, so that true claims are asked for it, too.
        honest = a.honest(theta, task.learning_rate)
        update = a.own(theta, task.learning_rate)
        update = (update * 1.5 * max(map(norm, honest)) / norm(update)).astype("<f4")
        p.report(task, make([norm(update[x:y]) for x, y in ranges]))
        if expected in (FALSE, FITS):
            plan = p.expect("plan", DEADLINE)
            parts, data = self.coded(p, update, plan)
        if expected == FALSE:
            ends("%s: its upload" % what, "INVALID_ARGUMENT",
                 lambda: p.push(task, parts, data, timeout=DEADLINE), FALSE)
            contains("%s: why" % what, p.expect("rejected", DEADLINE).reason, FALSE)
        elif expected == BAD:
            contains("%s: why" % what, p.expect("rejected", DEADLINE).reason, BAD)
        else:
            if expected == FITS:
                p.push(task, parts, data, timeout=DEADLINE)
            p.expect("accepted", DEADLINE)
        record = a.committed()
        senders = self.senders([norm(update[x:y]) for x, y in ranges], honest, make, expected, ranges)
        known = a.honest_unharmed(what, set().union(*senders))
        equal("%s: responders" % what, (record["responders"], record["attempt"]),
              (arena.HONEST + (expected in (FITS, UNASKED)), 1))
        if expected in (FALSE, BAD):
            contains("%s: flctl clients says why" % what, known[p.name]["last_error"] or "", expected)
            contains("%s: the log names it" % what, a.server.log(), "client '%s' rejected: " % p.name)
        self.last = what, theta, honest + [update], senders, ranges

    def senders(self, true, honest, make, expected, ranges):
        """Whose update of each layer is in the model, by the rule of docs/algorithms.md#uploads-by-divergence: those with
        the largest divergences; where the attacker was one of them and is rejected, the next one of those who had to
        send nothing. The attacker is number HONEST."""
        claims = make(true)
        norms = [[norm(u[x:y]) for u in honest] + ([claims[l]] if expected != BAD else [])
                 for l, (x, y) in enumerate(ranges)]
        asked = [sorted(range(len(of)), key=lambda i, of=of: -of[i])[:arena.HONEST] for of in norms]
        idle = [i for i in range(arena.HONEST) if not any(i in of for of in asked)]
        if expected == FALSE:
            for l, of in enumerate(asked):
                if arena.HONEST in of:
                    of.remove(arena.HONEST)
                    of += sorted(idle, key=lambda i, l=l: -norms[l][i])[:1]
        return asked

    def judge(self, theta):
        """The model after the last round is made of the updates of honest clients, except where the claim was true."""
        if self.last is None:
            return
        what, before, updates, senders, ranges = self.last
        step = theta - before
        for (x, y), of in zip(ranges, senders):
            sent = [updates[i][x:y] for i in of]
            expected = np.mean(sent, axis=0)
            size = max(np.abs(u).max() for u in sent)
            if self.lean:  # a sent entry is the mean of some magnitudes
                check("%s: no entry moved further than an honest client's" % what, np.abs(step[x:y]).max() <= size * 1.001)
            else:
                check("%s: the layer is the mean of the updates of those who had to send it" % what,
                      np.abs(step[x:y] - expected).max() <= 1e-3 * size + 1e-6, (step[x:y] - expected)[:5])

    def run(self, attacks):
        a = self.arena
        for name, make, expected in attacks:
            p = a.join(name)
            self.round_of(p, make, expected)
            a.leave(p)
        p = a.join("again")
        for _ in range(AGAIN):
            self.round_of(p, DIVERGENCES[0][1], FALSE)
        self.judge(a.model())
        mine = a.known()["again"]
        text = "3 offences in the last 20 rounds: "
        equal("%s: it is quarantined" % a.name, mine["state"], "quarantined")
        contains("%s: and why" % a.name, mine["quarantine"] or "", text)
        contains("%s: flctl why names it" % a.name, a.server.flctl("why"), "client 'again' is quarantined")
        contains("%s: the log names it" % a.name, a.server.log(), "client 'again' is quarantined until")
        p.leave()
        a.finish(100 * 1024)


def false_divergences(folder):
    share = "strategy: {fraction: {policy: constant, fraction: 1}, upload: {n: %d}}\n" % arena.HONEST
    Claiming(folder, "fedldf", "algorithm: fedldf\n" + share, len(DIVERGENCES) + AGAIN).run(DIVERGENCES)
    lean = [d for d in DIVERGENCES if d[2] in (FALSE, BAD) and d[0] in ("divergence-3e38", "divergence-10x", "divergence-nan")]
    Claiming(folder, "lean", "algorithm: lean\n" + share, len(lean) + AGAIN).run(lean)
