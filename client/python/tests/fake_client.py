"""The client's end of docs/trainers.md, for tests: written from the page, not from the package.

The program runs in a thread of the test, or as a process of its own (`Process`).
"""

import json
import mmap
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

ALIGNMENT = 64


def unit_of(name):
    return name.rpartition(".")[0] or name


def layout(tensors, buffers=()):
    """The `units` of (name, shape) pairs, and how many float32 they take."""
    units, at = [], 0
    for name, shape in tensors:
        if not units or units[-1]["name"] != unit_of(name):
            units.append({"name": unit_of(name), "tensors": []})
        units[-1]["tensors"].append(
            {"name": name, "shape": list(shape), "offset": at, "buffer": name in buffers}
        )
        count = 1
        for d in shape:
            count *= d
        at += count
    return units, at


class Memory:
    """A memfd with model-shaped slots, each a whole safetensors file, and behind them others."""

    def __init__(self, slots, units, count, others=None):
        head = {}
        for unit in units:
            for t in unit["tensors"]:
                size = 1
                for d in t["shape"]:
                    size *= d
                head[t["name"]] = {
                    "dtype": "F32",
                    "shape": t["shape"],
                    "data_offsets": [4 * t["offset"], 4 * (t["offset"] + size)],
                }
        text = json.dumps(head).encode()
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        self.header = struct.pack("<Q", len(text)) + text
        self.count = count
        size = len(self.header) + 4 * count
        size += -size % ALIGNMENT
        self.bytes = size * len(slots) + sum((others or {}).values())
        self.fd = os.memfd_create("weights", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.bytes)
        self.map = mmap.mmap(self.fd, self.bytes)
        self.slots = {}
        for i, name in enumerate(slots):
            at = i * size
            self.map[at : at + len(self.header)] = self.header
            self.slots[name] = {
                "offset": at,
                "bytes": len(self.header) + 4 * count,
                "data": at + len(self.header),
            }
        at = size * len(slots)
        for name, length in (others or {}).items():
            self.slots[name] = {"offset": at, "bytes": length}
            at += length

    def put(self, slot, numbers):
        raw = struct.pack(f"<{self.count}f", *numbers)
        at = self.slots[slot]["data"]
        self.map[at : at + len(raw)] = raw

    def raw(self, slot):
        at = self.slots[slot]["data"]
        return self.map[at : at + 4 * self.count]

    def put_bytes(self, slot, raw):
        """All of a slot that is no model."""
        assert len(raw) == self.slots[slot]["bytes"]
        at = self.slots[slot]["offset"]
        self.map[at : at + len(raw)] = raw

    def get_bytes(self, slot, length):
        at = self.slots[slot]["offset"]
        return self.map[at : at + length]

    def get(self, slot):
        return list(struct.unpack(f"<{self.count}f", self.raw(slot)))

    def describe(self):
        return {"bytes": self.bytes, "slots": self.slots}


def places_of(n, numbers, seed=5):
    """A number and a sign for each of n parameters; each eleventh stays as it is."""
    rng = random.Random(seed)
    return [0.0 if i % 11 == 0 else float(2 * rng.randint(1, numbers) + rng.randint(0, 1)) for i in range(n)]


def nearest(moved, places):
    """The nearest displacement that is the same, but for signs, for all parameters of a number."""
    members = {}
    for x, place in zip(moved, places):
        members.setdefault(int(place) // 2, []).append(-x if place % 2 else x)
    means = {number: sum(of) / len(of) for number, of in members.items()}
    return [
        x if place == 0 else means[int(place) // 2] * (-1 if place % 2 else 1)
        for x, place in zip(moved, places)
    ]


class Client:
    """Says and hears; the program is at `other`, a socket."""

    SLOTS = ("model", "anchor", "gradient", "drift", "places")

    def __init__(self, tensors, buffers=(), mixup=0):
        self.units, self.count = layout(tensors, buffers)
        self.mine, self.other = socket.socketpair()
        self.mine.settimeout(600)
        self.weights = Memory(self.SLOTS, self.units, self.count, {"mixup": mixup} if mixup else None)
        self.result = Memory(("model",), self.units, self.count, {"summary": 4096})
        self.progress = []
        self.id = 0

    def close(self):
        self.mine.close()
        for memory in (self.weights, self.result):
            os.close(memory.fd)

    def say(self, message):
        text = json.dumps(message).encode()
        self.mine.sendall(struct.pack("<I", len(text)) + text)

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.mine.recv(n - len(data))
            if not piece:
                return None
            data += piece
        return data

    def hear(self):
        """The next answer that is no progress; None at the end."""
        while True:
            head = self._exactly(4)
            if head is None:
                return None
            (length,) = struct.unpack("<I", head)
            assert 1 <= length <= 1 << 20, length
            message = json.loads(self._exactly(length).decode())
            if message["type"] != "progress":
                return message
            self.progress.append(message)

    def ask(self, message):
        self.say(message)
        return self.hear()

    def start(self, purpose="train", data=None):
        return self.ask(
            {"type": "start", "protocol": 1, "client": "edge", "data": data, "purpose": purpose}
        )

    def model(self, parts=(), solver="sgd", options=None, units=None):
        return self.ask(
            {
                "type": "model",
                "units": self.units if units is None else units,
                "network": None,
                "solver": {"name": solver, "options": options or {}},
                "personal": {"name": "none", "options": {}},
                "parts": list(parts),
                "training": {"epochs": 1, "steps": 0, "batch_size": 20, "momentum": 0.0, "weight_decay": 0.0},
                "weights": self.weights.describe(),
                "result": self.result.describe(),
            }
        )

    def task(self, kind="train", given=("model",), do=None, **fields):
        self.id += 1
        message = {
            "type": kind,
            "id": self.id,
            "round": 3,
            "attempt": 0,
            "seed": 1234,
            "order_seed": 99,
            "learning_rate": 0.1,
            "momentum": 0.0,
            "weight_decay": 0.0,
            "epochs": 1,
            "steps": 0,
            "batch_size": 5,
            "time_limit_ms": 600000,
            "evaluate_trained": False,
            "given": list(given),
            "do": do or {},
        }
        message.update(fields)
        return message


class Threaded(Client):
    """The program as a thread of the test: fl_trainer.run()'s conversation with `model`."""

    def __init__(self, tensors, model, train, evaluate=None, buffers=(), mixup=0, **keywords):
        super().__init__(tensors, buffers, mixup)
        from fl_trainer import _api, _loop, _wire

        keywords.setdefault("samples", 20)
        keywords.setdefault("test_samples", 20 if evaluate else None)
        settings = {"parts": None, "evaluate_received": True, "software": "", "alone": None, **keywords}
        self.error = None

        def serve():
            persistent = _loop.Persistent(_wire.Channel(self.other), self.weights.fd, self.result.fd)
            try:
                persistent.start
                persistent.serve(_api._program(model, train, evaluate, **settings))
            except BaseException as e:
                self.error = e
            finally:
                self.other.close()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()

    def bye(self):
        self.say({"type": "bye"})
        self.thread.join(600)
        assert not self.thread.is_alive()
        self.close()


class Process(Client):
    """A script as a process of its own, as fl-clientd starts it."""

    def __init__(self, tensors, script, buffers=(), environment=None):
        super().__init__(tensors, buffers)
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        weights = os.open(f"/proc/self/fd/{self.weights.fd}", os.O_RDONLY)
        fds = (self.other.fileno(), weights, self.result.fd)
        env = dict(
            os.environ,
            PYTHONPATH=root,
            PYTHONDONTWRITEBYTECODE="1",
            FL_TRAINER_PROTOCOL="1",
            FL_TRAINER_SOCKET=str(fds[0]),
            FL_TRAINER_WEIGHTS=str(fds[1]),
            FL_TRAINER_RESULT=str(fds[2]),
        )
        env.update(environment or {})
        self.stderr = tempfile.TemporaryFile()
        self.stdout = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            pass_fds=fds,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.stdout,
            stderr=self.stderr,
        )
        self.other.close()
        os.close(weights)

    def ended(self):
        """Exit code and stderr."""
        code = self.process.wait(600)
        self.stderr.seek(0)
        text = self.stderr.read().decode()
        self.stderr.close()
        self.stdout.close()
        self.close()
        return code, text
