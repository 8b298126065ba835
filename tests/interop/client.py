"""fl-serverd as a foreign client sees it. Run by test_grpcio.sh."""
import array
import json
import math
import queue
import threading
import time

import grpc
from google.protobuf import descriptor_pb2

import harness as h
import held
import joining
import peer
import states
from fl.v1 import federation_pb2 as pb
from fl.v1 import federation_pb2_grpc as rpc
from flgrpc import health_pb2, health_pb2_grpc, reflection_pb2, reflection_pb2_grpc
from harness import DEADLINE, check, contains, ends, equal, until
from peer import Gone, Peer

METHOD = "/fl.v1.Federation/"
WIDE = "model: {input: [60], layers: [dense 8000, relu, dense 10]}\n"  # 2.3 MB: three chunks


def gone(name, p, status, part=""):
    """The control stream of p ends with this status; commands before that are dropped."""
    try:
        while True:
            p.next(DEADLINE)
    except Gone as end:
        equal(name, end.status.name, status)
        return contains(name + " (message)", end.details or "", part)
    except queue.Empty:
        return check(name, False, "the stream is still open")


def join(channel, name, samples=100, **hello):
    p = Peer(channel, name, samples).attend()
    p.hello(DEADLINE, **hello)
    return p


def stalls(work, *messages):
    """work(messages) where the stream of messages stays open until the call has ended."""
    ended = threading.Event()

    def stream():
        yield from messages
        ended.wait(DEADLINE)

    try:
        return work(stream())
    finally:
        ended.set()


def moved(old, delta):
    """old + delta as the server makes it: added in double, rounded once."""
    return peer.floats(peer.to_bytes(a + b for a, b in zip(old, delta)))


# --- whole rounds ---------------------------------------------------------------------------------


def rounds_beside_clientd(folder, data, algorithm, more):
    """Two fl-clientd and one of us: two rounds, our part counted in numbers and in the model."""
    server = h.Server(folder, algorithm.replace("+", "-"),
                      "algorithm: %s\nrounds: 2\nwhen_finished: exit\n" % algorithm + more +
                      "model: {input: [60], layers: [dense 20, relu, dense 10]}\n"
                      "training: {epochs: 1, batch_size: 50, learning_rate: 0.001}\n"
                      "round: {start_clients: 3, population: 3, weight_cap: 0, share_cap: 0, norm_clip: 0, norm_cap: 0}\nevaluation: {every: 1, clients: yes}\n")
    clients = [h.clientd(folder, "%s-edge-%d" % (algorithm[:5], i), server.address, d)
               for i, d in enumerate(data)]
    feedback = algorithm == "adafl+fedldf"
    with server.channel() as channel:
        p = join(channel, "python", samples=100000000, evaluation_samples=10)
        n_units = len(p.welcome.model.units)
        ranges = peer.unit_ranges(p.welcome.model)
        equal("digest of the layout", p.welcome.model.digest, peer.layout_digest(p.welcome.model))
        equal("codec", p.welcome.codec.name, "float32")
        check("no feedback component without Welcome", p.welcome.solver.name == "sgd", p.welcome.solver)
        for round in (1, 2):
            task = p.expect("task", DEADLINE)
            equal("round of the task", (task.round, task.attempt > 0), (round, True))
            equal("plan in the task", task.HasField("plan"), not feedback)
            equal("payloads", [b.name for b in task.payloads], ["model"])
            model = p.fetch(task.round)
            equal("bytes of the model", len(model), task.payloads[0].bytes)
            equal("tail of the model", p.fetch(task.round, offset=1001), model[1001:])
            model = peer.floats(model)
            # The first unit moves by ten everywhere, the second stands still.
            delta = [10.0] * (ranges[0][1]) + [0.0] * (ranges[1][1] - ranges[1][0])
            norms = [math.sqrt(sum(x * x for x in delta[a:b])) for a, b in ranges]
            if feedback and round == 2:  # nothing has moved here, so nothing is asked of us
                p.report(task, [0.0, 0.0])
                equal("accepted without a plan", p.next(DEADLINE).WhichOneof("command"), "accepted")
                answer_evaluation(p, round)
                continue
            p.report(task, norms if feedback else ())
            plan = p.expect("plan", DEADLINE) if feedback else task.plan
            units = peer.planned_units(plan, n_units)
            equal("units asked of us", units, [0] if feedback else [0, 1])
            parts, data_ = p.update(delta, plan)
            reply = p.push(task, parts, data_, chunk=1000, timeout=DEADLINE)
            equal("reply to the push", (reply.result, reply.received),
                  (pb.PushReply.RESULT_ACCEPTED, len(data_)))
            accepted = p.expect("accepted", DEADLINE)
            equal("accepted", (accepted.round, accepted.attempt), (task.round, task.attempt))
            # The evaluation that the server asks for shows the new model before it is committed.
            new = answer_evaluation(p, round)
            a, b = ranges[0]
            if feedback:  # the only contributor to this unit
                check("our unit is the new one", new[a:b] == moved(model[a:b], delta[a:b]))
            else:  # with nearly all of the weight, which nothing caps here
                check("our unit has its weight",
                      max(abs(x - y - 10) for x, y in zip(new[a:b], model[a:b])) < 0.1)
            a, b = ranges[1]
            check("the other unit is trained by the others", feedback == (new[a:b] != model[a:b])
                  or not feedback)
            if round == 1:
                until("round 1 in flctl", lambda: committed(server))
                info = json.loads(server.flctl("rounds", "--last", "0", "--json"))
                info = info[0] if isinstance(info, list) else info["rounds"][0]
                equal("responders", info["responders"], 3)
                seen = json.loads(server.flctl("clients", "--json"))
                seen = seen if isinstance(seen, list) else seen["clients"]
                mine = [c for c in seen if c["name"] == "python"][0]
                equal("accepted in flctl", (mine["accepted"], mine["rejected"]), (1, 0))
                contains("our agent in flctl", json.dumps(mine), "python-peer")
        drain = p.expect("drain", DEADLINE)
        equal("drained for good", drain.reconnect_after_ms, 0)
        gone("end after the last round", p, "OK")
    server.ended(0)
    for c in clients:
        c.ended(0)


def hostile_claims(folder, data):
    """One of us claims divergences that its updates cannot have: rejected, named, in no layer."""
    server = h.Server(folder, "claims",
                      "algorithm: fedldf\nrounds: 2\nwhen_finished: exit\n"
                      "strategy: {fraction: {fraction: 1}, upload: {n: 1}}\n"
                      "model: {input: [60], layers: [dense 20, relu, dense 10]}\n"
                      "training: {epochs: 1, batch_size: 50, learning_rate: 0.001}\n"
                      "round: {start_clients: 3, population: 3, backfill: yes, share_cap: 0, norm_clip: 0, norm_cap: 0}\n")
    clients = [h.clientd(folder, "claims-edge-%d" % i, server.address, d)
               for i, d in enumerate(data)]
    text = "contradicts its report: divergence 3e+38 reported"
    with server.channel() as channel:
        p = join(channel, "hostile")
        n_units = len(p.welcome.model.units)
        old = None
        for round in (1, 2):
            task = p.expect("task", DEADLINE)
            equal("round of the task", task.round, round)
            model = peer.floats(p.fetch(task.round))
            if old is not None:
                change = [abs(a - b) for a, b in zip(model, old)]
                check("the others' layers are in the model, and ours in none",
                      all(0 < max(change[a:b]) < 5 for a, b in peer.unit_ranges(p.welcome.model)),
                      max(change))
            old = model
            p.report(task, [3e38] * n_units)
            plan = p.expect("plan", DEADLINE)
            equal("it is asked for every layer", peer.planned_units(plan, n_units),
                  list(range(n_units)))
            parts, bytes_ = p.update([10.0] * len(model), plan)
            ends("the push", "INVALID_ARGUMENT", lambda: p.push(task, parts, bytes_,
                                                                timeout=DEADLINE), text)
            verdict = p.expect("rejected", DEADLINE)
            equal("rejected", (verdict.round, verdict.attempt), (task.round, task.attempt))
            contains("its reason", verdict.reason, text)
            if round == 1:
                seen = json.loads(server.flctl("clients", "--json"))
                seen = seen if isinstance(seen, list) else seen["clients"]
                contains("error in flctl clients",
                         json.dumps([c for c in seen if c["name"] == "hostile"]), text)
        equal("drained for good", p.expect("drain", DEADLINE).reconnect_after_ms, 0)
    server.ended(0)
    for c in clients:
        c.ended(0)
    log = server.log()
    contains("the log names it", log, "client 'hostile' rejected: layer 'fc1' " + text)
    check("and nobody else", "'claims-edge-" not in "".join(
        line for line in log.splitlines() if "' rejected: " in line), log)


def answer_evaluation(p, round):
    """Fetch what is to be evaluated, say what came out; returns the model."""
    ask = p.expect("evaluate", DEADLINE)
    equal("round of the evaluation", ask.round, round)
    model = peer.floats(p.fetch(ask.round, ask.payload.name))
    p.send(evaluation=pb.EvaluationReport(
        round=round, result=pb.Evaluation(samples=10, correct=5, loss_sum=1)))
    return model


def committed(server):
    try:
        rounds = json.loads(server.flctl("rounds", "--last", "0", "--json"))
    except ValueError:
        return False
    return len(rounds if isinstance(rounds, list) else rounds["rounds"]) > 0


# --- uploads that break, alone in the federation ---------------------------------------------------


def chunks(data, size, start=0):
    return [pb.PushMessage(chunk=pb.Chunk(offset=at, data=data[at:at + size]))
            for at in range(start, len(data), size)]


def interrupted_push(p, task, parts, data):
    """Ends the stream early, breaks it in the middle, leaves a gap; then all is there, once."""
    reply = p.push(task, parts, data, chunk=100000, upto=300000, timeout=DEADLINE)
    equal("ended early", (reply.result, reply.received), (pb.PushReply.RESULT_INCOMPLETE, 300000))
    equal("status after ending early", p.status(task).received, 300000)

    def broken(stream):
        call = p.stub.Push.future(stream)
        until("bytes of an open push", lambda: p.status(task).received == 500000)
        call.cancel()

    stalls(broken, p.header(task, parts, data), *chunks(data[:500000], 40000, 300000))
    equal("status after a broken push", p.status(task).received, 500000)

    def gap(offset):
        return p.stub.Push(iter([p.header(task, parts, data),
                                 pb.PushMessage(chunk=pb.Chunk(offset=offset, data=b"x" * 8))]))

    ends("a gap", "OUT_OF_RANGE", lambda: gap(500008), "500000")
    ends("going back", "OUT_OF_RANGE", lambda: gap(499992), "500000")
    ends("past the end", "OUT_OF_RANGE", lambda: gap(len(data) + 8))
    equal("status after gaps", p.status(task).received, 500000)
    reply = p.push(task, parts, data, chunk=65536, timeout=DEADLINE)
    equal("resumed", (reply.result, reply.received),
          (pb.PushReply.RESULT_ACCEPTED, len(data)))
    accepted = p.expect("accepted", DEADLINE)
    equal("accepted once", (accepted.round, accepted.attempt), (task.round, task.attempt))
    status = p.status(task)
    check("status of an accepted one", status.accepted, status)

    reply = p.stub.Push(iter([p.header(task, parts, data), *chunks(data, 1 << 20)]),
                        timeout=DEADLINE)
    equal("sent twice", reply.result, pb.PushReply.RESULT_ACCEPTED)


def uploads(server, channel):
    """One client is the whole federation, so its update is the difference of two models."""
    p = join(channel, "alone")
    task = p.expect("task", DEADLINE)
    model = peer.floats(p.fetch(task.round))
    equal("fetch from the end", p.fetch(task.round, offset=4 * len(model)), b"")
    delta = peer.floats(peer.to_bytes(math.sin(i) for i in range(len(model))))
    parts, data = p.update(delta, task.plan)
    equal("nothing is there yet", (p.status(task).received, p.status(task).accepted), (0, False))
    p.report(task)
    interrupted_push(p, task, parts, data)
    task = p.expect("task", DEADLINE)
    equal("next round", task.round, 2)
    check("the model has moved by the update, once",
          peer.floats(p.fetch(2)) == moved(model, delta))
    ends("a finished round", "NOT_FOUND", lambda: p.fetch(1))
    ends("an upload for a finished round", "FAILED_PRECONDITION",
         lambda: p.stub.Push(iter([p.header(pb.Task(round=1, attempt=7), parts, data)])))
    return p, task, parts, data


# --- misuse ----------------------------------------------------------------------------------------


def first(channel, event):
    p = Peer(channel, "first").attend()
    p.events.put(event)
    return p


def bad_greetings(channel, server):
    gone("no hello", first(channel, pb.ClientEvent(heartbeat=pb.Heartbeat(sequence=1))),
         "FAILED_PRECONDITION", "hello")
    gone("report first", first(channel, pb.ClientEvent(report=pb.Report(round=1))),
         "FAILED_PRECONDITION", "hello")
    gone("event without content", first(channel, pb.ClientEvent()), "INVALID_ARGUMENT")
    for bad in ("", ".hidden", "a b", "a/b", "x" * 128, "ümlaut"):
        gone("client name %r" % bad[:10], first(channel, pb.ClientEvent(hello=pb.Hello(
            version_min=1, version_max=1, client=bad, samples=1))), "INVALID_ARGUMENT", "client")
    p = join(channel, "twice")
    p.send(hello=pb.Hello(version_min=1, version_max=1, client="twice", samples=1))
    gone("second hello", p, "FAILED_PRECONDITION", "hello")
    p = join(channel, "half-closer")
    p.events.put(None)
    gone("half-closed by the client", p, "OK")
    ends("token of an ended session", "UNAUTHENTICATED", lambda: p.fetch(2), "session")
    refusals(channel)
    longest = join(channel, "x" * 127)
    longest.leave()


def refusals(channel):
    def refused(name, reason, status, **hello):
        p = Peer(channel, "refused").attend()
        p.send(hello=pb.Hello(**{"version_min": 1, "version_max": 1, "client": "refused",
                                 "samples": 1, **hello}))
        answer = p.expect("refused", DEADLINE)
        equal(name, pb.Refused.Reason.Name(answer.reason), reason)
        equal(name + " (retry)", answer.retry_after_ms, 0)
        check(name + " (message)", answer.message != "")
        gone(name + " (status)", p, status)

    refused("wire version too new", "REASON_VERSION", "INVALID_ARGUMENT", version_min=2,
            version_max=9)
    refused("another model", "REASON_MODEL", "INVALID_ARGUMENT", model_digest=b"7" * 32)
    p = Peer(channel, "refused").attend()
    p.hello(DEADLINE, version_max=9)
    equal("version agreed on", p.welcome.version, 1)
    p.leave()


def bad_sessions(p, task, parts, data):
    good = p.welcome.session
    for bad in (b"", b"nobody", b"\x00" * 16, good[:8] + bytes(b ^ 255 for b in good[8:])):
        p.welcome.session = bad
        ends("fetch without session", "UNAUTHENTICATED", lambda: p.fetch(task.round), "session")
        ends("push without session", "UNAUTHENTICATED",
             lambda: p.stub.Push(iter([p.header(task, parts, data)])), "session")
        ends("status without session", "UNAUTHENTICATED", lambda: p.status(task), "session")
    p.welcome.session = good


def another_connection(server, p, task):
    """The session's token counts, not the connection it comes over."""
    with server.channel(("grpc.use_local_subchannel_pool", 1)) as channel:
        stub, p.stub = p.stub, rpc.FederationStub(channel)
        equal("fetch over another connection", len(p.fetch(task.round)), task.payloads[0].bytes)
        equal("status over another connection", p.status(task).accepted, False)
        p.stub = stub


def bad_fetches(p, task):
    size = task.payloads[0].bytes
    ends("unknown payload", "NOT_FOUND", lambda: p.fetch(task.round, "control"), "control")
    ends("future round", "NOT_FOUND", lambda: p.fetch(task.round + 1))
    ends("offset past the end", "OUT_OF_RANGE", lambda: p.fetch(task.round, offset=size + 1))
    ends("offset far past the end", "OUT_OF_RANGE",
         lambda: p.fetch(task.round, offset=(1 << 64) - 1))
    ends("a held model where models are sent as a whole", "FAILED_PRECONDITION",
         lambda: p.fetch(task.round, held=b"7" * 32), "whole")


def bad_pushes(p, task, parts, data):
    """Those that leave the client in its round."""
    def push(*messages):
        return p.stub.Push(iter(messages), timeout=DEADLINE)

    header = p.header(task, parts, data)
    chunk = pb.PushMessage(chunk=pb.Chunk(offset=0, data=b"x" * 8))
    ends("wrong round", "FAILED_PRECONDITION", lambda: push(p.header(
        pb.Task(round=task.round + 1, attempt=task.attempt), parts, data)))
    ends("wrong attempt", "FAILED_PRECONDITION", lambda: push(p.header(
        pb.Task(round=task.round, attempt=task.attempt + 1), parts, data)))
    ends("round zero", "INVALID_ARGUMENT", lambda: push(p.header(
        pb.Task(round=0, attempt=1), parts, data)))
    ends("nothing", "INVALID_ARGUMENT", lambda: push(), "header")
    ends("a message without content", "INVALID_ARGUMENT", lambda: push(pb.PushMessage()))
    ends("chunk first", "INVALID_ARGUMENT", lambda: push(chunk), "header")
    ends("two headers", "INVALID_ARGUMENT", lambda: push(header, header), "header")
    ends("parts that do not sum up", "INVALID_ARGUMENT",
         lambda: push(p.header(task, parts, data + b"1234")), "sum")
    ends("a unit twice", "INVALID_ARGUMENT",
         lambda: push(p.header(task, [parts[0], parts[0]], b"x" * 2 * parts[0].bytes)), "twice")
    ends("a chunk above chunk_bytes", "INVALID_ARGUMENT", lambda: push(header, pb.PushMessage(
        chunk=pb.Chunk(offset=0, data=data[:(1 << 20) + 1]))), "1048576")
    ends("more than announced", "INVALID_ARGUMENT", lambda: push(
        header, pb.PushMessage(chunk=pb.Chunk(offset=0, data=data[:1 << 20])),
        pb.PushMessage(chunk=pb.Chunk(offset=1 << 20, data=data[1 << 20:2 << 20])),
        pb.PushMessage(chunk=pb.Chunk(offset=2 << 20, data=data[2 << 20:] + b"!"))), "header")
    check("it is still asked for", not p.status(task).accepted)


def resumed(server):
    """The only client diverged: the server paused, until an operator looked."""
    def paused():
        log = server.log()
        return log.count("IDLE -> PAUSED, ") > log.count("PAUSED -> IDLE, ")

    until("it pauses", paused)
    contains("resume", server.flctl("resume"), "resumed")


def rejected_push(name, p, task, parts, data, part="", server=None):
    """INVALID_ARGUMENT on Push and Rejected on Attend; the repeated round's task comes back."""
    def push():  # other parts than before start the update over
        return p.push(task, parts, data, at=0, timeout=DEADLINE)

    ends(name, "INVALID_ARGUMENT", push, part)
    verdict = p.expect("rejected", DEADLINE)
    equal(name + " (rejected)", (verdict.round, verdict.attempt), (task.round, task.attempt))
    contains(name + " (reason)", verdict.reason, part)
    if server is not None:
        resumed(server)
    again = p.expect("task", DEADLINE)
    equal(name + " (the round is repeated)", (again.round, again.attempt > task.attempt),
          (task.round, True))
    return again


def rejections(server, p, task, parts, data):
    def part(u, codec=pb.CODEC_FLOAT32, n=None, payload="update"):
        n = parts[u].bytes if n is None else n
        return pb.Part(payload=payload, unit=u, codec=codec, bytes=n)

    size = [q.bytes for q in parts]
    task = rejected_push("a unit too short", p, task, [part(0, n=size[0] - 4), part(1)],
                         data[4:])
    task = rejected_push("a unit is missing", p, task, [part(0)], data[:size[0]])
    task = rejected_push("a unit that does not exist", p, task,
                         [part(0), part(1), pb.Part(payload="update", unit=9,
                                                    codec=pb.CODEC_FLOAT32, bytes=4)],
                         data + b"1234")
    task = rejected_push("another codec", p, task, [part(0, pb.CODEC_INT8), part(1)], data)
    task = rejected_push("a codec nobody knows", p, task, [part(0, 77), part(1)], data)
    task = rejected_push("another payload", p, task, [part(0, payload="control"), part(1)], data,
                         "payload 'control'")
    for bad in (math.nan, math.inf, -math.inf):
        values = peer.floats(data)
        values[len(values) - 1] = bad
        task = rejected_push("%s in an update" % bad, p, task, parts, peer.to_bytes(values),
                             server=server)
    p.report(task, loss=math.nan)
    equal("NaN in a report", p.expect("rejected", DEADLINE).round, task.round)
    task = p.expect("task", DEADLINE)
    p.report(task, divergence=[1.0])
    contains("divergences of another model", p.expect("rejected", DEADLINE).reason, "divergences")
    task = p.expect("task", DEADLINE)
    p.report(task, samples=0)
    contains("a report without samples", p.expect("rejected", DEADLINE).reason, "samples")
    task = p.expect("task", DEADLINE)
    p.send(failed=pb.Failed(round=task.round, attempt=task.attempt, reason="no power"))
    return p.expect("task", DEADLINE)


def too_large(channel):
    p = Peer(channel, "large").attend()
    p.send(hello=pb.Hello(version_min=1, version_max=1, client="large", agent="x" * (2 << 20)))
    gone("message over the limit", p, "RESOURCE_EXHAUSTED", "limit")
    p = Peer(channel, "large").attend()
    p.send(hello=pb.Hello(version_min=1, version_max=1, client="large", agent="x" * 400000))
    gone("event over its limit", p, "RESOURCE_EXHAUSTED")
    big = pb.PushMessage(chunk=pb.Chunk(data=b"x" * (2 << 20)))
    ends("chunk over the limit", "RESOURCE_EXHAUSTED",
         lambda: rpc.FederationStub(channel).Push(iter([big])))
    ends("large metadata", "RESOURCE_EXHAUSTED",
         lambda: rpc.FederationStub(channel).PushStatus(
             pb.PushStatusRequest(), metadata=[("x-note", "y" * 30000)]))
    p = Peer(channel, "noted").attend(metadata=[("x-note", "y" * 6000), ("x-bin", b"\0\1\2" * 99)])
    p.hello(DEADLINE)
    p.leave()


def no_such_thing(channel):
    raw = channel.unary_unary("/fl.v1.Federation/Nothing")
    ends("unknown method", "UNIMPLEMENTED", lambda: raw(b""), "Nothing")
    raw = channel.unary_unary("/other.v1.Service/Fetch")
    ends("unknown service", "UNIMPLEMENTED", lambda: raw(b""))
    raw = channel.unary_unary("/fl.v1.Admin/Status")
    ends("flctl's service is not for clients", "UNIMPLEMENTED", lambda: raw(b""))


def garbage(channel):
    """Bytes that are no message, a missing and a second request, on each method."""
    noise = b"\xff\xfe\x07garbage\x80\x80"
    for method in ("Attend", "Fetch", "Push", "PushStatus"):
        raw = channel.stream_stream(METHOD + method)
        ends("garbage to " + method, "INVALID_ARGUMENT",
             lambda: list(raw(iter([noise]), timeout=DEADLINE)))
    for method in ("Fetch", "Push", "PushStatus"):
        raw = channel.stream_stream(METHOD + method)
        ends("no request to " + method, "INVALID_ARGUMENT",
             lambda: list(raw(iter([]), timeout=DEADLINE)))
    raw = channel.unary_unary("/grpc.health.v1.Health/Check")
    ends("garbage to Health", "INVALID_ARGUMENT", lambda: raw(noise, timeout=DEADLINE))


def yielding(channel, p):
    """A client that yields gets a session only while no other of its name is open."""
    late = Peer(channel, p.name, p.samples).attend()
    late.send(hello=pb.Hello(version_min=1, version_max=1, client=p.name, samples=p.samples,
                             yields=True))
    equal("a yielding hello beside an open session", pb.Refused.Reason.Name(
        late.expect("refused", DEADLINE).reason), "REASON_DUPLICATE")
    gone("a yielding hello (status)", late, "ABORTED", "another session of this client is open")
    first = join(channel, "yields", yields=True)
    first.leave()
    end = time.monotonic() + DEADLINE
    again = None
    while again is None and time.monotonic() < end:
        try:
            again = join(channel, "yields", yields=True)
        except Gone:  # The server has not seen the end of the first one yet.
            pass
    if check("a yielding hello after that session has ended", again is not None):
        again.leave()


def fenced(channel, p, task):
    newer = join(channel, p.name)
    gone("older session of a name", p, "ABORTED", "newer session")
    p.stopped.set()
    ends("token of the older session", "UNAUTHENTICATED", lambda: p.fetch(task.round))
    again = newer.expect("task", DEADLINE)
    equal("the newer one gets the same task", (again.round, again.attempt),
          (task.round, task.attempt))
    return newer, again


# --- deadlines, cancelling, compression -----------------------------------------------------------


def welcomed_before_its_deadline(channel):
    """A control stream with a deadline that was far enough away for the welcome."""
    seconds = 0.5
    while True:
        seconds *= 2
        timed = Peer(channel, "timed").attend(timeout=seconds)
        try:
            timed.hello(DEADLINE)
            return timed
        except peer.Gone:
            timed.stopped.set()


def cancelling(server, channel, p, task, parts, data):
    """The client breaks off in every phase; the same name comes back to the same task."""
    silent = Peer(channel, "silent").attend()
    silent.call.cancel()
    gone("cancelled before hello", silent, "CANCELLED")
    name = p.name
    timed = welcomed_before_its_deadline(channel)
    gone("deadline of the control stream", timed, "DEADLINE_EXCEEDED")
    timed.stopped.set()

    call = p.stub.Fetch(pb.FetchRequest(session=p.welcome.session, round=task.round,
                                        payload="model"))
    next(call)
    call.cancel()
    until("cancelled fetch", lambda: call.code() == grpc.StatusCode.CANCELLED)
    ends("deadline of a push", "DEADLINE_EXCEEDED", lambda: stalls(
        lambda stream: p.stub.Push(stream, timeout=0.5), p.header(task, parts, data)))
    for phase in ("task", "report", "push"):
        p.leave()
        gone("cancelled in phase " + phase, p, "CANCELLED")
        p = join(channel, name)
        again = p.expect("task", DEADLINE)
        equal("same task after phase " + phase, (again.round, again.attempt),
              (task.round, task.attempt))
        if phase == "task":
            p.report(task)
        elif phase == "report":
            reply = p.push(task, parts, data, upto=1 << 20, timeout=DEADLINE)
            equal("first part", reply.received, 1 << 20)
    equal("the first part is kept", p.status(task).received, 1 << 20)
    p.report(task)
    reply = p.push(task, parts, data, timeout=DEADLINE)
    equal("the rest", reply.result, pb.PushReply.RESULT_ACCEPTED)
    p.expect("accepted", DEADLINE)
    return p, p.expect("task", DEADLINE)


def quick_returns(server, channel):
    """The end of a session and its successor's hello come together: the client is there."""
    p = join(channel, "hasty")
    lost = 0
    for _ in range(40):
        p.leave()
        p = join(channel, "hasty")
        clients = json.loads(server.flctl("clients", "--json"))
        clients = clients if isinstance(clients, list) else clients["clients"]
        lost += not [c for c in clients if c["name"] == "hasty"][0]["connected"]
    equal("clients taken for lost beside their new session", lost, 0)
    p.leave()


def compressed(server):
    """Compression is not spoken: one clear status, whatever the channel wants."""
    channel = server.channel(compression=grpc.Compression.Gzip)
    stub = rpc.FederationStub(channel)
    ends("a compressed message", "UNIMPLEMENTED", lambda: stub.Push(iter([pb.PushMessage(
        chunk=pb.Chunk(data=b"a" * 10000))])), "compress")
    channel.close()


# --- health, reflection, goodbye ------------------------------------------------------------------


def health(channel):
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", "fl.v1.Federation", "grpc.health.v1.Health"):
        status = stub.Check(health_pb2.HealthCheckRequest(service=service)).status
        equal("health of %r" % service, status, health_pb2.HealthCheckResponse.SERVING)
    ends("health of nobody", "NOT_FOUND",
         lambda: stub.Check(health_pb2.HealthCheckRequest(service="nobody")))
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="nobody"))
    equal("watching nobody", next(watch).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
    watch.cancel()
    watch = stub.Watch(health_pb2.HealthCheckRequest(service="fl.v1.Federation"))
    equal("watching", next(watch).status, health_pb2.HealthCheckResponse.SERVING)
    return watch


def reflection(channel):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    ask = reflection_pb2.ServerReflectionRequest

    def answers(*requests):
        return list(stub.ServerReflectionInfo(iter(requests), timeout=DEADLINE))

    services, symbol, name, wrong = answers(
        ask(list_services="*"), ask(file_containing_symbol="fl.v1.Federation"),
        ask(file_by_filename="fl/v1/federation.proto"), ask(file_containing_symbol="fl.v1.No"))
    names = [s.name for s in services.list_services_response.service]
    for expected in ("fl.v1.Federation", "grpc.health.v1.Health",
                     "grpc.reflection.v1alpha.ServerReflection"):
        check("reflection lists " + expected, expected in names, names)
    equal("reflection of a name that is none", wrong.error_response.error_code,
          grpc.StatusCode.NOT_FOUND.value[0])
    for answer in (symbol, name):
        files = answer.file_descriptor_response.file_descriptor_proto
        equal("files", len(files), 1)
        parsed = descriptor_pb2.FileDescriptorProto.FromString(files[0])
        equal("file", (parsed.name, parsed.package), ("fl/v1/federation.proto", "fl.v1"))
        methods = {m.name: (m.client_streaming, m.server_streaming)
                   for m in parsed.service[0].method}
        equal("methods", methods, {"Attend": (True, True), "Fetch": (False, True),
                                   "Push": (True, False), "PushStatus": (False, False)})
        ours = pb.DESCRIPTOR.serialized_pb
        mine = descriptor_pb2.FileDescriptorProto.FromString(ours)
        equal("messages", sorted(m.name for m in parsed.message_type),
              sorted(m.name for m in mine.message_type))


def small_limits(folder):
    """Full, silent and stopping, with a server whose limits are small."""
    server = h.Server(folder, "small", "model: {input: [4], layers: [dense 2]}\n"
                      "heartbeat: 4s\nlimits: {known_clients: 2, idle: 4s}\n")
    contains("no round begins", server.flctl("pause", "--reason", "limits only"), "paused")
    with server.channel() as channel:
        p = join(channel, "first")
        quiet = Peer(channel, "hasty").attend()
        quiet.beat = lambda: None
        quiet.hello(DEADLINE)
        full = Peer(channel, "third").attend()
        full.send(hello=pb.Hello(version_min=1, version_max=1, client="third", samples=1))
        answer = full.expect("refused", DEADLINE)
        equal("full", pb.Refused.Reason.Name(answer.reason), "REASON_FULL")
        check("full may come back", answer.retry_after_ms > 0)
        gone("full (status)", full, "RESOURCE_EXHAUSTED")
        ends("a push that stands still", "DEADLINE_EXCEEDED",
             lambda: stalls(rpc.FederationStub(channel).Push), "sent nothing for")
        gone("silence for three heartbeats", quiet, "CANCELLED")
        until("heartbeats are answered", lambda: p.heartbeats > 2)
        p.leave()
        quick_returns(server, channel)
        p = join(channel, "hasty")
        watch = health(channel)
        reflection(channel)
        server.process.terminate()
        equal("health while stopping", next(watch).status,
              health_pb2.HealthCheckResponse.NOT_SERVING)
        drain = p.expect("drain", DEADLINE)
        check("come back later", drain.reconnect_after_ms > 0)
        gone("end of a server that stops", p, "UNAVAILABLE")
    server.ended(0)


def documented(folder):
    """The client of docs/clients.md, as it stands there."""
    blocks = h.page_code()
    equal("blocks of code in docs/clients.md", len(blocks), 6)
    check("the first opens a channel over TLS", "secure_channel" in blocks[0])  # here it is plaintext
    server = h.Server(folder, "documented", "algorithm: fedldf\nevaluation: {every: 0}\nrounds: 1\n"
                      "model: {input: [60], layers: [dense 20, relu, dense 10]}\n")
    with server.channel() as channel:
        scope = {"channel": channel, "array": array, "math": math, "queue": queue,
                 "threading": threading, "pb": pb, "federation_pb2_grpc": rpc,
                 "train": lambda theta, rate, options: [x + 1 for x in theta]}
        exec("".join(blocks[1:]), scope)
        until("the documented client did its round", lambda: committed(server))
        scope["events"].put(None)
        late = join(channel, "late")
        equal("the federation is over", late.expect("drain", DEADLINE).reconnect_after_ms, 0)
        late.leave()
    server.stop()


def alone(folder):
    server = h.Server(folder, "solo", WIDE + "algorithm: fedavg\nevaluation: {every: 0}\n"
                      "round: {quarantine_after: 0, retry: 10ms, lost_grace: 1h}\ncheckpoints: {keep: 1}\n")
    with server.channel() as channel:
        p, task, parts, data = uploads(server, channel)
        another_connection(server, p, task)
        bad_sessions(p, task, parts, data)
        bad_fetches(p, task)
        bad_pushes(p, task, parts, data)
        task = rejections(server, p, task, parts, data)
        bad_greetings(channel, server)
        too_large(channel)
        no_such_thing(channel)
        garbage(channel)
        compressed(server)
        yielding(channel, p)
        p, task = fenced(channel, p, task)
        p, task = cancelling(server, channel, p, task, parts, data)
        check("a round after all of that", task.round == 3, task)
        p.leave()
    server.stop()


def main():
    folder = h.scratch()
    data = h.make_data(folder)
    small_limits(folder)
    documented(folder)
    joining.joining(folder)
    states.states(folder)
    rounds_beside_clientd(folder, data, "fedavg", "")
    rounds_beside_clientd(folder, data, "adafl+fedldf",
                          "strategy: {fraction: {start: 1.0, end: 1.0}, upload: {share: 0.33}}\n")
    hostile_claims(folder, data)
    held.held(folder, data)
    alone(folder)


h.run(main)
