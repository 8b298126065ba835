"""The file interface: started for each task, with files (docs/trainers.md)."""

from __future__ import annotations

import json
import math
from typing import Any, Dict

from ._memory import Block, create_file, flush_file, open_file
from ._models import ModelError
from ._task import Diverged, Task
from ._work import Program, do_train, from_environment

VERSION = 1


class TaskFile:
    """The task file named by FL_TASK."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as f:
            self.message: Dict[str, Any] = json.load(f)
        if self.message.get("version") != VERSION:
            raise ModelError(
                f"{path} has version {self.message.get('version')}, fl_trainer knows {VERSION}"
            )

    @classmethod
    def from_environment(cls) -> "TaskFile | None":
        path = from_environment("FL_TASK")
        return None if path is None else cls(path)

    def serve(self, program: Program) -> None:
        """Carry the task out. Errors are exceptions: the interpreter shows them and exits with 1."""
        message = self.message
        given = open_file(message["model"])
        program.backend.fit(given.places)
        slots: Dict[str, Block] = {"model": given}
        if message.get("anchor"):
            slots["anchor"] = open_file(message["anchor"])
        parts = self._parts()
        missing = set(parts) - set(program.parts)
        if missing:
            raise ModelError(f"the server's solver needs {', '.join(missing)}, which was not declared")
        task = Task(
            {**message, "do": parts},
            program.backend,
            kind="train",
            samples=program.samples,
            data=message.get("data"),
            client=program.client,
            slots=slots,
            criterion=program.criterion,
            buffers=[t["name"] for u in message["units"] for t in u["tensors"] if t["buffer"]],
        )
        target = create_file(message["result_model"], given.places, {})
        try:
            answer = do_train(program, task, given, target, bool(message.get("evaluate_trained")))
        except Diverged:
            # A model with non-finite values tells the client that training diverged.
            program.backend.store(target)
            if math.isfinite(sum(target.floats)):
                raise
            answer = {"samples": task.samples, "steps": max(task.steps_made, 1), "train_loss": math.nan}
        flush_file(target)
        with open(message["result"], "w", encoding="utf-8") as f:
            json.dump(answer, f)

    def _parts(self) -> Dict[str, Any]:
        solver = self.message.get("solver") or {"name": "sgd", "options": {}}
        if solver["name"] == "sgd":
            return {}
        if solver["name"] == "prox":
            return {"pull": {"mu": float(solver["options"]["mu"])}}
        raise ModelError(
            f"the server's solver is '{solver['name']}'; a program per task knows sgd and prox, "
            "a persistent one more (command.persistent: yes)"
        )
