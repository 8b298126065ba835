"""What the package knows of a model: names, shapes, and how numbers go in and out.

A backend is a kind of model: PyTorch (`_torch`), a dictionary of numpy arrays (`_numpy`), or anything
through an adapter, which is the interface that users implement.
"""

from __future__ import annotations

import array
import contextlib
import math
import re
import struct
import sys
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._memory import Block, Place, Shape, first_difference, shape_text

#: What a training step may be asked for beyond plain gradient descent, and can be had here.
STEP_PARTS = ("pull", "gradient", "drift", "space", "per_fedavg")
CLOSURE_PARTS = ("pfedme",)
#: With task.loss() and samples to tell of.
LOSS_PARTS = ("mixup",)


#: What a server takes (libfl/model/layout.h).
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,126}")
MAX_DIMS = 8
MAX_TENSORS = 16384


class ModelError(Exception):
    """The model cannot be sent, or differs from the server's; the message names the tensor."""


class Adapter:
    """A model of any library, as named arrays of floating point numbers.

    Derive from this class, or write another one with the same methods: nothing checks for it. An
    attribute `model`, if there is one, is what train() and evaluate() are called with; else it is the
    adapter.
    """

    def names(self) -> Sequence[str]:
        """The tensors, in the order in which the model travels. Letters, digits, '.', '_', '-'."""
        raise NotImplementedError

    def get(self, name: str) -> Any:
        """The tensor: a numpy array, or anything with the buffer protocol and its shape."""
        raise NotImplementedError

    def set(self, name: str, values: Any) -> None:
        """Take `values` over: a memoryview of float32 with the tensor's shape, to be copied.

        `numpy.asarray(values)` is an array of it. It may change once this has returned.
        """
        raise NotImplementedError

    def begin(self) -> None:
        """Called before each training: forget what belongs to an earlier one, such as momentum."""


class Entry(NamedTuple):
    """A tensor that is sent. `also`: other names of the same memory, which is sent once."""

    name: str
    shape: Shape
    also: Tuple[str, ...] = ()


def check_names(tensors: Sequence[Tuple[str, Shape]]) -> None:
    """Raises ModelError for the first tensor that no server accepts."""
    if not tensors:
        raise ModelError("nothing of the model travels: it has no trainable parameter")
    if len(tensors) > MAX_TENSORS:
        raise ModelError(f"{len(tensors)} tensors travel, a server takes {MAX_TENSORS}")
    for name, shape in tensors:
        if NAME.fullmatch(name) is None or name == "unit":
            raise ModelError(
                f"tensor '{name}': no server takes that name: expected 1 to 127 of A-Z a-z 0-9 . _ -, not '.' "
                "first and not 'unit'; rename the module (the key of a ModuleDict, say) or parameter"
            )
        if len(shape) > MAX_DIMS:
            raise ModelError(f"tensor '{name}' has {len(shape)} dimensions, a server takes {MAX_DIMS}")


class Backend:
    """A kind of model. Subclasses implement entries(), _read() and _write()."""

    #: Parts that optimizers made or watched by this backend can do.
    parts: Tuple[str, ...] = ()
    #: Whether there is task.loss().
    has_losses = False
    software = ""

    def __init__(self, model: Any) -> None:
        #: What train() and evaluate() are called with.
        self.model = model
        self._bound: List[Tuple[Entry, Tuple[str, ...]]] = []
        self._aliases: Dict[str, str] = {}
        #: Names of staying() that the server's model has.
        self.taken_along: List[str] = []

    def entries(self) -> List[Entry]:
        raise NotImplementedError

    def staying(self) -> Dict[str, Shape]:
        """Untrained tensors: sent only when the server's model contains them."""
        return {}

    def travels(self) -> str:
        """Numbers of values that are sent and that stay local; after fit()."""

        def count(shapes: Sequence[Shape]) -> str:
            return f"{len(shapes)} tensors of {sum(math.prod(s) for s in shapes)} numbers"

        stays = list(self.staying().values())
        text = f"{count([entry.shape for entry, _ in self._bound])} travel"
        text += f", {count(stays)} stay here, as they are not trained" if stays else ""
        if self.taken_along:
            text += (
                f"; {len(self.taken_along)} of those that travel are frozen ('{self.taken_along[0]}' first), "
                "since the server's model has them: save it again without (fl_trainer.save)"
            )
        return text

    def _take_along(self, names: Sequence[str]) -> None:
        """The server's model contains these tensors of staying(): send them from now on."""

    def _read(self, entry: Entry, block: Block, name: str) -> None:
        """Copy from the block into the model."""
        raise NotImplementedError

    def _write(self, entry: Entry, block: Block, name: str) -> None:
        """Copy from the model into the block."""
        raise NotImplementedError

    def fit(self, places: Dict[str, Place], theirs: str = "server") -> None:
        """Match the tensors with a server or a file. Raises ModelError for the first difference."""
        bound = []
        shapes = {name: place.shape for name, place in places.items()}
        along = [name for name in self.staying() if name in shapes]
        self.taken_along += along
        self._take_along(along)
        entries = self.entries()
        for entry in entries:
            names = tuple(n for n in (entry.name, *entry.also) if n in shapes)
            bound.append((entry, names))
        have = [(n, e.shape) for e, names in bound for n in (names or (e.name,))]
        difference = first_difference(have, shapes, theirs)
        if difference is not None:
            raise ModelError(difference + self._hint(shapes))
        self._bound = bound
        self._aliases = {entry.name: names[0] for entry, names in bound}

    def load(self, block: Block) -> None:
        for entry, names in self._bound:
            self._read(entry, block, names[0])

    def store(self, block: Block) -> None:
        for entry, names in self._bound:
            for name in names:
                self._write(entry, block, name)

    def alias(self, name: str) -> Optional[str]:
        """The server's name of the tensor that the program calls `name`."""
        return self._aliases.get(name)

    def _hint(self, shapes: Dict[str, Shape]) -> str:
        for prefix in ("module.", "_orig_mod."):
            if any(name.startswith(prefix) for name in shapes):
                return (
                    f"; the server's names begin with '{prefix}', which DataParallel and torch.compile "
                    "put before them: write its model.file with fl_trainer.save()"
                )
        return ""

    # Hooks around the user's functions.

    def begin_training(self) -> None:
        """Called before each training."""

    def evaluating(self, check: Callable[[], None]) -> ContextManager[Any]:
        """Context of an evaluation. `check` is called between batches where possible."""
        return contextlib.nullcontext()

    def order(self, n: int, seed: int) -> Any:
        """0 .. n - 1 in an order drawn from `seed`, in the index type of this backend."""
        import random

        order = list(range(n))
        random.Random(seed).shuffle(order)
        return order

    def losses(self, task: Any, criterion: Callable[[Any, Any], Any]) -> Any:
        """Implements task.loss(); see Losses in `_losses`."""
        raise ModelError("task.loss() is for PyTorch models")

    def summary(self, examples: Any, classes: int, group: int, seed: int, room: int) -> bytes:
        """The data summary, `room` bytes at most."""
        raise ModelError("summaries are for PyTorch models")

    def optimizer(self, task: Any, params: Any, options: Dict[str, Any]) -> Any:
        raise ModelError("task.optimizer() is for PyTorch models and dictionaries of numpy arrays")

    def watch(self, task: Any, optimizer: Any) -> Any:
        raise ModelError("task.watch() is for optimizers of PyTorch")


class AdapterBackend(Backend):
    """Backend over an Adapter; needs numpy only when the adapter returns numpy arrays."""

    def __init__(self, adapter: Any) -> None:
        super().__init__(getattr(adapter, "model", adapter))
        self.adapter = adapter

    def entries(self) -> List[Entry]:
        return [Entry(name, self._view(name).shape) for name in self.adapter.names()]

    def begin_training(self) -> None:
        begin = getattr(self.adapter, "begin", None)
        if begin is not None:
            begin()

    def _view(self, name: str) -> memoryview:
        value = self.adapter.get(name)
        try:
            view = memoryview(value.__array__() if hasattr(value, "__array__") else value)
        except TypeError as e:
            raise ModelError(
                f"tensor '{name}': a {type(value).__name__}, expected an array (numpy.asarray(…))"
            ) from e
        if view.format not in ("f", "d", "e"):
            raise ModelError(f"tensor '{name}': format '{view.format}', expected floating point numbers")
        if math.prod(view.shape) == 0:
            raise ModelError(f"tensor '{name}' is empty, which no server takes")
        return view

    def _read(self, entry: Entry, block: Block, name: str) -> None:
        self.adapter.set(entry.name, block.view(name).toreadonly())

    def _write(self, entry: Entry, block: Block, name: str) -> None:
        view = self._view(entry.name)
        if view.shape != entry.shape:
            raise ModelError(
                f"tensor '{entry.name}' is {shape_text(view.shape)} after training, "
                f"it was {shape_text(entry.shape)}"
            )
        raw = view.tobytes()  # in C order, independent of the strides
        numbers = raw if view.format == "f" else _as_float32(raw, view.format)
        begin = 4 * block.places[name].offset
        block.floats.cast("B")[begin : begin + len(numbers)] = numbers


def _as_float32(raw: bytes, fmt: str) -> bytes:
    """Convert to float32; larger values become infinite, which the client rejects."""
    out = array.array("f")
    for (number,) in struct.iter_unpack(fmt, raw):
        try:
            out.append(number)
        except OverflowError:
            out.append(math.copysign(math.inf, number))
    return out.tobytes()


def backend_of(model: Any) -> Backend:
    """The backend for the model passed to fl_trainer.run(). A function is called for it."""
    for _ in range(2):
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(model, torch.nn.Module):
            from ._torch import TorchBackend

            return TorchBackend(model)
        if isinstance(model, dict):
            from ._numpy import NumpyBackend

            return NumpyBackend(model)
        if all(callable(getattr(model, m, None)) for m in ("names", "get", "set")):
            return AdapterBackend(model)
        if hasattr(model, "get_params") and hasattr(model, "fit"):
            raise ModelError(
                f"a {type(model).__name__} has no parameters before its first fit: wrap it in "
                "fl_trainer.Sklearn(model, features=…, classes=…)"
            )
        if not callable(model):
            break
        model = model()
    raise ModelError(
        f"a {type(model).__name__} is no model: expected a torch.nn.Module, a dictionary of numpy "
        "arrays, an adapter (names, get, set), or a function that returns one"
    )
