"""Clients that claim samples, losses and accuracies that are not so, one in each round. Used by hostile.py."""
import math

import numpy as np

import arena
from arena import SAMPLES, TESTS, Arena
from fl.v1 import federation_pb2 as pb
from harness import DEADLINE, check, contains, equal
from peer import Gone

LARGEST = 1.79e308
ABSURD = 1 << 40


class Claim:
    """What a client says beside a true update: in Hello, in its report, in its evaluation. Its report is `rejected`, or
    `ends` its session; `error` and `noted` are what flctl clients and the log have of it."""

    def __init__(self, name, hello=None, report=None, evaluation=None, weight=SAMPLES, rejected=False, ends=False, error="",
                 noted=""):
        self.name, self.hello, self.report, self.evaluation = name, hello or {}, report or {}, evaluation
        self.weight, self.rejected, self.ends, self.error, self.noted = weight, rejected, ends, error, noted


def result(samples=TESTS, correct=0, loss=1.0):
    return pb.Evaluation(samples=samples, correct=correct, loss_sum=loss)


TESTED = {"evaluation_samples": TESTS}
MOST = arena.WEIGHT_CAP * SAMPLES

CLAIMS = (
    Claim("samples", {"samples": ABSURD}, {"samples": ABSURD}, weight=MOST,
          noted="weight capped at %d samples, 100 times the median (round.weight_cap): samples" % MOST),
    Claim("samples-of-the-report", report={"samples": ABSURD}, error="reports more samples than it announced",
          noted="client 'samples-of-the-report' reports %d samples but announced %d" % (ABSURD, SAMPLES)),
    Claim("no-samples", report={"samples": 0}, rejected=True, error="report: 0 samples"),
    Claim("loss-nan", report={"train_loss": math.nan}, rejected=True, error="the training loss is NaN or infinite"),
    Claim("loss-infinite", report={"train_loss": -math.inf}, rejected=True, error="the training loss is NaN or infinite"),
    Claim("loss-largest", report={"train_loss": LARGEST}),
    Claim("loss-negative", report={"train_loss": -LARGEST}),
    Claim("more-right-than-there-are", TESTED, {"received": result(correct=TESTS + 1)}, ends=True,
          noted="bad event from "),
    Claim("more-samples-than-2-40", report={"samples": ABSURD + 1}, ends=True, noted="bad event from "),
    Claim("more-tests-than-announced", TESTED, {"received": result(2 * TESTS)}, result(2 * TESTS),
          noted="client 'more-tests-than-announced': evaluation ignored: more samples than were announced"),
    Claim("test-loss-nan", TESTED, {"received": result(loss=math.nan)}, result(loss=math.nan),
          noted="client 'test-loss-nan': evaluation ignored: the loss is not a finite number"),
    Claim("test-loss-largest", TESTED, {"received": result(loss=LARGEST)}, result(loss=LARGEST)),
    Claim("nothing-right", TESTED, {"received": result()}, result()),
    Claim("everything-right", TESTED, {"received": result(correct=TESTS, loss=0)}, result(correct=TESTS, loss=0)),
    Claim("absurd-tests", {"evaluation_samples": ABSURD}, {"received": result(ABSURD)}, result(ABSURD)),
)


def round_of(a, claim, before):
    """One round; returns what its model has to be: (theta, updates, weights)."""
    hello = dict(claim.hello)
    p = a.join(claim.name, hello.pop("samples", SAMPLES), **hello)
    what, task, theta = a.start(p)
    judge(theta, before)
    honest, update = a.honest(theta, task.learning_rate), a.own(theta, task.learning_rate).astype("<f4")
    p.send(report=pb.Report(**{"round": task.round, "attempt": task.attempt, "samples": SAMPLES, "steps": 1,
                               "train_loss": 1.0, **claim.report}))
    updates, weights = honest, [SAMPLES] * len(honest)
    if claim.ends:
        try:
            p.expect("rejected", DEADLINE)
        except Gone as end:
            equal("%s: its session ends" % what, end.status.name, "INVALID_ARGUMENT")
    elif claim.rejected:
        contains("%s: why" % claim.name, p.expect("rejected", DEADLINE).reason, claim.error)
    else:
        p.push(task, *p.update(update, task.plan), timeout=DEADLINE)
        p.expect("accepted", DEADLINE)
        updates, weights = honest + [update], weights + [claim.weight]
    if claim.evaluation is not None:
        ask = p.expect("evaluate", DEADLINE)
        p.send(evaluation=pb.EvaluationReport(round=ask.round, result=claim.evaluation))
    record = a.committed()
    a.leave(p)
    told(a, what, claim, record)
    return what, theta, updates, weights, claim, record


def told(a, what, claim, record):
    known = a.honest_unharmed(what)
    equal("%s: responders" % what, (record["responders"], record["attempt"]),
          (arena.HONEST + (not claim.rejected and not claim.ends), 1))
    equal("%s: capped" % what, record["capped"], int(claim.report.get("samples") == ABSURD))
    contains("%s: flctl clients" % what, known[claim.name]["last_error"] or "", claim.error)
    contains("%s: the log" % what, a.server.log(), claim.noted)
    for key in ("train_loss", "loss", "accuracy"):
        check("%s: %s is a number" % (what, key), record[key] is not None and math.isfinite(record[key]), record)


def judge(theta, before):
    """The model after the last round, and its accuracy: of the honest clients, and at most a share of another one."""
    if before is None:
        return
    name, old, updates, weights, claim, record = before
    step = arena.mean(updates, weights)
    size = max(np.abs(u).max() for u in updates)
    check("%s: the model has moved by the mean, with the weights that are allowed" % name,
          np.abs(theta - old - step).max() <= 1e-3 * size + 1e-6, (theta - old - step)[:5])


def accuracies(a, theta, claim, record):
    """The honest answers are known: what one client can do to the accuracy of the round is bounded."""
    tests = TESTS * arena.HONEST
    right = a.accuracy(theta) * tests
    more = TESTS if claim.evaluation is not None else 0
    if claim.hello.get("evaluation_samples") == ABSURD:
        more = arena.WEIGHT_CAP * TESTS
    check("%s: the accuracy is that of the honest clients, but for its share" % claim.name,
          (right - 1) / (tests + more) <= record["accuracy"] <= (right + 1 + more) / (tests + more),
          (record["accuracy"], right, tests, more))


def false_figures(folder):
    a = Arena(folder, "figures", len(CLAIMS), "algorithm: fedavg\nevaluation: {every: 1, clients: yes}\n"
              "strategy: {fraction: {fraction: 1}}\n")
    before = None
    for claim in CLAIMS:
        last, before = before, round_of(a, claim, before)
        if last is not None:
            accuracies(a, before[1], last[4], last[5])
    theta = a.model()
    judge(theta, before)
    accuracies(a, theta, before[4], before[5])
    a.finish(100 * 1024)
