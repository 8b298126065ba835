"""A federation of one round, and what can go wrong with a server. Used by server.py.

The name of a client picks its scenario: `Good` is served by class Good. Each keeps what it saw;
`judge` checks that afterwards, with the log and the exit code of fl-clientd.
"""
import concurrent.futures
import hashlib
import math
import queue
import threading

import grpc

import peer
from fl.v1 import federation_pb2 as pb
from harness import DEADLINE, check, contains, equal

UNITS = (("fc1", ((20, 60), (20,))), ("fc2", ((10, 20), (10,))))


def describe():
    model = pb.ModelDescription(input=[60], layers=["dense 20", "relu", "dense 10"])
    for name, shapes in UNITS:
        unit = model.units.add(name=name)
        unit.tensors.add(name=name + ".weight", dims=shapes[0])
        unit.tensors.add(name=name + ".bias", dims=shapes[1])
    model.digest = peer.layout_digest(model)
    return model


MODEL = describe()
COUNT = sum(peer.unit_count(u) for u in MODEL.units)
BLOCK = peer.to_bytes(0.1 * math.sin(i) for i in range(COUNT))
RANGES = peer.unit_ranges(MODEL)


class Good:
    """One round with feedback: the second unit is asked for, then a goodbye for good."""

    exit_code = 0
    said = ()  # what the client's log must hold
    plan_mask = b"\x02"
    feedback = True
    finishes = True

    def __init__(self):
        self.visits = self.fetches = self.pushes = self.reports = 0
        self.inbox = queue.Queue()
        self.data = b""
        self.report = self.header = self.failed = self.evaluation = None
        self.offsets = []
        self.errors = []
        self.power = concurrent.futures.Future()  # the daemon
        self.kills = []  # when it is killed and started again
        self.over = 0  # 1: say goodbye after the second heartbeat from now, nothing else will come

    # --- the control stream ---

    def welcome(self):
        return pb.Welcome(
            version=1, federation="foreign", session=self.session(), model=MODEL,
            solver=pb.Component(name="sgd"), codec=pb.Component(name="float32"),
            heartbeat_interval_ms=10000,
            limits=pb.Limits(chunk_bytes=512, message_bytes=65536, streams=8, idle_ms=60000),
            training=pb.TrainingOptions(epochs=1, batch_size=50))

    def session(self):
        return hashlib.md5(b"%s %d" % (type(self).__name__.encode(), self.visits)).digest()

    def plan(self):
        return pb.Plan(round=7, attempt=3, units=self.plan_mask)

    def task(self):
        return pb.Task(round=7, attempt=3, learning_rate=0.01, seed=5, deadline_ms=60000,
                       payloads=[pb.PayloadRef(name="model", bytes=len(BLOCK),
                                             sha256=hashlib.sha256(BLOCK).digest())],
                       plan=None if self.feedback else self.plan())

    def attend(self, hello, requests, context):
        self.hello = hello
        yield pb.ServerCommand(welcome=self.welcome())
        yield pb.ServerCommand(task=self.task())
        self.inbox = inbox = queue.Queue()  # of this session: an older one's end is not ours
        threading.Thread(target=self.read, args=(requests, inbox), daemon=True).start()
        while True:
            event, value = inbox.get(timeout=DEADLINE)
            if event == "closed":
                return
            if event == "heartbeat":
                yield pb.ServerCommand(heartbeat=pb.Heartbeat(sequence=value.sequence))
                self.over += self.over > 0
            elif event == "report":
                self.report = value
                self.reports += 1
                yield from self.on_report(context)
            elif event == "pushed":
                yield from self.on_pushed()
            elif event == "evaluation":
                self.evaluation = value
            elif event == "failed":
                self.failed = value.reason
            if event in ("failed", "evaluation") or self.over > 2:
                yield pb.ServerCommand(drain=pb.Drain(reason="that was all"))
                return

    @staticmethod
    def read(requests, inbox):
        try:
            for event in requests:
                kind = event.WhichOneof("event")
                inbox.put((kind, getattr(event, kind)))
        except Exception:  # the peer has gone
            pass
        inbox.put(("closed", None))

    def on_report(self, context):
        if self.feedback:
            yield pb.ServerCommand(plan=self.plan())

    def on_pushed(self):
        yield pb.ServerCommand(accepted=pb.Accepted(round=7, attempt=3))
        yield pb.ServerCommand(evaluate=pb.Evaluate(
            round=7, deadline_ms=60000, payload=pb.PayloadRef(name="candidate", bytes=len(BLOCK))))

    # --- transfers ---

    def authentic(self, session, context):
        if session != self.session():
            self.errors.append("session %r" % session)
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "unknown session")

    def fetch(self, request, context):
        self.authentic(request.session, context)
        if request.payload == "model":
            self.fetches += 1
            self.offsets.append(request.offset)
        yield from self.block(request, context)

    def block(self, request, context):
        for at in range(request.offset, len(BLOCK), 1000):
            yield pb.Chunk(offset=at, data=BLOCK[at:at + 1000])

    def status(self, request, context):
        self.authentic(request.session, context)
        return pb.PushStatusReply(received=len(self.data))

    def push(self, requests, context):
        self.pushes += 1
        message = next(requests)
        self.header = message.header
        self.authentic(self.header.session, context)
        return self.take(requests, context)

    def take(self, requests, context, limit=1 << 30):
        for message in requests:
            chunk = message.chunk
            if chunk.offset != len(self.data) or len(chunk.data) > 512:
                self.errors.append("chunk of %d at %d" % (len(chunk.data), chunk.offset))
            self.data += chunk.data
            if len(self.data) >= limit:
                return None
        if len(self.data) != self.header.bytes:
            self.errors.append("%d of %d bytes" % (len(self.data), self.header.bytes))
        self.inbox.put(("pushed", None))
        return pb.PushReply(result=pb.PushReply.RESULT_ACCEPTED, received=len(self.data))

    # --- afterwards ---

    def judge(self, log):
        name = type(self).__name__
        equal(name + ": errors", self.errors, [])
        for text in self.said:
            contains(name + ": log", log, text)
        if self.finishes:
            self.judge_round(name)

    def judge_round(self, name):
        if not check(name + ": the round was done", self.report and self.header and self.evaluation):
            return
        units = peer.planned_units(self.plan(), len(MODEL.units))
        sizes = [4 * (RANGES[u][1] - RANGES[u][0]) for u in units]
        equal(name + ": round", (self.header.round, self.header.attempt), (7, 3))
        equal(name + ": parts", [(p.payload, p.unit, p.codec, p.bytes) for p in self.header.parts],
              [("update", u, pb.CODEC_FLOAT32, n) for u, n in zip(units, sizes)])
        equal(name + ": bytes", len(self.data), sum(sizes))
        equal(name + ": samples", self.report.samples, self.hello.samples)
        equal(name + ": divergences", len(self.report.divergence), len(MODEL.units))
        delta = peer.floats(self.data)
        for u in units:
            n = RANGES[u][1] - RANGES[u][0]
            norm = math.sqrt(sum(x * x for x in delta[:n]))
            delta = delta[n:]
            check(name + ": norm of unit %d" % u, norm > 0 and math.isclose(
                norm, self.report.divergence[u], rel_tol=1e-4), (norm, self.report.divergence[u]))
        result = self.evaluation.result
        equal(name + ": evaluation", (self.evaluation.round, result.samples),
              (7, self.hello.evaluation_samples))
        check(name + ": figures", 0 <= result.correct <= result.samples and result.loss_sum > 0)


# --- transfers that break -------------------------------------------------------------------------


class AllUnits(Good):
    """The task carries the plan, and an empty mask is all units."""
    plan_mask = b""
    feedback = False


class FetchBroken(Good):
    said = ("UNAVAILABLE", "fetching payload 'model' of round 7 interrupted at 1000 of")

    def block(self, request, context):
        if self.fetches == 1:
            yield pb.Chunk(offset=0, data=BLOCK[:1000])
            context.abort(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE for a moment")
        yield from super().block(request, context)

    def judge(self, log):
        super().judge(log)
        equal("FetchBroken: goes on where it stopped", self.offsets, [0, 1000])


class FetchShort(FetchBroken):
    """Ends well, but early."""
    said = ("fetching payload 'model' of round 7 interrupted at 1000 of",)

    def block(self, request, context):
        if self.fetches == 1:
            yield pb.Chunk(offset=0, data=BLOCK[:1000])
            return
        yield from Good.block(self, request, context)


class FetchWrongOffset(Good):
    said = ("bad chunk from the server", "at 8, expected offset 0")

    def block(self, request, context):
        if self.fetches == 1:
            yield pb.Chunk(offset=8, data=BLOCK[:1000])
        yield from super().block(request, context)


class FetchTooLong(Good):
    said = ("bad chunk from the server",)

    def block(self, request, context):
        yield from super().block(request, context)
        if self.fetches == 1 and request.payload == "model":
            yield pb.Chunk(offset=len(BLOCK), data=b"more")


class FetchNotFound(Good):
    finishes = False

    def block(self, request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "nothing here")
        yield

    def judge(self, log):
        super().judge(log)
        contains("FetchNotFound: the server is told", self.failed or "", "nothing here")


class NotANumber(FetchNotFound):
    """A model that cannot be trained: the server is told, nothing is pushed."""

    def block(self, request, context):
        yield pb.Chunk(offset=0, data=b"\xff" * len(BLOCK))

    def judge(self, log):
        Good.judge(self, log)
        check("NotANumber: the server is told", bool(self.failed), self.failed)
        equal("NotANumber: pushes", self.pushes, 0)


class PushBroken(AllUnits):
    said = ("upload of round 7 interrupted",)

    def take(self, requests, context, limit=1 << 30):
        if self.pushes == 1:
            super().take(requests, context, limit=1536)
            context.abort(grpc.StatusCode.UNAVAILABLE, "for a moment")
        return super().take(requests, context)

    def judge(self, log):
        super().judge(log)
        equal("PushBroken: pushes", self.pushes, 2)


class PushIncomplete(PushBroken):
    def take(self, requests, context, limit=1 << 30):
        if self.pushes == 1:
            Good.take(self, requests, context, limit=1024)
            return pb.PushReply(result=pb.PushReply.RESULT_INCOMPLETE, received=1024)
        return Good.take(self, requests, context)


class StatusBroken(Good):
    def status(self, request, context):
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "for a moment")
        return super().status(request, context)


class StatusAccepted(Good):
    """The verdict of an earlier push got lost: nothing is sent again."""
    finishes = False

    def status(self, request, context):
        self.over = 1
        return pb.PushStatusReply(received=840, accepted=True)

    def judge(self, log):
        super().judge(log)
        equal("StatusAccepted: pushes", self.pushes, 0)


class PushUnwanted(Good):
    finishes = False
    said = ("update no longer wanted by the server, dropping it: too late",)

    def take(self, requests, context, limit=1 << 30):
        self.over = 1
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "too late")


class PushRejected(Good):
    """Rejected on the control stream drops the result."""
    finishes = False
    said = ("update rejected by the server, dropping the result: too strange",)

    def take(self, requests, context, limit=1 << 30):
        self.inbox.put(("pushed", None))
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "too strange")

    def on_pushed(self):
        self.over = 1
        yield pb.ServerCommand(rejected=pb.Rejected(round=7, attempt=3, reason="too strange"))


class PushUnreadOnce(Good):
    """INVALID_ARGUMENT without Rejected: the update is still asked for, and comes again."""
    said = ("rejected the upload as malformed (attempt 1 of 5), the result is kept: once",)

    def take(self, requests, context, limit=1 << 30):
        if self.pushes == 1:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "once")
        return super().take(requests, context, limit)

    def judge(self, log):
        super().judge(log)
        equal("PushUnreadOnce: pushes", self.pushes, 2)


class PushUnreadAlways(Good):
    """What the server never reads is told with Failed, so that its round does not wait."""
    finishes = False
    said = ("rejected the upload as malformed (attempt 5 of 5)",)

    def take(self, requests, context, limit=1 << 30):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "always")

    def judge(self, log):
        super().judge(log)
        equal("PushUnreadAlways: pushes", self.pushes, 5)
        contains("PushUnreadAlways: the server is told", self.failed or "", "pushing failed: always")


# --- control streams that break -------------------------------------------------------------------


class FirstVisit(Good):
    """The first session goes wrong, the second one is good."""

    def attend(self, hello, requests, context):
        if self.visits == 1:
            yield from self.wrong(hello, requests, context)
        else:
            yield from super().attend(hello, requests, context)

    def judge(self, log):
        super().judge(log)
        check(type(self).__name__ + ": came back", self.visits >= 2, self.visits)


class Unavailable(FirstVisit):
    said = ("UNAVAILABLE, not yet",)

    def wrong(self, hello, requests, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        yield


class EndsAtOnce(FirstVisit):
    def wrong(self, hello, requests, context):
        return
        yield


class WelcomeDigest(FirstVisit):
    said = ("bad command from the server", "welcome.model.digest")

    def wrong(self, hello, requests, context):
        welcome = self.welcome()
        welcome.model.digest = b"7" * 32
        yield pb.ServerCommand(welcome=welcome)
        list(requests)


class WelcomeEmpty(FirstVisit):
    said = ("bad command from the server", "ServerCommand.welcome")

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(welcome=pb.Welcome(version=1, session=self.session()))
        list(requests)


class WelcomeVersion(FirstVisit):
    said = ("welcome.version: 2 is out of range",)

    def wrong(self, hello, requests, context):
        welcome = self.welcome()
        welcome.version = 2
        yield pb.ServerCommand(welcome=welcome)
        list(requests)


class EmptyCommand(FirstVisit):
    said = ("bad command from the server",)

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(welcome=self.welcome())
        yield pb.ServerCommand()
        list(requests)


class PlanTooLong(FirstVisit):
    """Bits for units that the model does not have."""

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(welcome=self.welcome())
        task = self.task()
        task.plan.CopyFrom(pb.Plan(round=8, attempt=1, units=b"\xff"))
        yield pb.ServerCommand(task=task)
        list(requests)

    said = ("bad command from the server", "plan")


class Silent(FirstVisit):
    """Heartbeats are not answered."""

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(welcome=self.welcome())
        list(requests)

    said = ("the server is silent",)


class Reattend(Good):
    """The stream breaks after the report: the result is kept, nothing is trained twice."""

    def on_report(self, context):
        if self.visits == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        yield from super().on_report(context)

    def judge(self, log):
        super().judge(log)
        equal("Reattend: visits, fetches, reports", (self.visits, self.fetches, self.reports),
              (2, 1, 2))
        equal("Reattend: held", (self.hello.held.round, self.hello.held.attempt), (7, 3))


class Dismissed(Good):
    """Not chosen in round 6, done in round 7."""

    def task(self):
        task = super().task()
        if self.reports == 0:
            task.round = 6
        return task

    def on_report(self, context):
        if self.reports == 1:
            yield pb.ServerCommand(dismissed=pb.Dismissed(round=6, attempt=3))
            yield pb.ServerCommand(task=self.task())
        else:
            yield from super().on_report(context)


class Drained(FirstVisit):
    """Come back in a moment."""
    said = ("the server is draining, disconnecting: restart",)

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(welcome=self.welcome())
        yield pb.ServerCommand(drain=pb.Drain(reason="restart", reconnect_after_ms=50))
        context.abort(grpc.StatusCode.UNAVAILABLE, "restart")


class RefusedForNow(FirstVisit):
    said = ("refused this client: come later",)

    def wrong(self, hello, requests, context):
        yield pb.ServerCommand(refused=pb.Refused(
            reason=pb.Refused.REASON_FULL, message="come later", retry_after_ms=50))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "come later")


# --- refused for good: exit code 7 ----------------------------------------------------------------


class RefusedForGood(Good):
    finishes = False
    exit_code = 7
    reason = 0
    said = ("refused this client: no, thank you",)

    def attend(self, hello, requests, context):
        yield pb.ServerCommand(refused=pb.Refused(reason=self.reason, message="no, thank you"))
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no, thank you")


REASONS = {"Refused%d" % n: type("Refused%d" % n, (RefusedForGood,), {"reason": n})
           for n in range(1, 8)}


class Aborted(RefusedForGood):
    said = ("refused this client: another of that name",)
    status_ = (grpc.StatusCode.ABORTED, "another of that name")

    def attend(self, hello, requests, context):
        context.abort(*self.status_)
        yield


class Revoked(Aborted):
    said = ("refused this client: not you",)
    status_ = (grpc.StatusCode.PERMISSION_DENIED, "not you")


class OtherInput(RefusedForGood):
    """A model that does not take the client's data."""
    said = ("does not fit",)

    def attend(self, hello, requests, context):
        welcome = self.welcome()
        welcome.model.input[0] = 61
        welcome.model.units[0].tensors[0].dims[1] = 61
        welcome.model.digest = peer.layout_digest(welcome.model)
        yield pb.ServerCommand(welcome=welcome)
        list(requests)


class OtherSolver(RefusedForGood):
    said = ("does not fit", "quantum")

    def attend(self, hello, requests, context):
        welcome = self.welcome()
        welcome.solver.name = "quantum"
        yield pb.ServerCommand(welcome=welcome)
        list(requests)


ALL = [Good, AllUnits, FetchBroken, FetchShort, FetchWrongOffset, FetchTooLong, FetchNotFound,
       NotANumber, PushBroken, PushIncomplete, StatusBroken, StatusAccepted, PushRejected,
       PushUnreadOnce, PushUnreadAlways,
       PushUnwanted, Unavailable, EndsAtOnce, WelcomeDigest, WelcomeEmpty, WelcomeVersion,
       EmptyCommand, PlanTooLong, Silent, Reattend, Dismissed, Drained, RefusedForNow,
       *REASONS.values(), Aborted, Revoked, OtherInput, OtherSolver]
