"""Models that are dictionaries of numpy arrays. Imported only for such a model."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Union

import numpy

from ._memory import Block, shape_text
from ._models import CLOSURE_PARTS, STEP_PARTS, Backend, Entry, ModelError
from ._parts import PartError, PerFedAvg, PFedMe, Step, step_of

Arrays = Dict[str, Any]


class NumpyBackend(Backend):
    """dict name -> array: those of floating point numbers, in the order of the dictionary."""

    parts = STEP_PARTS + CLOSURE_PARTS
    software = f"numpy {numpy.__version__}"

    def __init__(self, model: Arrays) -> None:
        super().__init__(model)
        self._kinds: Dict[str, Any] = {}  # of the arrays as they were before the first training

    def entries(self) -> List[Entry]:
        groups: Dict[Any, List[str]] = {}
        for name, x in self.model.items():
            if not isinstance(name, str) or not isinstance(x, numpy.ndarray):
                raise ModelError(f"the model's {name!r} is a {type(x).__name__}, expected numpy arrays")
            if x.dtype.kind == "c":
                raise ModelError(f"tensor '{name}' is {x.dtype}: it cannot travel")
            if x.dtype.kind != "f":
                continue
            if x.size == 0:
                raise ModelError(f"tensor '{name}' is empty, which no server takes")
            where = x.__array_interface__["data"][0]
            groups.setdefault((where, x.dtype.str, x.shape, x.strides), []).append(name)
        return [
            Entry(names[0], tuple(self.model[names[0]].shape), tuple(names[1:]))
            for names in groups.values()
        ]

    def _read(self, entry: Entry, block: Block, name: str) -> None:
        self.model[entry.name][...] = numpy.asarray(block.view(name))

    def _write(self, entry: Entry, block: Block, name: str) -> None:
        x = self.model[entry.name]
        if not isinstance(x, numpy.ndarray) or x.dtype.kind != "f":
            kind = x.dtype if isinstance(x, numpy.ndarray) else type(x).__name__
            raise ModelError(f"tensor '{entry.name}' is {kind} after training, expected floats")
        if tuple(x.shape) != entry.shape:
            raise ModelError(
                f"tensor '{entry.name}' is {shape_text(x.shape)} after training, "
                f"it was {shape_text(entry.shape)}"
            )
        numpy.asarray(block.view(name))[...] = x

    def load(self, block: Block) -> None:
        # Training may have replaced arrays in the dictionary, also by read-only ones.
        for entry, names in self._bound:
            x = self.model[entry.name]
            usable = isinstance(x, numpy.ndarray) and x.dtype.kind == "f"
            kind = self._kinds.setdefault(entry.name, x.dtype if usable else numpy.dtype("f4"))
            if not usable or x.shape != entry.shape or not x.flags.writeable:
                self.model[entry.name] = numpy.empty(entry.shape, kind)
            for also in entry.also:
                self.model[also] = self.model[entry.name]
        super().load(block)

    def order(self, n: int, seed: int) -> Any:
        return numpy.random.default_rng(seed).permutation(n)

    def optimizer(self, task: Any, params: Any, options: Dict[str, Any]) -> Any:
        if options:
            raise ModelError(f"task.optimizer(): no options for a numpy model: {', '.join(options)}")
        optimizer = SGD(self, task, self.model if params is None else params)
        task.watches.append(optimizer)
        return optimizer


Gradients = Union[Arrays, Callable[[], Any]]


class SGD:
    """Heavy-ball descent on a dictionary of arrays, with the parts that the server asks for.

    `step(gradients)` takes a dictionary with the same names, or a function that computes one (or a
    pair: loss, gradients) from the parameters as they are: pfedme needs that.
    """

    def __init__(self, backend: NumpyBackend, task: Any, params: Arrays) -> None:
        self.task = task
        self.params = params
        seen = set()
        self.names: List[str] = []
        for name, x in params.items():
            if x.dtype.kind == "f" and id(x) not in seen and backend.alias(name) not in task.buffers:
                seen.add(id(x))
                self.names.append(name)
        self._theirs = [backend.alias(name) for name in self.names]
        self._velocity: Dict[str, Any] = {}
        self.parts: Step = step_of(task.parts, task, self._vector)

    def _vector(self, slot: str, i: int) -> Any:
        name = self._theirs[i]
        return None if name is None else numpy.asarray(self.task.slot(slot).view(name))

    def _xs(self) -> List[Any]:
        return [self.params[name] for name in self.names]

    def _gradients(self, given: Arrays) -> List[Any]:
        """Copies, so that the caller's arrays are not changed. None where none is given."""
        gs: List[Any] = []
        for name in self.names:
            g = given.get(name)
            gs.append(None if g is None else numpy.array(g, dtype=self.params[name].dtype))
        return gs

    def step(self, gradients: Gradients) -> Any:
        self.task.check()
        loss: Any = None

        def compute() -> List[Any]:
            nonlocal loss
            value = gradients() if callable(gradients) else gradients
            if isinstance(value, tuple):
                first, value = value
                loss = first if loss is None else loss
            return self._gradients(value)

        if isinstance(self.parts, PFedMe):
            self._pfedme(self.parts, gradients, compute)
        elif isinstance(self.parts, PerFedAvg):
            self._per_fedavg(self.parts, gradients, compute)
        else:
            gs = compute()
            self.parts.before(self._xs(), gs)
            self._descend(gs)
            self.parts.after(self._xs())
        self.task.stepped(self.parts.made)
        return loss

    def _descend(self, gs: List[Any]) -> None:
        task = self.task
        for name, x, g in zip(self.names, self._xs(), gs):
            if g is None:
                continue
            if task.weight_decay != 0:
                g += task.weight_decay * x
            if task.momentum != 0:
                v = self._velocity.get(name)
                g = g if v is None else task.momentum * v + g
                self._velocity[name] = g
            x -= task.learning_rate * g

    def _pfedme(self, parts: PFedMe, gradients: Gradients, compute: Callable[[], List[Any]]) -> None:
        if not callable(gradients):
            raise PartError(
                "pfedme takes several gradients of each batch: call step() with a function that "
                "computes them"
            )
        parts.start(self._xs())
        for _ in range(parts.inner_steps):
            parts.inner(self._xs(), compute())
        parts.follow(self._xs())

    def _per_fedavg(
        self, parts: PerFedAvg, gradients: Gradients, compute: Callable[[], List[Any]]
    ) -> None:
        gs = compute()
        if not parts.own_step(self._xs(), gs):
            self._descend(gs)
        parts.made += 1
        if parts.is_cut_short and callable(gradients):
            gs = compute()
            parts.own_step(self._xs(), gs)
            self._descend(gs)

    def personal(self) -> None:
        self.parts.personal(self._xs())

    def result(self) -> None:
        self.parts.result(self._xs())
