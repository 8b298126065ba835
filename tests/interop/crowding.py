"""A client with a valid certificate that wants connections, calls, memory and time for itself alone. Used by hostile.py.

Rounds need two real fl-clientd and a client of ours that is honest, `pacer`; between attacks the federation is paused.
So an attack lasts for whole rounds, of which nothing of the honest ones may be lost, without any time being measured.
"""
import contextlib
import os
import subprocess
import threading

import grpc
import numpy as np

import arena
import harness as h
import rawh2
from arena import SAMPLES, rows
from fl.v1 import federation_pb2 as pb
from fl.v1 import federation_pb2_grpc as rpc
from flgrpc import health_pb2, health_pb2_grpc
from harness import BUILD, DEADLINE, check, contains, ends, equal, until
from peer import Gone, Peer

CONNECTIONS, STREAMS = 4, 16  # limits.client_connections and limits.streams by default
NOT_READ = "the client has taken nothing of what is sent"
# 600 KB of parameters: more than flow control lets a server send to one who does not read.
MODEL = "model: {input: [%d], layers: [dense 12000, relu, dense %d]}\n" % (arena.FEATURES, arena.CLASSES)
ROUND = ("round: {start_clients: 3, min_clients: 3, min_responders: 3, retry: 10ms, straggler_factor: 2, "
         "straggler_min: 10s, lost_grace: 1s}\n")


class Federation(h.Daemon):
    """An fl-serverd with its own certificates, and a second address without TLS."""

    def __init__(self, folder, name, more):
        self.state, self.folder = os.path.join(folder, name + "-state"), folder
        self.flctl = lambda *a: h.Server.flctl(self, *a)
        conf = ("federation: %s\nstate_dir: \"%s\"\nlisten: [\"127.0.0.1:0\"]\nlisten_insecure: [\"127.0.0.1:0\"]\n"
                "identity: {hosts: [localhost]}\nalgorithm: fedavg\nevaluation: {every: 0}\n"
                "strategy: {fraction: {fraction: 1}}\n" % (name, self.state)) + arena.TRAINING + more
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w") as f:
            f.write(conf)
        subprocess.run([os.path.join(BUILD, "fl-serverd"), "--init", path], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        super().__init__("fl-serverd", conf, folder, name)
        ports = []
        for line in self.process.stdout:
            if line.startswith(b"listening "):
                ports.append(line.split()[1].decode().rsplit(":", 1)[1])
            if line.startswith(b"admin unix:"):
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        check("both addresses are open", len(ports) == 2, self.log())
        self.secure, self.plain = "localhost:" + ports[0], "127.0.0.1:" + ports[1]
        self.members = {}

    def join(self, name):
        """A client with a certificate; its configuration."""
        data = os.path.join(self.folder, name + "-data")
        os.mkdir(data)
        arena.write_csv(os.path.join(data, "train.csv"), *arena.samples(len(self.members), SAMPLES))
        conf = "server: \"%s\"\nname: %s\nstate_dir: \"%s\"\nexit_when_done: yes\ndata: {path: \"%s\"}\n" % (
            self.secure, name, os.path.join(self.folder, name + "-state"), data)
        path = os.path.join(self.folder, name + ".yaml")
        with open(path, "w") as f:
            f.write(conf)
        line = next(word for word in self.flctl("invite", name).split() if word.startswith("fl1:"))
        subprocess.run([os.path.join(BUILD, "fl-clientd"), "--join", path], input=line.encode(), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.members[name] = conf

    def channel(self, name):
        """A connection of its own with the certificate of that client."""
        def pem(file):
            with open(os.path.join(self.folder, name + "-state", "identity", file), "rb") as f:
                return f.read()

        return grpc.secure_channel(self.secure, grpc.ssl_channel_credentials(
            pem("roots.pem"), pem("client.key"), pem("client.pem")), options=own_connection())

    def known(self):
        return {c["name"]: c for c in rows(self.flctl("clients", "--json"))}

    def records(self):
        try:
            return rows(self.flctl("rounds", "--json"))
        except ValueError:
            return []


def own_connection():
    return [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]


class Crowd:
    def __init__(self, folder, name, rounds, more):
        self.server = Federation(folder, name, "rounds: %d\n" % rounds + more)
        self.round = 0
        self.honest = ["%s-edge-%d" % (name, i) for i in range(2)]
        for member in self.honest + ["pacer", "hostile"]:
            self.server.join(member)
        contains("no round begins before the first attack", self.server.flctl("pause"), "paused")
        self.clients = [h.Daemon("fl-clientd", self.server.members[n], folder, n) for n in self.honest]
        self.pacer_channel = self.server.channel("pacer")
        self.pacer = Peer(self.pacer_channel, "pacer", SAMPLES).attend()
        self.pacer.hello(DEADLINE)

    def connect(self):
        return self.server.channel("hostile")

    def raw(self, window=65535):
        return rawh2.Raw(self.server.secure, os.path.join(self.server.folder, "hostile-state", "identity"), window)

    def hostile(self, channel, samples=0, **hello):
        """A session of the attacker; without samples it is in no round."""
        p = Peer(channel, "hostile", samples).attend()
        p.hello(DEADLINE, **hello)
        return p

    def rounds_go_on(self, what, n=2, within=None):
        """n whole rounds while the attack lasts, with all updates of the honest ones; within(round): in the first one."""
        contains("%s: resume" % what, self.server.flctl("resume"), "resumed")
        for left in reversed(range(n)):
            self.round += 1
            task = self.pacer.expect("task", DEADLINE)
            equal("%s: the round" % what, (task.round, task.attempt), (self.round, 1))
            if left == 0:
                contains("%s: the last one" % what, self.server.flctl("pause"), "pause")
            if within is not None and left == n - 1:
                within(task.round)
            size = len(self.pacer.fetch(task.round, timeout=DEADLINE)) // 4
            self.pacer.report(task)
            self.pacer.push(task, *self.pacer.update(np.full(size, 1e-6, "<f4"), task.plan), timeout=DEADLINE,
                            chunk=self.pacer.welcome.limits.chunk_bytes)
            self.pacer.expect("accepted", DEADLINE)
        until("%s: round %d" % (what, self.round), lambda: any(r["round"] == self.round for r in self.server.records()))
        known = self.server.known()
        for name in self.honest + ["pacer"]:
            c = known[name]
            equal("%s: %s has all of its updates" % (what, name), (c["accepted"], c["rejected"], c["lost"]),
                  (self.round, 0, 0))
            check("%s: %s is connected until all rounds are done, not quarantined and without an error" % (what, name),
                  (c["connected"] or self.round == ROUNDS) and not c["quarantine"] and not c["last_error"], c)

    def finish(self, most_log):
        self.pacer.expect("drain", DEADLINE)
        self.pacer.leave()
        self.pacer_channel.close()
        for c in self.clients:
            c.ended(0)
            contains("%s has joined once" % c.name, c.log(), "round ")
            equal("%s has lost no session" % c.name, [line for line in c.log().splitlines() if "lost" in line], [])
        self.server.stop()
        log = self.server.log()
        honest = self.honest + ["pacer"]
        equal("no warning names an honest client, but for those who used its name", [
            line for line in log.splitlines() if arena.severe(line) and any("'%s'" % n in line for n in honest) and
            "its certificate is for 'hostile'" not in line and "has a certificate and is refused without TLS" not in line], [])
        check("the log has a bound", len(log) <= most_log, len(log))
        arena.memory_bounded(self.server.name, log)


# --- the attacks ------------------------------------------------------------------------------------


def many_connections(crowd):
    """More connections than a client may have: the oldest go, those of others stay."""
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(crowd.connect()) for _ in range(3 * CONNECTIONS)]
        watches, ended = [], []
        for channel in channels:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            watch.add_done_callback(lambda _, w=watch: ended.append(w))
            watches.append(watch)
            try:
                next(watch)
            except grpc.RpcError:
                pass
        until("of %d connections %d are left" % (len(channels), CONNECTIONS),
              lambda: len(ended) >= len(channels) - CONNECTIONS)
        crowd.rounds_go_on("many connections")
        check("the newest of its connections stay", watches[-1] not in ended)
        equal("connections that ended", len(ended), len(channels) - CONNECTIONS)
    contains("the log names who has too many connections", crowd.server.log(), "'hostile' has more than 4 connections")


def answered_calls(channel, n):
    """Opens n calls on a connection that stay open; their answers so far, and what ends them."""
    stub, first = health_pb2_grpc.HealthStub(channel), []
    calls = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(n)]

    def read(call):
        try:
            next(call)
            first.append(call)
        except grpc.RpcError:
            pass

    for call in calls:
        threading.Thread(target=read, args=(call,), daemon=True).start()
    return calls, first


def many_calls(crowd):
    """More calls at once than a client may have, on as many connections as it may have: the others are refused."""
    with contextlib.ExitStack() as stack:
        # One connection less than it may have, for the one that follows.
        opened = [answered_calls(stack.enter_context(crowd.connect()), 3 * STREAMS) for _ in range(CONNECTIONS - 1)]
        until("calls are served", lambda: sum(len(first) for _, first in opened) >= STREAMS)
        crowd.rounds_go_on("many calls")
        served = sum(len(first) for _, first in opened)
        check("all its connections have no more calls than a client may have", served <= STREAMS, served)
        contains("the log names who has too many calls", crowd.server.log(),
                 "of 'hostile': %d calls are open over all connections of this client, the limit" % STREAMS)
        # A peer that does not wait: none of its calls is served, by their status or by the limit of the connection.
        with contextlib.closing(crowd.raw()) as raw:
            for _ in range(3 * STREAMS):
                raw.call("/grpc.health.v1.Health/Watch", b"")
            refused = {}
            for kind, flags, stream, payload in raw.frames():
                if kind == rawh2.RESET:
                    refused[stream] = int.from_bytes(payload, "big")
                elif kind == rawh2.HEADERS and flags & rawh2.END_STREAM:
                    refused[stream] = "status"
                if len(refused) >= 3 * STREAMS:
                    break
            equal("calls above the limit are refused", len(refused), 3 * STREAMS)
            check("by a status", "status" in refused.values(), refused)
            equal("or by the limit of the connection", set(refused.values()) - {"status", rawh2.REFUSED_STREAM}, set())
        # Those that wait are served as soon as others end.
        before = sum(len(first) for _, first in opened)
        for _, first in opened:
            for call in list(first):
                call.cancel()
        until("calls that waited are served", lambda: sum(len(first) for _, first in opened) > before)
        for calls, _ in opened:
            for call in calls:
                call.cancel()


def slow_readers(crowd):
    """Downloads that nobody reads, on all connections: the memory of the attacker, not that of others."""
    with contextlib.ExitStack() as stack:
        p = crowd.hostile(stack.enter_context(crowd.connect()))
        raw = [stack.enter_context(contextlib.closing(crowd.raw(0))) for _ in range(CONNECTIONS - 1)]

        def begin(round):
            request = pb.FetchRequest(session=p.welcome.session, round=round, payload="model").SerializeToString()
            for connection in raw:
                for _ in range(STREAMS):
                    connection.call("/fl.v1.Federation/Fetch", request)

        crowd.rounds_go_on("slow readers", within=begin)
        until("who reads nothing is sent away", lambda: NOT_READ in crowd.server.log())
        p.leave()


def reconnects(crowd):
    """Connect, Hello, close, as fast as it can, as a client that is selected and never answers."""
    def again():
        for _ in range(60):
            with crowd.connect() as channel:
                p = Peer(channel, "hostile", SAMPLES).attend()
                try:
                    p.hello(DEADLINE)
                except Gone:
                    pass
                p.leave()

    before = len(crowd.server.log())
    thread = threading.Thread(target=again, daemon=True)
    thread.start()
    crowd.rounds_go_on("reconnects")
    thread.join(DEADLINE)
    check("reconnects: the log has a bound", len(crowd.server.log()) - before < 60000,
          len(crowd.server.log()) - before)


def names_without_certificate(crowd):
    """Many new names at the address without TLS, each with a Hello; and the names of clients with a certificate."""
    log = crowd.server.log
    before = len(log())
    with grpc.insecure_channel(crowd.server.plain, options=own_connection()) as channel:
        for name in crowd.honest + ["hostile"]:
            p = Peer(channel, name, SAMPLES).attend()
            p.send(hello=pb.Hello(version_min=1, version_max=1, client=name, samples=SAMPLES))
            refused = p.expect("refused", DEADLINE)
            equal("the name of %s without a certificate" % name, pb.Refused.Reason.Name(refused.reason), "REASON_REVOKED")
            contains("and why", refused.message, "'%s' has a certificate and is refused without TLS" % name)
        # Who is there when a round begins is asked to train, with or without a certificate; these are not.
        for i in range(200):
            p = Peer(channel, "stranger-%d" % i, 1 << 40).attend()
            p.send(hello=pb.Hello(version_min=1, version_max=1, client=p.name, samples=p.samples))
            p.expect("welcome", DEADLINE)
            p.events.put(None)  # more than 100 calls that are reset in a second end the connection
        until("the strangers have gone", lambda: not any(n.startswith("stranger-") for n in crowd.server.known()))
        crowd.rounds_go_on("many names without a certificate", 1)
    check("many names: the log has a bound", len(log()) - before < 120000, len(log()) - before)


def name_of_another(crowd):
    """With its own certificate the attacker names another client, whose session goes on."""
    with crowd.connect() as channel:
        for name in crowd.honest + ["pacer", "unknown"]:
            p = Peer(channel, name, SAMPLES).attend()
            p.send(hello=pb.Hello(version_min=1, version_max=1, client=name, samples=SAMPLES))
            refused = p.expect("refused", DEADLINE)
            equal("the name of %s with another certificate" % name, pb.Refused.Reason.Name(refused.reason), "REASON_NAME")
            contains("and why", refused.message, "its certificate is for 'hostile', but its Hello names '%s'" % name)
        p = crowd.hostile(channel)
        mine = p.welcome.session
        # The number of a client is in its token, the rest is random.
        for token in [bytes([n]) + mine[1:] for n in range(4) if n != mine[0]] + [bytes(len(mine))]:
            p.welcome.session = token
            ends("the token of another session", "UNAUTHENTICATED", lambda: p.fetch(1))
        p.leave()
    crowd.rounds_go_on("the names of others", 1)
    contains("the log names the certificate", crowd.server.log(), "its certificate is for 'hostile', but its Hello names")


def half_open_uploads(crowd):
    """Selected, it begins its upload and leaves it, again and again: the round goes on without it."""
    ended = []

    def begin(p):
        task = p.expect("task", DEADLINE)
        parts, data = p.update(np.zeros(task.payloads[0].bytes // 4, "<f4"), task.plan)
        p.report(task)
        while "FAILED_PRECONDITION" not in ended:  # then its round goes on without it
            half = threading.Event()

            def messages(at):
                yield p.header(task, parts, data)
                yield pb.PushMessage(chunk=pb.Chunk(offset=at, data=data[at:at + 1000]))
                half.wait(DEADLINE)

            try:
                p.stub.Push(messages(p.status(task).received), timeout=DEADLINE)
            except grpc.RpcError as e:
                ended.append(e.code().name)
            finally:
                half.set()

    with crowd.connect() as channel:
        p = crowd.hostile(channel, SAMPLES)
        thread = threading.Thread(target=begin, args=(p,), daemon=True)
        thread.start()
        crowd.rounds_go_on("half-open uploads", 1)
        known = crowd.server.known()["hostile"]
        contains("half-open uploads: flctl clients says why it is lost", known["last_error"] or "", "straggler_factor")
        contains("half-open uploads: the log names it", crowd.server.log(), "timed out, upload stalled or slower than")
        thread.join(DEADLINE)
        check("half-open uploads: they end, and the last one for good", ended[-1:] == ["FAILED_PRECONDITION"], ended)
        p.leave()



ROUNDS = 11  # of all attacks together
ATTACKS = (many_connections, many_calls, slow_readers, name_of_another, names_without_certificate, reconnects,
           half_open_uploads)


def crowding(folder):
    crowd = Crowd(folder, "crowd", ROUNDS, MODEL + ROUND + "heartbeat: 4s\n"
                  "limits: {idle: 3s, upload_memory: 1M, memory: 4M, peer_memory: 2M}\n")
    for attack in ATTACKS:
        attack(crowd)
    crowd.finish(300 * 1024)
