"""What clients tell of their data for FedMix, and the loss of a batch that is mixed with it.

docs/algorithms.md#mix-up-from-means; a summary's bytes are those of libfl/strategy/solver/solver_fedmix.h.
Imported only for a model of PyTorch.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, List, Mapping, Sequence, Tuple

import torch

from ._parts import PartError

_HEADER = struct.Struct("<4sIII")
_MAGIC = b"FLMX"


def make_summary(examples: Any, classes: int, group: int, seed: int, room: int) -> bytes:
    """Means of groups of `group` samples (0: of all) and of their labels, drawn by `seed`.

    The last group takes the rest, so that no mean is of fewer samples.
    """
    n = len(examples)
    group = n if group == 0 else min(group, n)
    dim = torch.as_tensor(examples[0][0]).numel()
    pairs = n // group
    if _HEADER.size + pairs * 4 * (dim + classes) > room:
        raise ValueError(
            f"{pairs} means of {dim + classes} values are more than the {room} bytes that a client may "
            f"summary: the server's strategy.solver.group must be larger than {group}"
        )
    generator = torch.Generator()
    generator.manual_seed(seed)
    order = torch.randperm(n, generator=generator).tolist()
    summary = bytearray(_HEADER.pack(_MAGIC, dim, classes, pairs))
    for pair in range(pairs):
        end = n if pair == pairs - 1 else (pair + 1) * group
        mean = _mean(examples, order[pair * group : end], dim, classes)
        summary += struct.pack(f"<{dim + classes}f", *mean.tolist())
    return bytes(summary)


def _mean(examples: Any, group: Sequence[int], dim: int, classes: int) -> Any:
    total = torch.zeros(dim + classes, dtype=torch.float64)
    for i in group:
        x, y = examples[i]
        label = int(y)
        if not 0 <= label < classes:
            raise ValueError(f"examples[{i}]: label {label}, expected 0 to {classes - 1} (classes={classes})")
        total[:dim] += torch.as_tensor(x).detach().reshape(-1).to("cpu", torch.float64)
        total[dim + label] += 1
    mean = (total / len(group)).to(torch.float32)
    if not torch.isfinite(mean).all():
        raise ValueError("the mean of a group of samples is not finite: look for NaN in examples")
    return mean


class Mixture:
    """The means of the other clients, and mixing a batch with them."""

    def __init__(self, do: Mapping[str, Any], seed: int, summaries: Any, own: bytes) -> None:
        self.share = float(do["lambda"])
        self.naive = bool(do.get("naive"))
        one = do.get("q") == "one"
        #: lambda q, of the third term.
        self.slope = 0.0 if self.naive else self.share * (1.0 if one else 1.0 - self.share)
        self._generator = torch.Generator()
        self._generator.manual_seed(seed)
        self._pairs = _others(memoryview(summaries).cast("B"), own)

    def loss(self, model: Any, x: Any, y: Any, criterion: Callable[[Any, Any], Any]) -> Any:
        """The formula at the top of libfl/strategy/solver/solver_fedmix.c, as the mean of a batch."""
        if not self._pairs or self.share == 0:
            return criterion(model(x), y)
        mean, label = self._draw(x)
        z = (1.0 - self.share) * x
        if self.naive:
            z = z + self.share * mean
        third = self.slope > 0 and bool(mean.any())
        if third:
            z = z.detach().requires_grad_(True)
        out = model(z)
        own = criterion(out, y)
        others = criterion(out, label.to(out.device, out.dtype).expand(len(y), -1))
        loss = (1.0 - self.share) * own + self.share * others
        if third:
            (slope,) = torch.autograd.grad(own, z, create_graph=True)
            loss = loss + self.slope * (slope * mean).sum()
        return loss

    def _draw(self, x: Any) -> Tuple[Any, Any]:
        dim = self._pairs[0][0].numel()
        if not x.is_floating_point() or x[0].numel() != dim:
            raise PartError(
                f"mixup: a batch of {x.dtype} with {x[0].numel()} values a sample, expected floating "
                f"point numbers as in examples, {dim} a sample"
            )
        i = int(torch.randint(len(self._pairs), (1,), generator=self._generator))
        mean, label = self._pairs[i]
        return mean.to(x.device, x.dtype).reshape(x.shape[1:]), label


def _others(summaries: memoryview, own: bytes) -> List[Tuple[Any, Any]]:
    """The pairs of all data summaries except the first one equal to `own`."""
    pairs: List[Tuple[Any, Any]] = []
    at, found = 0, False
    expected = _HEADER.unpack_from(own)[1:3]
    while at < len(summaries):
        if len(summaries) - at < _HEADER.size:
            raise PartError(f"mixup: the summaries end in the middle of one, at byte {at}")
        magic, dim, classes, n = _HEADER.unpack_from(summaries, at)
        end = at + _HEADER.size + n * 4 * (dim + classes)
        if magic != _MAGIC or (dim, classes) != expected or end > len(summaries):
            raise PartError(
                f"mixup: a summary of {n} means of {dim} values and {classes} classes at byte {at} of "
                f"{len(summaries)}, expected {expected[0]} values and {expected[1]} classes as in examples"
            )
        if not found and bytes(summaries[at:end]) == own:
            found = True
        else:
            # A copy: the memory is reused by the next task.
            numbers = torch.frombuffer(
                bytearray(summaries[at + _HEADER.size : end]), dtype=torch.float32
            ).reshape(n, dim + classes)
            pairs += [(row[:dim], row[dim:]) for row in numbers]
        at = end
    return pairs
