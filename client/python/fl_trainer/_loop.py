"""The message loop of a persistent trainer (docs/trainers.md)."""

from __future__ import annotations

import os
import platform
import socket
import sys
from typing import Any, Dict, Mapping, Optional, Tuple

from ._memory import Block, map_descriptor, places_of
from ._parts import PartError
from ._task import Canceled, Diverged, Task
from ._wire import Channel, Gone, ProtocolError
from ._work import (
    Client,
    Program,
    do_adapt,
    do_evaluate,
    do_summary,
    do_train,
    from_environment,
    is_broken_device,
    last_line,
    note,
    show,
)

PROTOCOL = 1


class Persistent:
    """The state of the connection to the client: its settings, and the shared memory."""

    def __init__(self, channel: Channel, weights_fd: int, result_fd: int) -> None:
        self.channel = channel
        self._fds = (weights_fd, result_fd)
        self._start: Optional[Dict[str, Any]] = None
        self._given: Dict[str, Block] = {}
        self._result: Optional[Block] = None
        #: What lies in slots that are no models.
        self._mixup: Optional[memoryview] = None
        self._summary: Optional[memoryview] = None
        self._buffers: Tuple[str, ...] = ()

    @classmethod
    def from_environment(cls) -> Optional["Persistent"]:
        """None unless a client started this program as a persistent trainer. Raises ProtocolError."""
        fd = from_environment("FL_TRAINER_SOCKET")
        if fd is None:
            return None
        versions = from_environment("FL_TRAINER_PROTOCOL") or ""
        weights = from_environment("FL_TRAINER_WEIGHTS")
        result = from_environment("FL_TRAINER_RESULT")
        if weights is None or result is None:
            raise ProtocolError("FL_TRAINER_WEIGHTS and FL_TRAINER_RESULT are not set")
        if str(PROTOCOL) not in [v.strip() for v in versions.split(",")]:
            raise ProtocolError(
                f"the client speaks versions {versions or 'none'} of the trainer protocol, "
                f"fl_trainer version {PROTOCOL}: install the one that came with the client"
            )
        for number in (fd, weights, result):
            os.set_inheritable(int(number), False)
        return cls(Channel(socket.socket(fileno=int(fd))), int(weights), int(result))

    @property
    def start(self) -> Dict[str, Any]:
        """The first message, which the client sends unasked."""
        if self._start is None:
            message = self.channel.receive()
            if message is None or message["type"] == "bye":
                raise Gone("the client was gone before it had started anything")
            if message["type"] != "start":
                raise ProtocolError(f"'{message['type']}' came first, expected 'start'")
            self._start = message
        return self._start

    def refuse(self, error: BaseException) -> None:
        """Report an error instead of 'ready': the program cannot be used."""
        self.channel.send({"type": "failed", "error": last_line(error)})

    def serve(self, program: Program) -> None:
        """Run until the client sends 'bye' or closes the socket."""
        self.channel.send(self._ready(program))
        while True:
            message = self.channel.receive()
            if message is None or message["type"] == "bye":
                return
            if message["type"] == "cancel":
                continue  # for a task that was answered before it arrived
            self.channel.send(self._answer(program, message))

    def _ready(self, program: Program) -> Dict[str, Any]:
        software = f"fl_trainer, {program.software or program.backend.software}".rstrip(", ")
        software += f", Python {platform.python_version()}"
        return {
            "type": "ready",
            "protocol": PROTOCOL,
            "can": program.can(self.start.get("purpose") or "train"),
            "parts": list(program.parts),
            "samples": program.samples,
            "test_samples": program.test_samples,
            "clients": program.clients is not None,
            "software": software[:200],
        }

    def _answer(self, program: Program, message: Dict[str, Any]) -> Dict[str, Any]:
        kind = message["type"]
        if kind == "model":
            return self._model(program, message)
        if kind == "client":
            return self._client(program, message)
        answer = {"id": message.get("id")}
        try:
            if kind not in program.can(self.start.get("purpose") or "train"):
                raise ValueError(f"'{kind}' was not declared")
            return {"type": "done", **answer, **self._carry_out(program, kind, message)}
        except Canceled:
            return {"type": "canceled", **answer}
        except (Gone, ProtocolError):
            raise
        except Exception as e:
            show(e)
            failed = {"type": "failed", **answer, "error": last_line(e)}
            if isinstance(e, (Diverged, FloatingPointError)):
                failed["diverged"] = True
                failed["error"] = str(e) or last_line(e)
            if is_broken_device(e):
                self.channel.send(failed)
                sys.exit("fl_trainer: the device is lost to this process, which ends for a new one")
            return failed

    def _model(self, program: Program, message: Dict[str, Any]) -> Dict[str, Any]:
        tensors = [t for unit in message["units"] for t in unit["tensors"]]
        places = places_of(tensors)
        try:
            self._check_solver(program, message)
            program.backend.fit(places)
            if program.backend.staying() or program.backend.taken_along:
                note(program.backend.travels())
        except Exception as e:
            text = str(e) if type(e).__module__.startswith("fl_trainer") else last_line(e)
            return {"type": "failed", "error": text[:900]}
        self._buffers = tuple(t["name"] for t in tensors if t.get("buffer"))
        self._given, more = self._blocks(message["weights"], self._fds[0], places, write=False)
        self._mixup = more.get("mixup")
        made, more = self._blocks(message["result"], self._fds[1], places, write=True)
        self._result, self._summary = made["model"], more.get("summary")
        return {"type": "accepted"}

    @staticmethod
    def _client(program: Program, message: Mapping[str, Any]) -> Dict[str, Any]:
        if program.clients is None:
            return {"type": "failed", "error": "fl_trainer.run() was given no clients="}
        try:
            program.act_for(
                Client(*(message.get(key) for key in ("client", "number", "of", "data", "train", "test")))
            )
        except Exception as e:
            show(e)
            return {"type": "failed", "error": last_line(e)[:900]}
        return {"type": "accepted", "samples": program.samples, "test_samples": program.test_samples}

    @staticmethod
    def _check_solver(program: Program, message: Mapping[str, Any]) -> None:
        solver = message.get("solver") or {}
        variant = (solver.get("options") or {}).get("variant", "fo")
        known = ("fo", "hf") if program.has_losses else ("fo",)
        if "per_fedavg" in (message.get("parts") or ()) and variant not in known:
            raise PartError(
                f"per_fedavg: the server asks for variant '{variant}', this program has {' and '.join(known)} "
                "only; hf takes a PyTorch model and fl_trainer.run(criterion=…)"
            )

    @staticmethod
    def _blocks(
        memory: Mapping[str, Any], fd: int, places: Any, write: bool
    ) -> Tuple[Dict[str, Block], Dict[str, memoryview]]:
        """The slots that hold models, and the others."""
        mapped = map_descriptor(fd, memory["bytes"], write)
        blocks, others = {}, {}
        for name, slot in memory["slots"].items():
            if "data" in slot:
                blocks[name] = Block(mapped, slot["data"], places)
            else:
                others[name] = memoryview(mapped)[slot["offset"] : slot["offset"] + slot["bytes"]]
        return blocks, others

    def _carry_out(self, program: Program, kind: str, message: Dict[str, Any]) -> Dict[str, Any]:
        if self._result is None:
            raise ProtocolError(f"'{kind}' came before 'model'")
        id = message.get("id")
        if kind == "summary":
            if self._summary is None:
                raise ProtocolError("'summary' without a slot for it")
            return do_summary(program, message, self._summary)
        task = Task(
            message,
            program.backend,
            kind=kind,
            samples=program.samples,
            data=program.client.data if program.client else self.start.get("data"),
            client=program.client,
            slots={name: self._given[name] for name in message["given"] if name in self._given},
            buffers=self._buffers,
            criterion=program.criterion,
            summaries=self._mixup if "mixup" in message["given"] else None,
            own_summary=program.own_summary,
            interrupted=self._interrupted,
            say_progress=lambda done, total: self.channel.send(
                {"type": "progress", "id": id, "done": done, "total": total}
            ),
        )
        given = self._given["model"]
        if kind == "evaluate":
            return do_evaluate(program, task, given)
        if kind == "adapt":
            return do_adapt(program, task, given)
        return do_train(program, task, given, self._result, bool(message.get("evaluate_trained")))

    def _interrupted(self) -> bool:
        """Whether the client sent 'cancel' or 'bye', or closed the socket."""
        if not self.channel.interrupted():
            return False
        kind = self.channel.peek()
        if kind == "cancel":
            self.channel.receive()
        elif kind not in (None, "bye"):
            raise ProtocolError(f"'{kind}' came while a task was open")
        return True
