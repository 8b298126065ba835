"""Carries out a task with the program's functions, in every mode of operation."""

from __future__ import annotations

import math
import os
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ._memory import Block
from ._models import Backend
from ._task import Diverged, Evaluation, Task, Trained, evaluation_of, seed_all, trained_of

#: What the client takes of an error.
MAX_ERROR = 1000
#: What it takes of a summary.
MAX_SUMMARY = 64 << 20


@dataclass(frozen=True)
class Client:
    """Whose data the next tasks are about.

    `name` is None for the server, which evaluates the common model. In a simulation `number` is that of
    the client, from 0 on, of `of`; `train` and `test` are the indices of its samples in the data set
    `data`, None for all samples of that folder.
    """

    name: Optional[str]
    number: Optional[int] = None
    of: Optional[int] = None
    data: Optional[str] = None
    train: Optional[List[int]] = None
    test: Optional[List[int]] = None


@dataclass
class Program:
    """The arguments of fl_trainer.run()."""

    backend: Backend
    train: Optional[Callable[[Any, Task], Any]]
    evaluate: Optional[Callable[[Any, Task], Any]]
    samples: int
    test_samples: int
    parts: Tuple[str, ...] = ()
    evaluate_received: bool = True
    software: str = ""
    alone: Dict[str, Any] = field(default_factory=dict)
    criterion: Optional[Callable[[Any, Any], Any]] = None
    examples: Any = None
    classes: int = 0
    clients: Optional[Callable[[Client], Tuple[int, int]]] = None
    client: Optional[Client] = None
    _summaries: Dict[Tuple[int, int], bytes] = field(default_factory=dict)

    @property
    def has_losses(self) -> bool:
        """Whether train() can call task.loss()."""
        return self.criterion is not None and self.backend.has_losses

    def own_summary(self, group: int, seed: int, room: int = MAX_SUMMARY) -> bytes:
        """The data summary of this client, the same for the same request."""
        if (group, seed) not in self._summaries:
            seed_all(seed)  # a data set may use random numbers
            self._summaries[group, seed] = self.backend.summary(
                self.examples, self.classes, group, seed, room
            )
        return self._summaries[group, seed]

    def act_for(self, client: Client) -> None:
        """Be this client from now on: run()'s `clients` counts its samples."""
        assert self.clients is not None
        counts = self.clients(client)
        try:
            samples, test_samples = (int(n) for n in counts)
        except (TypeError, ValueError):
            raise TypeError(f"clients() returned {counts!r}, expected (samples, test_samples)") from None
        if samples < 0 or test_samples < 0 or (samples == 0 and client.name is not None):
            raise ValueError(f"clients(): {samples} training and {test_samples} test samples of {client.name}")
        self.client, self.samples, self.test_samples = client, samples, test_samples
        self._summaries.clear()

    def can(self, purpose: str) -> List[str]:
        """The tasks that the program carries out."""
        able = []
        if self.train is not None and purpose != "evaluate":
            able.append("train")
        if self.evaluate is not None:
            able.append("evaluate")
        if len(able) == 2:
            able.append("adapt")
        if "mixup" in self.parts and purpose != "evaluate":
            able.append("summary")
        return able

    def judge(self, task: Task) -> Evaluation:
        """Evaluate the current model on local test data."""
        assert self.evaluate is not None
        with self.backend.evaluating(task.check):
            return evaluation_of(self.evaluate(self.backend.model, task))

    def judge_if_asked(self, task: Task, what: str, wanted: bool) -> Dict[str, Any]:
        """{what: …}, or empty without test data or with a loss that is NaN."""
        if self.evaluate is None or not wanted or self.test_samples == 0:
            return {}
        evaluation = self.judge(task)
        if evaluation.samples == 0:
            return {}
        if not evaluation.finite:
            note(f"the loss of the {what} model on test data is {evaluation.loss_sum}: left out")
            return {}
        return {what: evaluation.message()}

    def fit(self, task: Task) -> Trained:
        """Train the loaded model as the task requests. Raises Diverged."""
        assert self.train is not None
        task.begin()
        outcome = trained_of(self.train(self.backend.model, task), task)
        self._check_parts(task)
        if task.wants_test_data and not task.on_was_read:
            raise ValueError(
                "the server wants a model fitted to the test data, and train() did not look at task.on"
            )
        assert outcome.loss is not None
        if not math.isfinite(outcome.loss):
            raise Diverged(f"the loss is not finite: {outcome.loss}")
        return outcome

    def _check_parts(self, task: Task) -> None:
        made = [watch.parts.made for watch in task.watches]
        if task.parts and not any(made):
            raise ValueError(
                f"this round needs {', '.join(sorted(task.parts))} in each step, and train() made none "
                "with task.optimizer() or task.watch()"
            )
        if "mixup" in task.parts and task.losses is None:
            raise ValueError(
                "this round needs mixup in each step, and train() computed no loss by task.loss(x, y)"
            )
        if "drift" in task.parts and any(n not in (0, task.total_steps) for n in made):
            raise ValueError(
                f"this round's solver was told of {task.total_steps} steps and train() made {max(made)}: "
                "set task.total_steps before the first one"
            )


def do_train(
    program: Program, task: Task, given: Block, target: Block, evaluate_trained: bool
) -> Dict[str, Any]:
    """Train; returns the fields of the answer. The trained model is in `target`."""
    program.backend.load(given)
    answer = program.judge_if_asked(task, "received", program.evaluate_received)
    outcome = program.fit(task)
    if evaluate_trained:
        task.personal()
        answer.update(program.judge_if_asked(task, "trained", True))
    task.finish()
    program.backend.store(target)
    return {
        "samples": outcome.samples,
        "steps": outcome.steps,
        "train_loss": outcome.loss,
        **answer,
    }


def do_adapt(program: Program, task: Task, given: Block) -> Dict[str, Any]:
    """Evaluate, fit a copy, evaluate that."""
    program.backend.load(given)
    answer = program.judge_if_asked(task, "received", True)
    program.fit(task)
    task.personal()
    answer.update(program.judge_if_asked(task, "adapted", True))
    if "adapted" not in answer:
        raise Diverged("the adapted model cannot be evaluated")
    return answer


def do_evaluate(program: Program, task: Task, given: Block) -> Dict[str, Any]:
    program.backend.load(given)
    evaluation = program.judge(task)
    if not evaluation.finite:
        raise Diverged(f"the sum of losses is {evaluation.loss_sum}")
    return {"received": evaluation.message()}


def do_summary(program: Program, message: Mapping[str, Any], target: memoryview) -> Dict[str, Any]:
    """Write the data summary for the server's solver to `target`."""
    options = (message.get("solver") or {}).get("options") or {}
    summary = program.own_summary(int(options.get("group") or 0), int(message["seed"]), len(target))
    target[: len(summary)] = summary
    return {"bytes": len(summary)}


def last_line(error: BaseException) -> str:
    """The text of an exception for the client: the last line of its traceback."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    line = " ".join(text) if len(text) < 4 else text[-1]
    return line.encode("utf-8", "replace")[:MAX_ERROR].decode("utf-8", "ignore")


def show(error: BaseException) -> None:
    """Print the traceback on stderr: the client's messages contain its end."""
    traceback.print_exception(type(error), error, error.__traceback__)
    sys.stderr.flush()


def note(text: str) -> None:
    print(f"fl_trainer: {text}", file=sys.stderr, flush=True)


def is_broken_device(error: BaseException) -> bool:
    """After such a GPU error every later operation of this process fails too."""
    return type(error).__name__ in ("RuntimeError", "AcceleratorError") and "CUDA error" in str(error)


def from_environment(name: str) -> Optional[str]:
    """Removed from the environment, so that child processes do not use the connection."""
    return os.environ.pop(name, None)
