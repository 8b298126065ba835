"""A client of a federation in Python, written from proto/fl/v1/federation.proto alone.

docs/clients.md walks through it. No numpy: parameters are array.array('f').
"""
import array
import hashlib
import queue
import sys
import threading

import grpc

from fl.v1 import federation_pb2 as pb
from fl.v1 import federation_pb2_grpc as rpc


def floats(data):
    """Little-endian binary32, as all numbers of the wire, to an array."""
    values = array.array("f")
    values.frombytes(bytes(data))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def to_bytes(values):
    values = array.array("f", values)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def tensor_count(tensor):
    n = 1
    for d in tensor.dims:
        n *= d
    return n


def unit_count(unit):
    return sum(tensor_count(t) for t in unit.tensors)


def unit_ranges(model):
    """First and last-plus-one float of every unit in the model's block."""
    ranges, at = [], 0
    for unit in model.units:
        ranges.append((at, at + unit_count(unit)))
        at = ranges[-1][1]
    return ranges


def layout_digest(model):
    text = ""
    for unit in model.units:
        text += "unit %s\n" % unit.name
        for t in unit.tensors:
            text += "%s %s%s\n" % (t.name, "x".join(map(str, t.dims)) or "scalar", " buffer" if t.buffer else "")
    return hashlib.sha256(text.encode()).digest()


def planned_units(plan, n_units):
    """An empty mask asks for all units."""
    if not plan.units:
        return list(range(n_units))
    return [u for u in range(n_units) if plan.units[u // 8] >> (u % 8) & 1]


class Gone(Exception):
    """The control stream ended; `status` says how."""

    def __init__(self, status, details):
        super().__init__("%s: %s" % (status.name, details))
        self.status = status
        self.details = details


class Peer:
    def __init__(self, channel, name, samples=100):
        self.stub = rpc.FederationStub(channel)
        self.name = name
        self.samples = samples
        self.events = queue.Queue()
        self.commands = queue.Queue()
        self.heartbeats = 0
        self.welcome = None
        self.stopped = threading.Event()

    def attend(self, **options):
        """Open the control stream; options go to the call (timeout, compression, metadata)."""
        self.call = self.stub.Attend(iter(self.events.get, None), **options)
        threading.Thread(target=self.read, daemon=True).start()
        return self

    def read(self):
        try:
            for command in self.call:
                if command.WhichOneof("command") == "heartbeat":
                    self.heartbeats += 1
                else:
                    self.commands.put(command)
            self.commands.put(Gone(self.call.code(), self.call.details()))
        except grpc.RpcError as e:
            self.commands.put(Gone(e.code(), e.details()))
        self.stopped.set()

    def beat(self):
        sequence = 0
        while not self.stopped.wait(self.welcome.heartbeat_interval_ms / 1000):
            sequence += 1
            self.send(heartbeat=pb.Heartbeat(sequence=sequence))

    def send(self, **event):
        self.events.put(pb.ClientEvent(**event))

    def next(self, timeout):
        """The next command; raises Gone when the stream ended, queue.Empty when nothing came."""
        command = self.commands.get(timeout=timeout)
        if isinstance(command, Gone):
            raise command
        return command

    def expect(self, kind, timeout):
        """The next command of a kind; Welcome, Task, … Others in between are dropped."""
        while True:
            command = self.next(timeout)
            if command.WhichOneof("command") == kind:
                return getattr(command, kind)

    def hello(self, timeout, **fields):
        fields = {"version_min": 1, "version_max": 1, "client": self.name,
                  "samples": self.samples, "agent": "python-peer 1", **fields}
        self.send(hello=pb.Hello(**fields))
        self.welcome = self.expect("welcome", timeout)
        threading.Thread(target=self.beat, daemon=True).start()
        return self.welcome

    def fetch(self, round, payload="model", offset=0, held=b"", **options):
        """The bytes of a payload, or of what changed since a held model, from an offset."""
        request = pb.FetchRequest(
            session=self.welcome.session, round=round, payload=payload, offset=offset, held=held)
        data = bytearray()
        for chunk in self.stub.Fetch(request, **options):
            if chunk.offset != offset + len(data):
                raise ValueError("chunk at %d, expected %d" % (chunk.offset, offset + len(data)))
            data += chunk.data
        return bytes(data)

    def report(self, task, divergence=(), loss=1.0, samples=None):
        self.send(report=pb.Report(
            round=task.round, attempt=task.attempt, steps=1, train_loss=loss,
            samples=self.samples if samples is None else samples, divergence=divergence))

    def update(self, delta, plan):
        """Parts and bytes of the granted units; `delta` is the whole displacement."""
        parts, data = [], b""
        ranges = unit_ranges(self.welcome.model)
        for unit in planned_units(plan, len(ranges)):
            piece = to_bytes(delta[ranges[unit][0]:ranges[unit][1]])
            parts.append(pb.Part(
                payload="update", unit=unit, codec=pb.CODEC_FLOAT32, bytes=len(piece)))
            data += piece
        return parts, data

    def header(self, task, parts, data):
        return pb.PushMessage(header=pb.PushHeader(
            session=self.welcome.session, round=task.round, attempt=task.attempt,
            parts=parts, bytes=len(data)))

    def status(self, task, **options):
        return self.stub.PushStatus(pb.PushStatusRequest(
            session=self.welcome.session, round=task.round, attempt=task.attempt), **options)

    def push(self, task, parts, data, chunk=1 << 20, upto=None, at=None, **options):
        """Push from where the server stands; `upto` ends the stream early."""
        if at is None:
            at = self.status(task, **options).received
        end = len(data) if upto is None else upto

        def messages():
            yield self.header(task, parts, data)
            for offset in range(at, end, chunk):
                yield pb.PushMessage(chunk=pb.Chunk(
                    offset=offset, data=data[offset:min(offset + chunk, end)]))

        return self.stub.Push(messages(), **options)

    def leave(self):
        self.stopped.set()
        self.call.cancel()
