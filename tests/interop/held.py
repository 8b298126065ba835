"""A client that keeps its model and downloads what changed since: docs/lattice.py and the code of docs/clients.md,
against fl-serverd with broadcast lattice and ternary, beside two fl-clientd."""
import hashlib
import math

import grpc

import harness as h
import peer
from harness import DEADLINE, check, ends, equal
from peer import Peer, pb

ROUNDS = 6


def digest(model):
    return hashlib.sha256(model).digest()


def same(name, model, expected):
    """The same bytes, as their digest: models are too long for a log."""
    equal(name, digest(model).hex(), digest(expected).hex())


class Calls:
    """The stub of the documented client: notes what is fetched, and spoils what changed."""

    def __init__(self, stub):
        self.stub = stub
        self.made = []
        self.spoil = None

    def Fetch(self, request):
        self.made.append((request.payload, request.held))
        for chunk in self.stub.Fetch(request, timeout=DEADLINE):
            if request.held and self.spoil is not None:
                chunk.data = self.spoil(chunk.data)
            yield chunk


class Client:
    """newest() of docs/clients.md, for the session of a peer."""

    def __init__(self, p):
        self.calls = Calls(p.stub)
        scope = {"math": math, "hashlib": hashlib, "grpc": grpc, "pb": pb, "welcome": p.welcome,
                 "stub": self.calls}
        exec(h.page_code()[-1], scope)
        self.newest = scope["newest"]

    def gets(self, name, round, listed, held, expected, made):
        """It gets the expected model, with these calls: (payload, held) of each."""
        self.calls.made = []
        same(name, self.newest(round, listed, held), expected)
        equal(name + " (calls)", self.calls.made, made)


def sent(model, welcome, round):
    """An update that moves every 19th trained entry by some steps, to and fro."""
    delta, at = [0.0] * (len(model) // 4), 0
    for unit in welcome.model.units:
        for tensor in unit.tensors:
            n = peer.tensor_count(tensor)
            for i in range(at + round % 3, at + n, 19):
                delta[i] = 0.0 if tensor.local or tensor.buffer else (-1) ** round * 0.5 * (1 + i % 3)
            at += n
    return delta


def resumed(p, round, held, whole):
    """A download of what changed goes on wherever it broke, and is shorter than the model."""
    changed = p.fetch(round, held=held)
    check("what changed is shorter than the model", 4 <= len(changed) < len(whole) // 2, len(changed))
    for at in (1, len(changed) // 3, len(changed) // 2, len(changed) - 1, len(changed)):
        same("what changed from byte %d on" % at, p.fetch(round, offset=at, held=held), changed[at:])
    ends("an offset past the end of what changed", "OUT_OF_RANGE",
         lambda: p.fetch(round, offset=len(changed) + 1, held=held), "past the end")


def unknown(p, round):
    """Each of many calls at once for what changed since a model that no server sent."""
    calls = [p.stub.Fetch(pb.FetchRequest(session=p.welcome.session, round=round, payload="model",
                                          held=digest(b"%d" % i))) for i in range(50)]
    for call in calls:
        ends("a held model that is unknown", "FAILED_PRECONDITION", lambda: list(call), "not known")


def fallen_back(client, task, held, whole):
    """A wrong model or difference, of any kind: the client downloads the whole model."""
    listed, all_of_it = task.payloads[0], ("model", b"")
    for name, spoil in (("a byte more", lambda data: data + b"\0"), ("no byte", lambda data: b""),
                        ("another step", lambda data: bytes([data[0] ^ 1]) + data[1:])):
        client.calls.spoil = spoil
        client.gets("%s in what changed: the whole model" % name, task.round, listed, held, whole,
                    [("model", digest(held)), all_of_it])
    client.calls.spoil = None
    for name, other in (("a model that no server sent", bytes(len(whole))), ("no model", b"\1")):
        client.gets("%s is held: the whole one" % name, task.round, listed, other, whole,
                    [("model", digest(other)), all_of_it])
    client.gets("nothing is held: the whole one", task.round, listed, None, whole, [all_of_it])


def round_of(p, client, models, held):
    """One round; `models`: those of the rounds before. Returns the model to hold for the next one."""
    task = p.expect("task", DEADLINE)
    round, listed = task.round, task.payloads[0]
    whole = p.fetch(round)
    equal("the model has the SHA-256 of the task", digest(whole), listed.sha256)
    if held is not None:
        # Every other round the model of the evaluation before is the held one.
        client.gets("round %d: from the held model" % round, round, listed, held, whole,
                    [] if round % 2 == 0 else [("model", digest(held))])
        for i, model in enumerate(models):
            client.gets("round %d: from the model of round %d" % (round, i + 1), round, listed, model, whole,
                        [("model", digest(model))])
        check("round %d: the model moved" % round, whole not in models)
        resumed(p, round, digest(models[0]), whole)
        fallen_back(client, task, models[-1], whole)
    unknown(p, round)
    client.gets("the newest one is held: no call", round, listed, whole, whole, [])
    models.append(whole)
    p.report(task)
    parts, data = p.update(sent(whole, p.welcome, round), task.plan)
    p.push(task, parts, data, timeout=DEADLINE)
    ask = p.expect("evaluate", DEADLINE)
    candidate = p.fetch(ask.round, ask.payload.name)
    client.gets("the model to evaluate, from that of the round", ask.round, ask.payload, whole, candidate,
                [(ask.payload.name, digest(whole))])
    p.send(evaluation=pb.EvaluationReport(
        round=ask.round, result=pb.Evaluation(samples=10, correct=5, loss_sum=1)))
    return candidate if round % 2 == 1 else whole


def rounds(folder, data, name, norm, broadcast):
    server = h.Server(folder, "held-" + name,
                      "algorithm: fedavg\nrounds: %d\nwhen_finished: exit\n" % ROUNDS +
                      "strategy: {broadcast: {policy: %s}}\n" % broadcast +
                      "model: {norm: %s, input: [60], layers: [dense 20, bn, relu, dense 10]}\n" % norm +
                      "training: {epochs: 1, batch_size: 50, learning_rate: 0.05}\n"
                      "round: {start_clients: 3, population: 3, weight_cap: 0, norm_clip: 0, norm_cap: 0}\n"
                      "evaluation: {every: 1, clients: yes}\n")
    clients = [h.clientd(folder, "held-%s-%d" % (name, i), server.address, d) for i, d in enumerate(data)]
    with server.channel() as channel:
        p = Peer(channel, "python", 1000).attend()
        p.hello(DEADLINE, evaluation_samples=10)
        equal("broadcast in Welcome", p.welcome.broadcast.name, broadcast.split(",")[0])
        client, models, held = Client(p), [], None
        for _ in range(ROUNDS):
            held = round_of(p, client, models, held)
        equal("drained for good", p.expect("drain", DEADLINE).reconnect_after_ms, 0)
    server.ended(0)
    for c in clients:
        c.ended(0)


def held(folder, data):
    rounds(folder, data, "halved", "shared", "lattice, halve_at: %d" % (ROUNDS - 2))
    rounds(folder, data, "local", "local", "lattice")
    rounds(folder, data, "ternary", "shared", "ternary")
