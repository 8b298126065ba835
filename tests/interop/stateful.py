"""Federations of several rounds: what a client keeps between them, and what goes along with models.

Used by server.py like scenarios.py. Every round has the same model, seed and learning rate, so that
equal updates show equal states of the client.
"""
import hashlib
import math
import struct
import threading

import peer
from fl.v1 import federation_pb2 as pb
from harness import DEADLINE, check, contains, equal
from scenarios import BLOCK, COUNT, MODEL, RANGES, Good

RATE = 0.01


def near(a, b, much=1e-4):
    scale = max(max(abs(x) for x in b), 1e-9)
    return max(abs(x - y) for x, y in zip(a, b)) <= much * scale


class Rounds(Good):
    """Rounds 7, 8, …: each tells what was counted, what there is to fetch, and what to push."""

    feedback = False
    finishes = False
    rounds = ()  # (counted round or None, mask of units, names of payloads)
    components = {}
    solver = pb.Component(name="sgd")

    def __init__(self):
        super().__init__()
        self.at = 0
        self.entered = True  # of that round: next_round() was called
        self.finished = False  # the last one was taken
        self.updates = []  # per round: {payload: floats with None where nothing was sent}
        self.parts = []
        self.all_reports = []
        self.asked = []
        self.payloads = {"model": BLOCK}

    def welcome(self):
        welcome = super().welcome()
        welcome.solver.CopyFrom(self.solver)
        for name, value in self.components.items():
            if isinstance(value, pb.Component):
                getattr(welcome, name).CopyFrom(value)
            else:
                setattr(welcome, name, value)
        return welcome

    def plan(self):
        return pb.Plan(round=7 + self.at, attempt=3, units=self.rounds[self.at][1])

    def task(self):
        counted, _, names = self.rounds[self.at]
        task = super().task()
        task.round = 7 + self.at
        task.selected, task.population = 1, 1
        if counted is not None:
            task.counted.round, task.counted.attempt = counted, 3
        del task.payloads[:]
        for name in names:
            task.payloads.add(name=name, bytes=len(self.payloads[name]),
                             sha256=hashlib.sha256(self.payloads[name]).digest())
        return task

    def attend(self, hello, requests, context):
        self.data = b""
        self.enter()
        yield from super().attend(hello, requests, context)

    def block(self, request, context):
        block = self.payloads.get(request.payload, BLOCK)
        for at in range(request.offset, len(block), 1000):
            yield pb.Chunk(offset=at, data=block[at:at + 1000])

    def fetch(self, request, context):
        self.asked.append((request.round, request.payload))
        yield from super().fetch(request, context)

    def on_report(self, context):
        self.all_reports.append(self.report)
        if self.rounds[self.at][1] == b"\0":  # nothing is asked for
            yield from self.on_pushed()

    def on_pushed(self):
        done = self.at
        last = done + 1 == len(self.rounds)
        # Before a word of it is said: a stream may end with each, and an update counts once.
        if not self.finished:
            if self.rounds[done][1] != b"\0":
                self.take_update()
            self.between()
            self.finished = last
            self.entered = last
            self.at += 0 if last else 1
        self.data = b""
        yield pb.ServerCommand(accepted=pb.Accepted(round=7 + done, attempt=3))
        if last:
            yield from self.after()
        else:
            self.enter()
            yield pb.ServerCommand(task=self.task())

    def enter(self):
        if not self.entered:
            self.entered = True
            self.next_round()

    def between(self):
        """An update was accepted."""

    def next_round(self):
        """Before its task is sent."""

    def after(self):
        self.over = 1
        yield from ()

    def decode(self, part, data):
        return peer.floats(data)

    def take_update(self):
        at, update = 0, {}
        for part in self.header.parts:
            values = update.setdefault(part.payload, [None] * COUNT)
            a, b = RANGES[part.unit]
            values[a:b] = self.decode(part, self.data[at:at + part.bytes])
            at += part.bytes
        self.parts.append([(p.payload, p.unit) for p in self.header.parts])
        self.updates.append(update)

    def whole(self, i, payload="update"):
        return [0.0 if x is None else x for x in self.updates[i][payload]]


class Scaffold(Rounds):
    """The client's control follows the server's, counted round by counted round: then training is
    that of the first round, whatever was not counted in between."""

    solver = pb.Component(name="scaffold")
    rounds = ((None, b"\x02", ("model", "control")), (7, b"", ("model", "control")),
              (7, b"", ("model", "control")), (9, b"\x01", ("model", "control")))

    def __init__(self):
        super().__init__()
        self.control = [0.0] * COUNT
        self.payloads["control"] = peer.to_bytes(self.control)

    def between(self):
        # Rounds 7 and 9 count, round 8 does not.
        if self.at in (0, 2):
            change = self.whole(self.at, "control_change")
            self.control = [a + b for a, b in zip(self.control, change)]
            self.payloads["control"] = peer.to_bytes(self.control)

    def judge(self, log):
        super().judge(log)
        if not equal("Scaffold: rounds", len(self.updates), 4):
            return
        equal("Scaffold: parts of a unit", self.parts[0], [("update", 1), ("control_change", 1)])
        equal("Scaffold: parts of all units", self.parts[1],
              [("update", 0), ("control_change", 0), ("update", 1), ("control_change", 1)])
        a, b = RANGES[1]
        first = self.whole(0)[a:b]
        for i in (1, 2):
            check("Scaffold: round %d is that of the first" % i,
                  near(self.whole(i)[a:b], first), i)
        a, b = RANGES[0]
        check("Scaffold: the other unit too", near(self.whole(3)[a:b], self.whole(2)[a:b]))
        contains("Scaffold: the round that was not counted", log, "discarding the pending client state of round 8/3")
        check("Scaffold: nothing is lost", " lost" not in log)


class ScaffoldKilled(Scaffold):
    """The same, killed wherever its state is on the way: after the report, in a push, when an update
    was accepted, when what is kept was settled for the next task."""

    def __init__(self):
        super().__init__()
        self.kills = [("report", 0), ("push", 0), ("task", 1), ("fetch", 1), ("report", 1),
                      ("task", 2), ("fetch", 2), ("push", 2), ("fetch", 3), ("report", 3)]
        self.killing = threading.Lock()

    def killed(self, *moment):
        # Calls of one client come in threads of their own: two would start it twice.
        with self.killing:
            if moment not in self.kills:
                return False
            self.power.result(DEADLINE).kill()
            self.kills.remove(moment)
            return True

    def on_report(self, context):
        # Of the round that it names: its push may have been taken before, and the next one begun.
        self.killed("report", self.report.round - 7)
        yield from super().on_report(context)

    def take(self, requests, context, limit=1 << 30):
        if ("push", self.at) in self.kills:
            super().take(requests, context, limit=512)
            self.killed("push", self.at)
            context.abort(peer.grpc.StatusCode.UNAVAILABLE, "killed")
        return super().take(requests, context)

    def next_round(self):
        self.killed("task", self.at)

    def fetch(self, request, context):
        if self.killed("fetch", self.at):
            context.abort(peer.grpc.StatusCode.UNAVAILABLE, "killed")
        yield from super().fetch(request, context)

    def attend(self, hello, requests, context):
        data = self.data
        inner = super().attend(hello, requests, context)
        first = next(inner)
        self.data = data  # what came of a push stays
        yield first
        yield from inner

    def judge(self, log):
        super().judge(log)
        check("ScaffoldKilled: sessions", log.count("joined federation") >= 5)


class ScaffoldLost(Scaffold):
    """The server counts a round of which this client knows nothing."""

    rounds = ((5, b"", ("model", "control")), (7, b"", ("model", "control")))
    said = ("the server aggregated round 5/3 of this client, but its client state "
            "'scaffold.control' of that round is lost",)

    def between(self):
        pass

    def judge(self, log):
        Rounds.judge(self, log)
        equal("ScaffoldLost: it goes on", len(self.updates), 2)


class WrongPayload(Rounds):
    """A control that is not as large as the model: told, not trained."""

    solver = pb.Component(name="scaffold")
    rounds = ((None, b"", ("model", "control")),)

    def __init__(self):
        super().__init__()
        self.payloads["control"] = BLOCK[4:]

    def judge(self, log):
        super().judge(log)
        contains("WrongPayload: the failure reaches the server", self.failed or "",
                 "payload 'control' has %d bytes, expected %d entries of the model" % (
                     len(BLOCK) - 4, COUNT))
        equal("WrongPayload: nothing is fetched", self.asked, [])


class Own(Rounds):
    """A model of its own: kept when its round counts, replaced by a personal model."""

    components = {"personal": pb.Component(name="own")}
    rounds = ((None, b"", ("model",)), (7, b"\0", ("model",)), (8, b"", ("model",)),
              (8, b"", ("model",)), (10, b"", ("model", "personal_model")))

    def __init__(self):
        super().__init__()
        self.payloads["personal_model"] = BLOCK

    def judge(self, log):
        super().judge(log)
        if not equal("Own: reports", len(self.all_reports), 5):
            return
        equal("Own: fetched", self.asked, [(7, "model"), (11, "personal_model")])
        first, third, fourth, last = (self.whole(i) for i in range(4))
        check("Own: parameters, not displacements",
              near([a - b for a, b in zip(first, peer.floats(BLOCK))], first, 2) and
              not near(first, peer.floats(BLOCK)))
        figures = [(r.received, r.trained) for r in self.all_reports]
        for i in (1, 2):
            equal("Own: round %d starts where the one before ended" % (7 + i),
                  figures[i][0].correct, figures[i - 1][1].correct)
        check("Own: the round that was not counted is done again", near(third, fourth, 1e-6))
        check("Own: a personal model takes its place", near(first, last, 1e-6))


class OwnBlended(Rounds):
    """beta 0.5: half of the personal model, half of where it started when it last received something:
    B, then (B + 3 B) / 2, then (2 B + 0) / 2, which is B again."""

    components = {"personal": pb.Component(name="own", options={"beta": "0.5"})}
    rounds = ((None, b"", ("model",)), (7, b"", ("model", "personal_model")),
              (8, b"\0", ("model",)), (9, b"", ("model", "personal_model")))

    def next_round(self):
        factor = 3 if self.at == 1 else 0
        self.payloads["personal_model"] = peer.to_bytes(factor * x for x in peer.floats(BLOCK))

    def judge(self, log):
        super().judge(log)
        if equal("OwnBlended: updates", len(self.updates), 3):
            check("OwnBlended: half and half", near(self.whole(2), self.whole(0)))
            check("OwnBlended: elsewhere in between", not near(self.whole(1), self.whole(0), 0.1))


class OwnAnchored(Rounds):
    """Pulled hard to the model that it received last, its own model goes no further in the second
    round than in the first."""

    components = {"personal": pb.Component(name="own")}
    solver = pb.Component(name="prox", options={"mu": "50"})
    rounds = ((None, b"", ("model",)), (7, b"", ("model",)))

    def judge(self, log):
        super().judge(log)
        if not equal("OwnAnchored: updates", len(self.updates), 2):
            return
        block = peer.floats(BLOCK)
        far = [math.dist(self.whole(i), block) for i in (0, 1)]
        check("OwnAnchored: held back", 0 < far[1] < 1.3 * far[0], far)


class PreviousDot(Rounds):
    components = {"wants_previous_dot": True}
    rounds = ((None, b"", ("model",)), (7, b"", ("model",)), (7, b"\0", ("model",)))

    def judge(self, log):
        super().judge(log)
        if not equal("PreviousDot: reports", len(self.all_reports), 3):
            return
        square = sum(x * x for x in self.whole(0))
        equal("PreviousDot: none in the first round", self.all_reports[0].previous_dot, 0)
        for report in self.all_reports[1:]:
            check("PreviousDot: of equal displacements",
                  math.isclose(report.previous_dot, square, rel_tol=1e-5),
                  (report.previous_dot, square))


class Residual(Rounds):
    """What int8 lost in a counted round is sent in the next one."""

    components = {"codec": pb.Component(name="int8", options={"residual": "yes", "decay": "1"})}
    rounds = ((None, b"", ("model",)), (7, b"", ("model",)), (7, b"", ("model",)))

    def decode(self, part, data):
        m, = struct.unpack_from("<f", data)
        return [m * q / 127 for q in struct.unpack_from("%db" % (len(data) - 4), data, 4)]

    def judge(self, log):
        super().judge(log)
        if not equal("Residual: updates", len(self.updates), 3):
            return
        first, second, third = (self.whole(i) for i in range(3))
        check("Residual: it is sent", not near(first, second, 1e-7))
        check("Residual: of the counted round", second == third)


class Resumed(Residual):
    """A push that breaks goes on with the same bytes."""

    def take(self, requests, context, limit=1 << 30):
        if self.at == 1 and not getattr(self, "broken", False):
            self.broken = True
            super().take(requests, context, limit=512)
            context.abort(peer.grpc.StatusCode.UNAVAILABLE, "for a moment")
        return super().take(requests, context)


class Masked(Rounds):
    """Neurons of the first unit, the last unit whole: the mask says which."""

    components = {"upload": pb.Component(name="fedadp", options={"rho": "0.3"})}
    rounds = ((None, b"", ("model",)),)

    def take_update(self):
        self.updates.append(self.data)

    def judge(self, log):
        super().judge(log)
        if not equal("Masked: updates", len(self.updates), 1):
            return
        parts, data = self.header.parts, self.updates[0]
        check("Masked: every part is", all(p.masked for p in parts))
        kept = bin(int.from_bytes(data[:3], "little")).count("1")
        check("Masked: some of 20 neurons", 0 < kept < 20, kept)
        equal("Masked: bytes of the first unit", parts[0].bytes, 3 + kept * 61 * 4)
        equal("Masked: the last unit is whole", (parts[1].bytes, data[parts[0].bytes:][:2]),
              (2 + 10 * 21 * 4, b"\xff\x03"))


class Adapted(Rounds):
    """An evaluation before and after a few steps on the client's own data."""

    components = {"personal": pb.Component(name="adapt", options={"steps": "20"})}
    rounds = ((None, b"", ("model",)),)

    def after(self):
        yield pb.ServerCommand(evaluate=pb.Evaluate(
            round=7, deadline_ms=60000, learning_rate=0.05,
            payload=pb.PayloadRef(name="candidate", bytes=len(BLOCK))))

    def judge(self, log):
        super().judge(log)
        e = self.evaluation
        if check("Adapted: an evaluation", e is not None and e.HasField("adapted"), e):
            check("Adapted: it got better", e.adapted.loss_sum < e.result.loss_sum, e)


class Collection(Rounds):
    """What it tells of its data comes in pieces, the same after a reconnect, and comes back as a
    payload that is fetched once."""

    solver = pb.Component(name="fedmix", options={"group": "5"})
    components = {"wants_summary": True}
    rounds = ((None, b"", ("model", "mixup")), (7, b"", ("model", "mixup")))

    def __init__(self):
        super().__init__()
        self.summaries = []

    def attend(self, hello, requests, context):
        self.hello = hello
        summary = b""
        yield pb.ServerCommand(welcome=self.welcome())
        for event in requests:
            if event.WhichOneof("event") == "summary":
                piece = event.summary
                if piece.offset != len(summary) or len(piece.data) > 65536:
                    self.errors.append("piece of %d at %d" % (len(piece.data), piece.offset))
                summary += piece.data
                if len(summary) == piece.total:
                    break
        self.summaries.append(summary)
        if len(self.summaries) == 1:
            context.abort(peer.grpc.StatusCode.UNAVAILABLE, "once more")
        self.payloads["mixup"] = summary
        inner = super().attend(hello, requests, context)
        next(inner)  # the Welcome was sent
        yield from inner

    def judge(self, log):
        super().judge(log)
        if not equal("Collection: summaries", len(self.summaries), 2):
            return
        check("Collection: more than a piece", len(self.summaries[0]) > 65536, len(self.summaries[0]))
        check("Collection: the same bytes", self.summaries[0] == self.summaries[1])
        equal("Collection: rounds", len(self.updates), 2)
        equal("Collection: fetched once", self.asked,
              [(7, "model"), (7, "mixup"), (8, "model")])


class OtherUpload(Good):
    finishes = False
    exit_code = 7
    component, name = "upload", "smoke-signals"

    @property
    def said(self):
        return ("the server's %s is '%s', which this client does not support" % (self.component, self.name),)

    def attend(self, hello, requests, context):
        welcome = self.welcome()
        getattr(welcome, self.component).name = self.name
        yield pb.ServerCommand(welcome=welcome)
        list(requests)


class OtherPersonal(OtherUpload):
    component = "personal"


class OtherCodec(OtherUpload):
    component = "codec"


ALL = [Scaffold, ScaffoldKilled, ScaffoldLost, WrongPayload, Own, OwnBlended, OwnAnchored, PreviousDot, Residual, Resumed, Masked,
       Adapted, Collection, OtherUpload, OtherPersonal, OtherCodec]
