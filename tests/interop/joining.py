"""SCAFFOLD's control as foreign clients see it, that join while the federation runs: in every round it
is the mean of what they keep, whatever N the configuration says. Used by client.py."""
import harness as h
import peer
from fl.v1 import federation_pb2 as pb
from harness import DEADLINE, check, equal
from peer import Peer

SMALL = "model: {input: [6], layers: [dense 5, relu, dense 3]}\n"


class Member:
    """A client that sends what it likes and keeps its control as the contract says."""

    def __init__(self, channel, name, seed):
        self.peer = Peer(channel, name).attend()
        self.peer.hello(DEADLINE)
        self.count = peer.unit_ranges(self.peer.welcome.model)[-1][1]
        self.seed = seed
        self.control = [0.0] * self.count

    def task(self):
        self.now = self.peer.expect("task", DEADLINE)
        model = peer.floats(self.peer.fetch(self.now.round))
        told = peer.floats(self.peer.fetch(self.now.round, "control"))
        equal("%s: entries of the control" % self.peer.name, len(told), len(model))
        return told

    def change(self):
        """Other numbers in each round, exact in float32."""
        return [((self.seed * 7 + self.now.round * 5 + i * 3) % 32 - 16) / 8
                for i in range(self.count)]

    def answer(self):
        change = self.change()
        self.peer.report(self.now)
        parts, data = [], b""
        for unit, (a, b) in enumerate(peer.unit_ranges(self.peer.welcome.model)):
            for payload, values in (("update", [0.0] * (b - a)), ("control_change", change[a:b])):
                piece = peer.to_bytes(values)
                parts.append(pb.Part(payload=payload, unit=unit, codec=pb.CODEC_FLOAT32,
                                     bytes=len(piece)))
                data += piece
        reply = self.peer.push(self.now, parts, data, timeout=DEADLINE)
        equal("%s: its update" % self.peer.name, reply.result, pb.PushReply.RESULT_ACCEPTED)
        self.control = [a + b for a, b in zip(self.control, change)]


def one(folder, name, more, joins, divisors):
    """Round i + 1 has the members joins[0..i]; its control is what they keep over divisors[i]."""
    server = h.Server(folder, name, "algorithm: scaffold\nrounds: %d\nwhen_finished: exit\n"
                      "evaluation: {every: 0}\n" % len(divisors) + SMALL + more)
    with server.channel() as channel:
        members = [Member(channel, "member-0", 1)]
        for at, divisor in enumerate(divisors):
            told = [m.task() for m in members]
            kept = [m.control for m in members]
            mean = [sum(c) / divisor for c in zip(*kept)]
            for m, t in zip(members, told):
                check("%s, round %d: what %s is told is the mean" % (name, at + 1, m.peer.name),
                      max(abs(a - b) for a, b in zip(t, mean)) <= 1e-6 * max(map(abs, mean), default=1),
                      (t[:4], mean[:4]))
            # Who comes now is a member of the next round, not of this one.
            new = [Member(channel, "member-%d" % (len(members) + k), len(members) + k + 1)
                   for k in range(joins[at])]
            for m in members:
                m.answer()
            members += new
        for m in members:
            m.peer.expect("drain", DEADLINE)
    server.ended(0)


def joining(folder):
    start = "round: {start_clients: 1, lost_grace: 1h%s}\n"
    joins = [1, 0, 2, 0, 0]
    one(folder, "joining", start % "", joins, [1, 2, 2, 4, 4])
    one(folder, "more-to-come", start % ", population: 10", joins, [10] * 5)
    # More than it says that there are: all of them are in the mean. It used to end the server.
    one(folder, "too-few", start % ", population: 2, min_responders: 1, over_selection: 2, "
        "over_selected: grace", joins, [2, 2, 2, 4, 4])
