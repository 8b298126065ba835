"""The task passed to the user's functions, and their results."""

from __future__ import annotations

import math
import random
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional

from ._memory import Block
from ._models import Backend
from ._parts import PartError


#: Seconds between two looks for a cancellation: small steps take less than the system call.
CHECK_S = 0.005


class Canceled(BaseException):
    """The client takes the task back. Let it pass: the program is asked again in a later round.

    Not an Exception, so that an `except Exception` around a batch does not swallow it.
    """


class Diverged(Exception):
    """Raise this in train() when training diverged, not for program errors."""


@dataclass
class Metric:
    """A number of an evaluation. Over clients it is averaged, weighted by `samples` (those of the
    evaluation, if it is None), or with over="sum" added up."""

    value: float
    samples: Optional[int] = None
    over: str = "mean"


@dataclass
class Evaluation:
    """Result of an evaluation. `loss_sum` is the sum of the losses, not their mean.

    `metrics` has further numbers by name: a number, or a Metric.
    """

    samples: int
    correct: int
    loss_sum: float
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def message(self) -> Dict[str, Any]:
        message: Dict[str, Any] = {
            "samples": self.samples,
            "correct": self.correct,
            "loss_sum": self.loss_sum,
        }
        if self.metrics:
            message["metrics"] = dict(self.metrics)
        return message

    @property
    def finite(self) -> bool:
        return math.isfinite(self.loss_sum)


@dataclass
class Trained:
    """Result of train(): the mean loss; steps and samples where they are not known."""

    loss: Optional[float] = None
    steps: Optional[int] = None
    samples: Optional[int] = None


class Task:
    """One task: what the server asks for, and the means to do it.

    Attributes that a message does not have are None (0 for numbers of a training). Times are
    seconds.
    """

    def __init__(
        self,
        message: Mapping[str, Any],
        backend: Backend,
        *,
        kind: str,
        samples: int = 0,
        data: Optional[str] = None,
        client: Any = None,
        slots: Optional[Mapping[str, Block]] = None,
        buffers: Iterable[str] = (),
        criterion: Optional[Callable[[Any, Any], Any]] = None,
        summaries: Any = None,
        own_summary: Optional[Callable[[int, int], bytes]] = None,
        interrupted: Optional[Callable[[], bool]] = None,
        say_progress: Optional[Callable[[int, int], None]] = None,
    ) -> None:
        #: "train", "evaluate" or "adapt".
        self.kind = kind
        self.round: Optional[int] = message.get("round")
        self.attempt: int = message.get("attempt") or 0
        #: Seeds of this round, and of the one order that `steps` walk through in all rounds.
        self.seed: int = message.get("seed") or 0
        self.order_seed: int = message.get("order_seed") or 0
        self.learning_rate: float = message.get("learning_rate") or 0.0
        self.momentum: float = message.get("momentum") or 0.0
        self.weight_decay: float = message.get("weight_decay") or 0.0
        #: Passes through the data; when it is 0, `steps` batches.
        self.epochs: int = message.get("epochs") or 0
        self.steps: int = message.get("steps") or 0
        self.batch_size: int = message.get("batch_size") or 1
        limit = message.get("time_limit_ms") or 0
        #: time.monotonic() when the client stops waiting; None: it does not.
        self.deadline: Optional[float] = time.monotonic() + limit / 1000 if limit else None
        #: data.path of the client's configuration.
        self.data = data
        #: Whose data it is, a Client, where run() was given `clients`.
        self.client = client
        #: What each step has to do beyond gradient descent.
        self.parts: Dict[str, Any] = dict(message.get("do") or {})
        self.samples = samples
        #: Names of the server's tensors that no part touches.
        self.buffers = frozenset(buffers)
        #: How many steps there will be. Set it before the first when train() makes another number.
        self.total_steps = self._planned(samples)
        #: How many there were.
        self.steps_made = 0
        self.watches: List[Any] = []
        #: What task.loss() calls, once it was called.
        self.losses: Any = None
        #: The summaries of all clients (a buffer), and own_summary(group, seed), this one's.
        self.summaries = summaries
        self.own_summary = own_summary
        self._criterion = criterion
        self._on: str = message.get("on") or "train"
        self.on_was_read = False
        self._backend = backend
        self._slots = dict(slots or {})
        self._interrupted = interrupted or (lambda: False)
        self._say_progress = say_progress or (lambda done, total: None)
        self._said = 0.0
        self._canceled = False
        self._checked: Optional[float] = None
        self._loss_sum = 0.0
        self._loss_samples = 0

    def _planned(self, samples: int) -> int:
        if self.epochs == 0:
            return self.steps
        return self.epochs * -(-samples // self.batch_size)

    @property
    def on(self) -> str:
        """Data for fitting: "train", or "test" when the server evaluates models fitted to that."""
        self.on_was_read = True
        return self._on

    @property
    def wants_test_data(self) -> bool:
        return self._on == "test"

    def remaining(self) -> Optional[float]:
        """Seconds until the deadline, None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    # Between two batches.

    def check(self) -> None:
        """Raise Canceled when the client has canceled the task. Watched optimizers call it.

        It looks at most every 5 ms.
        """
        now = time.monotonic()
        if self._checked is not None and not self._canceled and now - self._checked < CHECK_S:
            return
        self._checked = now
        if self._canceled or self._interrupted():
            self._canceled = True
            raise Canceled("the client takes the task back")

    def progress(self, done: int, total: int) -> None:
        """Report the progress in steps to the client, at most four times a second."""
        now = time.monotonic()
        if now - self._said >= 0.25:
            self._said = now
            self._say_progress(int(done), int(total))

    def stepped(self, made: int) -> None:
        """Count `made` steps. For optimizers other than PyTorch's; watched ones call it."""
        self.steps_made = max(self.steps_made, made)
        self.progress(self.steps_made, self.total_steps or self.steps_made)

    def count(self, loss: Any, samples: int = 1) -> None:
        """Keep a batch's mean loss over so many samples: train() then need not return one."""
        self._loss_sum += float(loss) * samples
        self._loss_samples += samples

    # Steps.

    def optimizer(self, params: Any = None, **options: Any) -> Any:
        """Gradient descent as the server asks for it, its parts attached, momentum at 0.

        PyTorch: torch.optim.SGD over `params` (all that are trained unless given); further options
        go to it. Numpy: an object with step(gradients).
        """
        return self._backend.optimizer(self, params, options)

    def watch(self, optimizer: Any) -> Any:
        """Attach the server's parts to an optimizer of PyTorch and count its steps; returns it.

        Its state is emptied: momentum begins at 0 in every round.
        """
        return self._backend.watch(self, optimizer)

    def loss(self, x: Any, y: Any) -> Any:
        """criterion(model(x), y) of a batch with run()'s `criterion`, to call backward() on.

        Where the server's solver asks for more it has that in it: samples mixed with other clients'
        means, second derivatives.
        """
        if self.losses is None:
            if self._criterion is None:
                raise TypeError("task.loss(): give fl_trainer.run() the criterion=, say cross_entropy")
            self.losses = self._backend.losses(self, self._criterion)
        return self.losses(x, y)

    def slot(self, name: str) -> Block:
        """Values of a capability as received from the client, by the server's names."""
        if name == "anchor" and "anchor" not in self._slots:
            name = "model"
        if name not in self._slots:
            raise PartError(f"the client handed over no '{name}'")
        return self._slots[name]

    # Orders.

    def order(self, n: int, epoch: int = 0) -> Any:
        """0 .. n - 1 in the order of an epoch, the same whenever this task is repeated."""
        return self._backend.order(n, (self.seed * 1000003 + epoch) % 2**63)

    def batches(
        self, *number: int, samples: Optional[int] = None, batch_size: Optional[int] = None
    ) -> Iterator[Any]:
        """Indices of all batches of this task, as `epochs` or `steps` say.

        Over `samples` samples (all that run() was told of) in batches of `batch_size` (the server's).
        Epochs take a fresh order each. Steps walk through one order, the same in every round, and
        go on where the round before ended. Indices are a tensor, an array or a list, as the model is.
        """
        if number:
            raise TypeError(
                f"task.batches({', '.join(map(str, number))}): say what is meant: samples={number[0]} takes "
                f"the first {number[0]} samples, batch_size={number[0]} makes batches of so many"
            )
        n = self.samples if samples is None else samples
        size = self.batch_size if batch_size is None else batch_size
        if n < 0 or size < 1:
            raise ValueError(f"task.batches(): {n} samples in batches of {size}")
        return self._batches(n, size)

    def _batches(self, n: int, size: int) -> Iterator[Any]:
        size = min(size, n)
        if n <= 0:
            return
        a_pass = -(-n // size)
        self.total_steps = self.epochs * a_pass if self.epochs else self.steps
        made = 0
        for epoch in range(self.epochs):
            order = self.order(n, epoch)
            for at in range(0, n, size):
                yield self._batch(order[at : at + size], made)
                made += 1
        if self.epochs == 0:
            order = self._backend.order(n, self.order_seed)
            first = ((self.round or 1) - 1) * self.steps
            for step in range(first, first + self.steps):
                at = step % a_pass * size
                yield self._batch(order[at : at + size], made)
                made += 1
        self._batches_done(made)

    def loop(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of `loader` (a DataLoader, a list of batches) for `epochs` passes or `steps`."""
        try:
            self.total_steps = self.epochs * len(loader) if self.epochs else self.steps  # type: ignore
        except TypeError:
            pass  # a stream: its length is not known
        made, passes = 0, 0
        while passes < self.epochs or self.epochs == 0 and made < self.steps:
            before = made
            for batch in loader:
                if self.epochs == 0 and made >= self.steps:
                    break
                yield self._batch(batch, made)
                made += 1
            passes += 1
            if made == before:
                raise ValueError("task.loop(): the loader has no batches")
        self._batches_done(made)

    def _batch(self, batch: Any, made: int) -> Any:
        self.check()
        self._batches_done(made)
        return batch

    def _batches_done(self, made: int) -> None:
        if not self.watches:  # or they count themselves: a step may take several batches
            self.stepped(made)

    # For the package.

    def begin(self) -> None:
        """Seed all random generators as the server requests."""
        seed_all(self.seed)
        self._backend.begin_training()

    def personal(self) -> None:
        for watch in self.watches:
            watch.personal()

    def finish(self) -> None:
        for watch in self.watches:
            watch.result()

    def mean_loss(self) -> Optional[float]:
        return self._loss_sum / self._loss_samples if self._loss_samples else None


def seed_all(seed: int) -> None:
    """Seed all random generators."""
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    if torch is not None:
        torch.manual_seed(seed)


def trained_of(value: Any, task: Task) -> Trained:
    """The result of train(), completed with the counts of the task."""
    result = Trained()
    if isinstance(value, Trained):
        result = Trained(value.loss, value.steps, value.samples)
    elif isinstance(value, Mapping):
        unknown = set(value) - {"loss", "steps", "samples"}
        if unknown:
            raise ValueError(f"train() returned {sorted(unknown)}, expected loss, steps, samples")
        result = Trained(**value)
    elif isinstance(value, tuple):
        if not 1 <= len(value) <= 3:
            raise ValueError(f"train() returned {len(value)} values, expected loss, steps, samples")
        result = Trained(*value)
    elif value is not None:
        result = Trained(value)
    loss = task.mean_loss() if result.loss is None else float(result.loss)
    if loss is None:
        raise ValueError("train() returned no loss: return the mean loss, or call task.count(loss, n)")
    steps = int(result.steps if result.steps is not None else task.steps_made)
    if steps < 1:
        raise ValueError(
            "train() made no step that was counted: take task.optimizer(), task.watch(), task.loop() "
            "or task.batches(), or return (loss, steps)"
        )
    samples = int(result.samples if result.samples is not None else task.samples)
    return Trained(loss, steps, samples)


METRICS_MAX = 32
_METRIC_NAME = re.compile(r"[A-Za-z0-9_/.-]{1,31}\Z")
_TAKEN = ("accuracy", "loss", "loss_sum", "correct", "samples")


def metrics_of(metrics: Any, samples: int) -> Dict[str, Any]:
    """Convert the metrics of evaluate() to those of the message. Raises ValueError.

    A number that is not finite, as that of a model that diverged, is left out with a note.
    """
    if not isinstance(metrics, Mapping) or len(metrics) > METRICS_MAX:
        raise ValueError(
            f"evaluate(): metrics are {type(metrics).__name__} of {_length(metrics)}; expected a "
            f"dictionary of at most {METRICS_MAX} names with a number each"
        )
    message: Dict[str, Any] = {}
    for name, given in metrics.items():
        where = f"evaluate(): metric {name!r}"
        if not isinstance(name, str) or not _METRIC_NAME.match(name):
            raise ValueError(f"{where}: expected a name of 1 to 31 of the characters A-Z a-z 0-9 _ / . -")
        if name in _TAKEN or name.startswith(("received/", "personal/")):
            raise ValueError(f"{where}: this name is taken; expected another one")
        metric = given if isinstance(given, Metric) else Metric(given)
        if isinstance(metric.value, (str, bytes, bool)):
            raise ValueError(f"{where} is {metric.value!r}; expected a number")
        try:
            value = float(metric.value)
        except (TypeError, ValueError) as e:
            raise ValueError(f"{where} is {type(metric.value).__name__}; expected a number") from e
        if metric.over not in ("mean", "sum"):
            raise ValueError(f'{where}: over is {metric.over!r}; expected "mean" or "sum"')
        if metric.samples is not None and not 1 <= metric.samples <= samples:
            raise ValueError(f"{where}: {metric.samples} samples; expected 1 to {samples}")
        if not math.isfinite(value):
            print(f"fl_trainer: metric {name!r} is {value}: left out", file=sys.stderr)
        elif metric.samples is None and metric.over == "mean":
            message[name] = value
        else:
            message[name] = {"value": value, "over": metric.over}
            if metric.samples is not None:
                message[name]["samples"] = int(metric.samples)
    return message


def _length(value: Any) -> str:
    return str(len(value)) if hasattr(value, "__len__") else "no length"


def evaluation_of(value: Any) -> Evaluation:
    """Convert the result of evaluate(): Evaluation, mapping, object or tuple of 3 numbers, or of 4
    values with a dictionary of metrics."""
    names = ("samples", "correct", "loss_sum")
    metrics: Any = None
    try:
        if isinstance(value, Mapping):
            numbers = [value[name] for name in names]
            metrics = value.get("metrics")
        elif isinstance(value, (tuple, list)):
            if len(value) not in (3, 4):
                raise ValueError(f"{len(value)} values")
            numbers = list(value[:3])
            metrics = value[3] if len(value) == 4 else None
        else:
            numbers = [getattr(value, name) for name in names]
            metrics = getattr(value, "metrics", None)
        result = Evaluation(int(numbers[0]), int(numbers[1]), float(numbers[2]))
    except (KeyError, AttributeError, TypeError, ValueError) as e:
        raise ValueError(
            f"evaluate() returned {type(value).__name__}: {e}; expected samples, correct, loss_sum"
        ) from e
    if not 0 <= result.correct <= result.samples:
        raise ValueError(f"evaluate(): {result.correct} correct of {result.samples} samples")
    if metrics is not None:
        result.metrics = metrics_of(metrics, result.samples)
    return result
