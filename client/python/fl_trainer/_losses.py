"""task.loss() for PyTorch: the loss of a batch in the form that the capabilities need."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from ._mixup import Mixture

#: Parameters and the direction in which each moves.
Direction = List[Tuple[Any, Any]]


class Losses:
    """The losses of one task."""

    def __init__(
        self,
        model: Any,
        criterion: Callable[[Any, Any], Any],
        mixture: Optional[Mixture] = None,
    ) -> None:
        self.model = model
        self.criterion = criterion
        self.mixture = mixture
        #: How many were computed.
        self.made = 0
        #: By optimizer: while there are some, the gradient of a loss is the product of its Hessian
        #: with them.
        self.directions: Dict[int, Direction] = {}
        self._batch: Optional[Tuple[Any, Any]] = None

    def __call__(self, x: Any, y: Any) -> Any:
        self.made += 1
        self._batch = (x, y)
        if self.directions:
            return self._along(x, y)
        if self.mixture is not None:
            return self.mixture.loss(self.model, x, y, self.criterion)
        return self.criterion(self.model(x), y)

    @property
    def can_repeat(self) -> bool:
        return self._batch is not None

    def repeat(self, params: List[Any]) -> Any:
        """Recompute the gradients of the previous batch with the current parameters."""
        assert self._batch is not None
        for p in params:
            p.grad = None
        with torch.enable_grad():
            loss = self(*self._batch)
            loss.backward()
        return loss.detach()

    def _along(self, x: Any, y: Any) -> Any:
        """Has the value of the loss; its gradient is the exact Hessian-vector product."""
        moves = [move for direction in self.directions.values() for move in direction]
        with _still(self.model):
            loss = self.criterion(self.model(x), y)
        gradients = torch.autograd.grad(
            loss, [p for p, _ in moves], create_graph=True, allow_unused=True
        )
        slope = 0.0 * loss  # so that there is a gradient where the loss has no curvature
        for g, (_, v) in zip(gradients, moves):
            if g is not None:
                slope = slope + (g * v).sum()
        return loss.detach() + (slope - slope.detach())


@contextlib.contextmanager
def _still(model: Any) -> Iterator[None]:
    """Buffers (statistics of batch-norm) are restored afterwards."""
    before = [(b, b.detach().clone()) for b in model.buffers()]
    yield
    for b, value in before:
        b.data.copy_(value)  # .data: not tracked by the backward pass
