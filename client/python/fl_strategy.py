"""Write the aggregation of a server in Python.

    import numpy as np
    import fl_strategy

    def aggregate(round):
        for layer in round.layers:
            layer.step[:] = np.median(layer.updates, axis=0)

    fl_strategy.run(aggregate)

`fl-serverd` and `fl-sim` start the script (`strategy: {aggregate: {policy: command, program: [...]}}`) and hand it
round after round; run by hand, it aggregates one round of made-up updates. Needs numpy. docs/trainers.md#a-strategy-in-python
is the full reference.
"""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from fl_trainer._memory import map_descriptor
from fl_trainer._wire import Channel, Gone, ProtocolError
from fl_trainer._work import from_environment, last_line, show

try:
    import numpy as np
except ImportError:  # without it nothing can be aggregated
    sys.exit("fl_strategy: no numpy in this Python: install python3-numpy, or name another interpreter in 'program'")

__version__ = "0.1.0"
__all__ = ["Client", "Layer", "Round", "run"]

#: Version of the trainer protocol.
PROTOCOL = 1


class Client(NamedTuple):
    """Whose update a row is."""

    name: str
    samples: int
    steps: int
    loss: float


class Layer(NamedTuple):
    """A layer that at least one client sent."""

    name: str
    #: Its entries in the model, an index for the arrays of the round.
    slice: slice
    #: Indices of the clients that sent it, in the order of the rows below.
    clients: Any
    #: float32 [senders, n]: displacements, trained minus received.
    updates: Any
    #: float64 [senders]: weights of the mean, with sum 1.
    weights: Any
    #: float64 [n]: their weighted mean.
    mean: Any
    #: float32 [n]: the model that the round started with.
    model: Any
    #: float64 [n]: to be written, the new model is model + step; 0 before.
    step: Any


class Round:
    """The updates of a round. All arrays but `step` are read-only and valid until aggregate() returns."""

    def __init__(self, message: Mapping[str, Any], units: Sequence[Mapping[str, Any]], arrays: Mapping[str, Any]) -> None:
        self.number = int(message["round"])
        self.attempt = int(message.get("attempt") or 1)
        #: The same for the same round, so that draws from it do not differ between attempts.
        self.seed = int(message["seed"])
        self.clients = [Client(c["client"], c["samples"], c["steps"], c["loss"]) for c in message["clients"]]
        self.model = arrays["model"]
        self.updates = arrays["updates"]
        self.mean = arrays["mean"]
        #: float64 [clients, layers of the model]; 0: the client did not send the layer.
        self.weights = arrays["weights"]
        self.step = np.zeros(len(self.model))
        #: What the script kept of the round before, b"" in the first one. Assign bytes to keep others.
        self.state: Any = arrays["state"]
        #: Assign a number of at least 0 for each client: `selection: attention` takes them as distances.
        self.scores: Optional[Sequence[float]] = None
        self._units = units
        self._layers: Optional[List[Layer]] = None

    @property
    def entries(self) -> int:
        """Parameters of the model."""
        return len(self.model)

    @property
    def layers(self) -> List[Layer]:
        """The layers that were sent. The others stay as they are."""
        if self._layers is None:
            every = [self._layer(i, unit) for i, unit in enumerate(self._units)]
            self._layers = [layer for layer in every if len(layer.clients) > 0]
        return self._layers

    def _layer(self, i: int, unit: Mapping[str, Any]) -> Layer:
        tensors = unit["tensors"]
        begin = int(tensors[0]["offset"])
        end = int(tensors[-1]["offset"]) + math.prod(tensors[-1]["shape"])
        at = slice(begin, end)
        senders = np.flatnonzero(self.weights[:, i])
        whole = len(senders) == len(self.clients)
        return Layer(
            unit["name"],
            at,
            senders,
            self.updates[:, at] if whole else self.updates[senders, at],
            self.weights[senders, i],
            self.mean[at],
            self.model[at],
            self.step[at],
        )


def run(aggregate: Callable[[Round], Any], *, software: str = "") -> None:
    """Aggregate rounds for the server that started this program, until it ends.

    `aggregate(round)` writes `round.step` (or `layer.step` of each of `round.layers`), or returns the step as an array of
    float64, float32 or float16 with an entry for each parameter.
    """
    try:
        fd = from_environment("FL_TRAINER_SOCKET")
        if fd is None:
            _alone(aggregate)
            return
        fds = [int(from_environment(name) or -1) for name in ("FL_TRAINER_WEIGHTS", "FL_TRAINER_RESULT")]
        from_environment("FL_TRAINER_PROTOCOL")
        _Server(Channel(socket.socket(fileno=int(fd))), fds, aggregate, software).serve()
    except Gone:
        return  # the server ended
    except ProtocolError as e:
        sys.exit(f"fl_strategy: {e}")


class _Server:
    """The connection to the server."""

    def __init__(self, channel: Channel, fds: List[int], aggregate: Callable[[Round], Any], software: str) -> None:
        self.channel = channel
        self.fds = fds
        self.aggregate = aggregate
        self.software = software
        self.units: List[Dict[str, Any]] = []
        self.entries = 0
        self.given: Dict[str, Any] = {}
        self.result: Dict[str, Any] = {}
        self.memory: List[Any] = []
        self.pid = os.getpid()

    def serve(self) -> None:
        start = self.channel.receive()
        if start is None or start["type"] == "bye":
            return
        if start.get("purpose") != "aggregate":
            self.channel.send(
                {"type": "failed", "error": "this script aggregates on a server: strategy.aggregate.program names it"}
            )
            return
        self.channel.send(
            {
                "type": "ready",
                "protocol": PROTOCOL,
                "can": ["aggregate"],
                "parts": [],
                "samples": 0,
                "test_samples": 0,
                "software": f"fl_strategy {self.software}, Python {platform.python_version()}".replace(" ,", ",")[:200],
            }
        )
        while True:
            message = self.channel.receive()
            if message is None or message["type"] == "bye":
                return
            if message["type"] == "model":
                self.channel.send(self._model(message))
            elif message["type"] == "aggregate":
                self.channel.send(self._answer(message))
            elif message["type"] != "cancel":  # of a round that was answered already
                raise ProtocolError(f"'{message['type']}' was not declared")

    def _model(self, message: Mapping[str, Any]) -> Dict[str, Any]:
        last = message["units"][-1]["tensors"][-1]
        self.units = message["units"]
        self.entries = int(last["offset"]) + math.prod(last["shape"])
        self.given, self.result = message["weights"]["slots"], message["result"]["slots"]
        self.memory = [
            map_descriptor(fd, message[area]["bytes"], write)
            for fd, area, write in ((self.fds[0], "weights", False), (self.fds[1], "result", True))
        ]
        return {"type": "accepted"}

    def _array(self, name: str, dtype: str, shape: Sequence[int]) -> Any:
        slot = self.given[name]
        flat = np.frombuffer(self.memory[0], dtype, math.prod(shape), slot.get("data", slot["offset"]))
        return flat.reshape(shape)

    def _answer(self, message: Mapping[str, Any]) -> Dict[str, Any]:
        id = message.get("id")
        try:
            return {"type": "done", "id": id, **self._carry_out(message)}
        except Exception as e:
            show(e)
            failed = {"type": "failed", "id": id, "error": last_line(e)}
            if isinstance(e, FloatingPointError):
                failed["diverged"] = True
            return failed

    def _carry_out(self, message: Mapping[str, Any]) -> Dict[str, Any]:
        n = len(message["clients"])
        state = self.given["state"]["offset"]
        round = Round(
            message,
            self.units,
            {
                "model": self._array("model", "<f4", (self.entries,)),
                "updates": self._array("updates", "<f4", (n, self.entries)),
                "mean": self._array("mean", "<f8", (self.entries,)),
                "weights": self._array("weights", "<f8", (n, len(self.units))),
                "state": self.memory[0][state : state + int(message["state_bytes"])],
            },
        )
        returned = self.aggregate(round)
        if os.getpid() != self.pid:
            os._exit(1)  # a child that the script forked and that returned must not answer a second time
        step = _step_of(returned, round)
        state_bytes = _state_of(round, self.result["state"]["bytes"])
        scores = _scores_of(round)
        self._write("step", step.tobytes())
        self._write("state", state_bytes)
        if scores is not None:
            self._write("scores", scores.tobytes())
        return {"state_bytes": len(state_bytes), "scores": scores is not None}

    def _write(self, name: str, data: bytes) -> None:
        offset = self.result[name]["offset"]
        self.memory[1][offset : offset + len(data)] = data


def _step_of(returned: Any, round: Round) -> Any:
    if returned is None:
        return round.step
    if not isinstance(returned, np.ndarray) or returned.dtype.kind != "f":
        kind = f"an array of {returned.dtype}" if isinstance(returned, np.ndarray) else type(returned).__name__
        raise TypeError(f"aggregate() returned {kind}, expected an array of float64 or float32, or None with round.step written")
    if returned.shape != (round.entries,):
        raise ValueError(f"aggregate() returned an array of shape {returned.shape}, expected ({round.entries},), the parameters of the model")
    return np.ascontiguousarray(returned, np.float64)


def _state_of(round: Round, limit: int) -> bytes:
    if not isinstance(round.state, (bytes, bytearray, memoryview)):
        raise TypeError(f"round.state is {type(round.state).__name__}, expected bytes")
    state = bytes(round.state)
    if len(state) > limit:
        raise ValueError(f"round.state has {len(state)} bytes, expected at most {limit} (strategy.aggregate.state_limit)")
    return state


def _scores_of(round: Round) -> Any:
    if round.scores is None:
        return None
    scores = np.asarray(round.scores, np.float64)
    if scores.shape != (len(round.clients),) or not np.all(np.isfinite(scores)) or np.any(scores < 0):
        raise ValueError(f"round.scores has shape {scores.shape}, expected {len(round.clients)} finite numbers of at least 0, one a client")
    return scores


def _alone(aggregate: Callable[[Round], Any]) -> None:
    """Two rounds of made-up updates, so that a script can be tried by hand."""
    draw = np.random.default_rng(1)
    units = [
        {"name": "first", "tensors": [{"name": "first.weight", "offset": 0, "shape": [4, 3]}]},
        {"name": "second", "tensors": [{"name": "second.weight", "offset": 12, "shape": [2, 4]}]},
    ]
    model, state = draw.normal(size=20).astype(np.float32), b""
    for number in (1, 2):
        clients = [{"client": f"client-{k}", "samples": 10 * (k + 1), "steps": 5, "loss": 1.0 / number} for k in range(5)]
        shares = np.array([c["samples"] for c in clients], np.float64)
        updates = draw.normal(size=(5, 20)).astype(np.float32) / 10
        arrays = {
            "model": model,
            "updates": updates,
            "mean": shares / shares.sum() @ updates,
            "weights": np.repeat((shares / shares.sum())[:, None], 2, axis=1),
            "state": state,
        }
        round = Round({"round": number, "seed": number, "clients": clients}, units, arrays)
        step = _step_of(aggregate(round), round)
        state, scores = _state_of(round, 16 << 20), _scores_of(round)
        if not np.all(np.isfinite(step)):
            sys.exit(f"round {number}: the step is not finite")
        model = (model + step).astype(np.float32)
        print(
            f"round {number}: 5 made-up updates of 20 parameters: length of the step {np.linalg.norm(step):.6f}, "
            f"of the mean {np.linalg.norm(arrays['mean']):.6f}; state {len(state)} bytes; "
            f"scores {'none' if scores is None else ' '.join(f'{s:.3g}' for s in scores)}"
        )
