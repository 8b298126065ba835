"""Standalone mode: one training of the model without a client, to try a script by hand."""

from __future__ import annotations

from typing import Any, Dict

from ._task import Evaluation, Task
from ._work import Program

_DEFAULTS: Dict[str, Any] = {
    "round": 1,
    "seed": 1,
    "order_seed": 1,
    "learning_rate": 0.01,
    "momentum": 0.0,
    "weight_decay": 0.0,
    "epochs": 1,
    "steps": 0,
    "batch_size": 32,
}


def run_alone(program: Program) -> None:
    unknown = set(program.alone) - set(_DEFAULTS)
    if unknown:
        raise TypeError(f"fl_trainer.run(alone=…): unknown {sorted(unknown)}, known {list(_DEFAULTS)}")
    message = {**_DEFAULTS, **program.alone}
    print(
        "fl_trainer: no client started this program (neither FL_TRAINER_SOCKET nor FL_TASK is set): "
        "training alone, with "
        + ", ".join(f"{k} {message[k]}" for k in ("epochs", "steps", "batch_size", "learning_rate")),
        flush=True,
    )
    program.backend.entries()  # report tensors that cannot be sent, as with a client
    task = Task(
        message, program.backend, kind="train", samples=program.samples, criterion=program.criterion,
        client=program.client,
    )
    _judge(program, task, "before")
    if program.train is not None:
        outcome = program.fit(task)
        task.finish()
        print(f"fl_trainer: {outcome.steps} steps, mean loss {outcome.loss:.6g}", flush=True)
        _judge(program, task, "after")


def _judge(program: Program, task: Task, when: str) -> None:
    if program.evaluate is None or program.test_samples == 0:
        return
    e: Evaluation = program.judge(task)
    n = max(e.samples, 1)
    print(
        f"fl_trainer: {when} training {e.correct} of {e.samples} correct ({100 * e.correct / n:.1f} %), "
        f"mean loss {e.loss_sum / n:.6g}",
        flush=True,
    )
