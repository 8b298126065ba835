"""What a step does beyond gradient descent (docs/trainers.md#parts).

Written with operators that numpy arrays and PyTorch tensors share (but for the sums of Space), in
place: `x` are parameters, `g` gradients. Whoever calls this sees to it that nothing is recorded for a backward pass.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

#: vectors(slot, i): the tensor of that slot which belongs to parameter i, or None.
Vectors = Callable[[str, int], Any]


class PartError(Exception):
    """A capability that the program lacks in the requested form."""


def _clone(x: Any) -> Any:
    return x.clone() if hasattr(x, "clone") else x.copy()


class Space:
    """Few numbers, to which all parameters belong with a sign (docs/algorithms.md#hashed-spaces).

    The slot `places` has twice the index of a parameter's number from 1 on, plus 1 where its sign is
    -1; 0: the parameter is trained by itself.
    """

    def __init__(self, numbers: int, vectors: Vectors, xs: Sequence[Any]) -> None:
        self.size = numbers + 1
        self.own: List[Any] = []  # parameter, start, numbers, signs
        for i, x in enumerate(xs):
            start, places = vectors("model", i), vectors("places", i)
            if places is not None:
                places = places.long() if hasattr(places, "long") else places.astype("int64")
                signs = 1 - 2 * (places & 1)
                self.own.append((i, _clone(start), places >> 1, signs * (places > 0)))
        counts = self._sums(signs * signs for _, _, _, signs in self.own)
        self.share = 1.0 / (counts + (counts == 0))

    def _sums(self, values: Iterable[Any]) -> Any:
        """For each number the sum of the values of its parameters."""
        total: Any = 0.0
        for (_, _, numbers, _), value in zip(self.own, values):
            if hasattr(value, "new_zeros"):
                part = value.new_zeros(self.size, dtype=_float_of(value))
                part.index_add_(0, numbers.reshape(-1), value.reshape(-1).to(part.dtype))
                total = part if isinstance(total, float) else total + part.to(total.device)
            else:
                import numpy

                total = total + numpy.bincount(numbers.ravel(), value.ravel(), self.size)
        return total

    def project(self, xs: Sequence[Any]) -> None:
        """x <- start + the nearest displacement that is the same, but for signs, within each number."""
        means = self.share * self._sums((xs[i] - start) * signs for i, start, _, signs in self.own)
        for i, start, numbers, signs in self.own:
            there = means.to(start.device) if hasattr(means, "to") else means
            moved = start + (there[numbers] * signs)
            x = xs[i]
            x[...] = x * (signs == 0) + moved * (signs != 0)


def _float_of(value: Any) -> Any:
    """At least float32: sums of many half precision numbers would be lost."""
    import torch

    return value.dtype if value.dtype == torch.float64 else torch.float32


class Step:
    """The steps of one optimizer in one task.

    Usage, for each batch: gradients, then `before()`, the optimizer's own step, `after()`.
    """

    #: Whether one call needs the gradient of the batch more than once.
    needs_closure = False

    def __init__(self, do: Dict[str, Any], task: Any, vectors: Vectors) -> None:
        self.task = task
        self.vectors = vectors
        self.mu = float(do["pull"]["mu"]) if "pull" in do else 0.0
        self.gradient = "gradient" in do
        self.drift = "drift" in do
        self.numbers = int(do["space"]["numbers"]) if "space" in do else 0
        self._space: Optional[Space] = None
        self.made = 0

    @property
    def changes_gradient(self) -> bool:
        return self.mu != 0 or self.gradient

    @property
    def changes_model(self) -> bool:
        return self.drift or self.numbers > 0

    def before(self, xs: Sequence[Any], gs: Sequence[Any]) -> None:
        """g <- g + gradient + mu (x - anchor), in place."""
        for i, (x, g) in enumerate(zip(xs, gs)):
            if g is None:
                continue
            if self.gradient:
                vector = self.vectors("gradient", i)
                if vector is not None:
                    g += vector
            if self.mu != 0:
                anchor = self.vectors("anchor", i)
                if anchor is not None:
                    g += self.mu * (x - anchor)

    def after(self, xs: Sequence[Any]) -> None:
        """x <- x + drift / steps, and back into the space."""
        self.made += 1
        if self.drift:
            self._move(xs)
        if self.numbers > 0:
            if self._space is None:
                self._space = Space(self.numbers, self.vectors, xs)
            self._space.project(xs)

    def _move(self, xs: Sequence[Any]) -> None:
        total = self.task.total_steps
        if not total:
            raise PartError(
                "this round's solver moves the model by an equal share after each step, and how many "
                "there will be is not known: set task.total_steps before the first one"
            )
        for i, x in enumerate(xs):
            vector = self.vectors("drift", i)
            if vector is not None:
                x += vector * (1.0 / total)

    def personal(self, xs: Sequence[Any]) -> None:
        """After training: load the client's personalized model, for its evaluation."""

    def result(self, xs: Sequence[Any]) -> None:
        """After that: load the model that is sent."""


class PFedMe(Step):
    """theta and w of pFedMe (docs/algorithms.md#personal-models); the model holds theta."""

    needs_closure = True

    def __init__(self, do: Dict[str, Any], task: Any, vectors: Vectors) -> None:
        super().__init__({}, task, vectors)
        part = do["pfedme"]
        self.inner_steps = int(part["inner_steps"])
        self.rate = float(part["inner_learning_rate"])
        self.strength = float(part["lambda"])
        self.personal_is_w = part.get("personal", "theta") != "theta"
        self.w: Optional[List[Any]] = None
        self.w_in_model = False

    def inner(self, xs: Sequence[Any], gs: Sequence[Any]) -> None:
        """theta <- theta - rate (g + lambda (theta - w) + weight_decay theta)."""
        for x, g, w in zip(xs, gs, self.w or ()):
            if g is None:
                continue
            g += self.strength * (x - w)
            if self.task.weight_decay != 0:
                g += self.task.weight_decay * x
            x -= self.rate * g

    def start(self, xs: Sequence[Any]) -> None:
        if self.w is None:
            self.w = [_clone(x) for x in xs]

    def follow(self, xs: Sequence[Any]) -> None:
        """w <- w - learning_rate lambda (w - theta)."""
        for x, w in zip(xs, self.w or ()):
            w -= self.task.learning_rate * self.strength * (w - x)
        self.made += 1

    def _swap(self, xs: Sequence[Any], w: bool) -> None:
        if self.w is None or self.w_in_model == w:
            return
        for i, x in enumerate(xs):
            aside = _clone(x)
            x[...] = self.w[i]
            self.w[i] = aside
        self.w_in_model = w

    def personal(self, xs: Sequence[Any]) -> None:
        self._swap(xs, self.personal_is_w)

    def result(self, xs: Sequence[Any]) -> None:
        self._swap(xs, True)


class PerFedAvg(Step):
    """Per-FedAvg (docs/algorithms.md#personal-models): two steps make an iteration, with `hf` three.

    w' = w - alpha g(w; D1), then fo: w <- w - learning_rate g(w'; D2), hf: w <- w - learning_rate
    (g' - alpha H(w; D3) g') with g' = g(w'; D2), in both the last one by the optimizer. g and H
    include weight decay. An iteration that the round cuts short uses its batch again where that can
    be had (a closure, task.loss()); else it is left out.
    """

    def __init__(self, do: Dict[str, Any], task: Any, vectors: Vectors) -> None:
        super().__init__({}, task, vectors)
        part = do["per_fedavg"]
        self.hf = part.get("variant", "fo") == "hf"
        self.alpha = float(part["alpha"])
        self.adapting = task.kind == "adapt"
        #: Of the iteration: 0 before D1, 1 before D2, 2 before D3.
        self.phase = 0
        self.w: List[Any] = []
        self._gradient: List[Any] = []

    def _descend(self, xs: Sequence[Any], gs: Sequence[Any], rate: float) -> None:
        for x, g in zip(xs, gs):
            if g is not None:
                x -= rate * (g + self.task.weight_decay * x)

    def own_step(self, xs: Sequence[Any], gs: Sequence[Any]) -> bool:
        """Make a step without the optimizer; False: the optimizer must make this one."""
        if self.adapting:
            self._descend(xs, gs, self.alpha if self.made == 0 else self.task.learning_rate)
            return True
        if self.phase == 0:
            self.phase = 1
            self.w = [_clone(x) for x in xs]
            self._descend(xs, gs, self.alpha)
            return True
        if self.phase == 1 and self.hf:
            self.phase = 2
            self._gradient = [
                None if g is None else g + self.task.weight_decay * x for x, g in zip(xs, gs)
            ]
            self._back(xs)
            return True
        if self.phase == 1:
            self._outer_gradient(xs, gs)
            self._back(xs)
        else:
            self._bend(xs, gs)
        self.phase = 0
        return False

    def _outer_gradient(self, xs: Sequence[Any], gs: Sequence[Any]) -> None:
        for x, g, w in zip(xs, gs, self.w):
            if g is not None and self.task.weight_decay != 0:
                g += self.task.weight_decay * (x - w)  # the optimizer adds the weight decay of w

    def _bend(self, xs: Sequence[Any], gs: Sequence[Any]) -> None:
        """`gs` are the products of the loss's Hessian with g'; that of weight decay is its factor."""
        decay = self.task.weight_decay
        for x, g, kept in zip(xs, gs, self._gradient):
            if g is None or kept is None:
                continue
            g *= -self.alpha
            g += (1.0 - self.alpha * decay) * kept
            if decay != 0:
                g -= decay * x  # which the optimizer adds

    def _back(self, xs: Sequence[Any]) -> None:
        for x, w in zip(xs, self.w):
            x[...] = w

    @property
    def direction(self) -> List[Any]:
        """g', while the next gradients have to be the Hessian's products with it; else nothing."""
        return self._gradient if self.phase == 2 else []

    @property
    def is_cut_short(self) -> bool:
        """Whether no further batch will complete this iteration."""
        return self.phase != 0 and self.made == self.task.total_steps

    def result(self, xs: Sequence[Any]) -> None:
        if self.phase == 1:
            self._back(xs)
        self.phase = 0

    personal = result


def step_of(do: Dict[str, Any], task: Any, vectors: Vectors) -> Step:
    if "pfedme" in do:
        return PFedMe(do, task, vectors)
    if "per_fedavg" in do:
        return PerFedAvg(do, task, vectors)
    return Step(do, task, vectors)
