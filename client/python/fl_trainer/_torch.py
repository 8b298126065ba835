"""Models and optimizers of PyTorch. Imported only where the script has imported torch."""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

import torch

from ._losses import Losses
from ._memory import Block, Shape
from ._mixup import Mixture, make_summary
from ._models import CLOSURE_PARTS, LOSS_PARTS, STEP_PARTS, Backend, Entry, ModelError
from ._parts import PartError, PerFedAvg, PFedMe, Step, step_of

_COUNTER = "num_batches_tracked"


def _unwrapped(model: Any) -> Any:
    """The model inside DataParallel, DistributedDataParallel or torch.compile: plain names."""
    while True:
        if isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):
            model = model._orig_mod
        elif isinstance(
            model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
        ):
            model = model.module
        else:
            return model


def _flat(block: Block) -> Any:
    """The block as one tensor over the same memory."""
    with warnings.catch_warnings():
        # The memory is read-only, which torch cannot express; it is never written here.
        warnings.simplefilter("ignore")
        return torch.frombuffer(
            block.memory, dtype=torch.float32, count=len(block.floats), offset=block.data
        )


def _view(block: Block, name: str) -> Any:
    offset, shape = block.places[name]
    flat = block.native("torch", _flat)
    return flat[offset : offset + _count(shape)].view(shape)


def _count(shape: Any) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _untrained(model: Any, tensors: Dict[str, Any]) -> Set[str]:
    """Frozen parameters, and the buffers of modules in evaluation mode whose parameters are all frozen.

    Of a memory with several names the first counts: tied tensors are frozen together.
    """
    stays = {n for n, t in tensors.items() if isinstance(t, torch.nn.Parameter) and not t.requires_grad}
    for prefix, module in model.named_modules():
        own = list(module.parameters(recurse=False))
        if module.training or not own or any(p.requires_grad for p in own):
            continue
        for name, _ in module.named_buffers(recurse=False):
            full = f"{prefix}.{name}" if prefix else name
            if full in tensors:
                stays.add(full)
    return stays


class TorchBackend(Backend):
    """torch.nn.Module: what its state_dict() holds of floating point numbers, in that order."""

    parts = STEP_PARTS + CLOSURE_PARTS + LOSS_PARTS
    has_losses = True
    software = f"torch {torch.__version__}"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._modes = {m: m.training for m in model.modules()}
        self._stays: Set[str] = set()
        self._stays = _untrained(_unwrapped(model), self.tensors())

    def staying(self) -> Dict[str, Shape]:
        everything = self._all()
        return {name: tuple(everything[name].shape) for name in self._stays}

    def _take_along(self, names: Sequence[str]) -> None:
        self._stays -= set(names)

    def tensors(self) -> Dict[str, Any]:
        """The tensors that are sent, by name, with their current values."""
        return {name: t for name, t in self._all().items() if name not in self._stays}

    def _all(self) -> Dict[str, Any]:
        found = {}
        for name, t in _unwrapped(self.model).state_dict(keep_vars=True).items():
            if not isinstance(t, torch.Tensor):
                continue  # get_extra_state()
            if name.rpartition(".")[2] == _COUNTER:
                continue
            if isinstance(t, torch.nn.parameter.UninitializedTensorMixin):
                raise ModelError(
                    f"tensor '{name}' has no shape yet: let the model see a batch before it is handed over"
                )
            if t.is_complex() or t.is_sparse or t.is_quantized or t.device.type == "meta":
                raise ModelError(f"tensor '{name}' is {t.dtype} ({t.layout}, {t.device}): it cannot travel")
            if t.is_floating_point():
                if t.numel() == 0:
                    raise ModelError(f"tensor '{name}' is empty, which no server takes")
                found[name] = t
        return found

    def entries(self) -> List[Entry]:
        groups: Dict[Any, List[str]] = {}
        tensors = self.tensors()
        for name, t in tensors.items():
            same = (t.device, t.data_ptr(), t.dtype, tuple(t.shape), t.stride())
            groups.setdefault(same, []).append(name)
        return [
            Entry(names[0], tuple(tensors[names[0]].shape), tuple(names[1:]))
            for names in groups.values()
        ]

    def load(self, block: Block) -> None:
        tensors = self.tensors()
        with torch.no_grad():
            for entry, names in self._bound:
                tensors[entry.name].copy_(_view(block, names[0]))

    def store(self, block: Block) -> None:
        tensors = self.tensors()
        with torch.no_grad():
            for entry, names in self._bound:
                for name in names:
                    _view(block, name).copy_(tensors[entry.name])

    def begin_training(self) -> None:
        for module, mode in self._modes.items():
            module.training = mode
        for name, t in _unwrapped(self.model).state_dict(keep_vars=True).items():
            if name.rpartition(".")[2] == _COUNTER and isinstance(t, torch.Tensor):
                with torch.no_grad():
                    t.zero_()

    @contextlib.contextmanager
    def evaluating(self, check: Callable[[], None]) -> Iterator[None]:
        modes = {m: m.training for m in self.model.modules()}
        self.model.eval()
        try:
            hook = self.model.register_forward_pre_hook(lambda module, inputs: check())
        except RuntimeError:
            hook = None  # a ScriptModule has none
        try:
            with torch.no_grad():
                yield
        finally:
            if hook is not None:
                hook.remove()
            for module, mode in modes.items():
                module.training = mode

    def order(self, n: int, seed: int) -> Any:
        generator = torch.Generator()
        generator.manual_seed(seed)
        return torch.randperm(n, generator=generator)

    def losses(self, task: Any, criterion: Callable[[Any, Any], Any]) -> Losses:
        do = task.parts.get("mixup")
        summaries = task.summaries
        if do is None or summaries is None:
            return Losses(self.model, criterion)
        own = task.own_summary(int(do.get("group") or 0), int(do["seed"]))
        return Losses(self.model, criterion, Mixture(do, task.seed, summaries, own))

    def summary(self, examples: Any, classes: int, group: int, seed: int, room: int) -> bytes:
        return make_summary(examples, classes, group, seed, room)

    def optimizer(self, task: Any, params: Any, options: Dict[str, Any]) -> Any:
        settings = {
            "lr": task.learning_rate,
            "momentum": task.momentum,
            "weight_decay": task.weight_decay,
            **options,
        }
        if params is None:
            params = [p for p in self.model.parameters() if p.requires_grad]
        return self.watch(task, torch.optim.SGD(params, **settings))

    def watch(self, task: Any, optimizer: Any) -> Any:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise ModelError(f"task.watch(): a {type(optimizer).__name__} is no optimizer of PyTorch")
        optimizer.state.clear()
        task.watches.append(_Watch(self, task, optimizer))
        optimizer.fl_watch = task.watches[-1]
        if not hasattr(optimizer, "fl_plain_step"):
            _take_over(optimizer)
        return optimizer


def _take_over(optimizer: Any) -> None:
    """Let optimizer.step() go through the watch of the current task.

    A method of the instance with the attributes of the one before it: schedulers, made before or
    after this, wrap it in turn, and GradScaler calls it after it has unscaled the gradients.
    """
    plain = optimizer.step

    @functools.wraps(plain)
    def step(self: Any, closure: Optional[Callable[[], Any]] = None) -> Any:
        return self.fl_watch.step(plain, closure)

    optimizer.fl_plain_step = plain
    optimizer.step = types.MethodType(step, optimizer)


class _Watch:
    """One optimizer in one task."""

    def __init__(self, backend: TorchBackend, task: Any, optimizer: Any) -> None:
        self.task = task
        self.optimizer = optimizer
        names: Dict[int, str] = {}
        tensors = backend.tensors()
        for entry in backend.entries():
            names[id(tensors[entry.name])] = entry.name
        self.params = [p for group in optimizer.param_groups for p in group["params"]]
        # A tensor that is tied under two names, or not the model's, is left alone.
        own = [names.get(id(p)) for p in self.params]
        self.names = [backend.alias(n) if n is not None else None for n in own]
        self._vectors: Dict[Any, Any] = {}
        self._told_at = -1  # number of losses when the direction was set
        self.parts: Step = step_of(task.parts, task, self._vector)

    def _vector(self, slot: str, i: int) -> Any:
        key = (slot, i)
        if key not in self._vectors:
            block, name = self.task.slot(slot), self.names[i]
            p = self.params[i]
            self._vectors[key] = (
                None
                if name is None
                else _view(block, name).to(p.device, torch.float32 if slot == "places" else p.dtype)
            )
        return self._vectors[key]

    def _xs(self) -> List[Any]:
        return [p.detach() for p in self.params]

    def _gs(self) -> List[Any]:
        """The gradients, to be changed in place; 0 where the batch had none for a parameter."""
        for p in self.params:
            if p.grad is None and p.requires_grad:
                p.grad = torch.zeros_like(p)
            elif p.grad is not None and p.grad.is_sparse:
                p.grad = p.grad.to_dense()
        return [None if p.grad is None else p.grad.detach() for p in self.params]

    def _before(self) -> None:
        if self.parts.changes_gradient:
            with torch.no_grad():
                self.parts.before(self._xs(), self._gs())

    def step(self, plain: Callable[..., Any], closure: Optional[Callable[[], Any]]) -> Any:
        self.task.check()
        if isinstance(self.parts, PFedMe):
            loss = self._pfedme(self.parts, closure)
        elif isinstance(self.parts, PerFedAvg):
            loss = self._per_fedavg(self.parts, plain, closure)
        else:
            loss = self._plain(plain, closure)
        self.task.stepped(self.parts.made)
        return loss

    def _plain(self, plain: Callable[..., Any], closure: Optional[Callable[[], Any]]) -> Any:
        def with_parts() -> Any:
            assert closure is not None
            with torch.enable_grad():
                loss = closure()
            self._before()
            return loss

        if closure is None:
            self._before()
            result = plain()
        else:
            result = plain(with_parts)
        if self.parts.changes_model:
            with torch.no_grad():
                self.parts.after(self._xs())
        else:
            self.parts.after(())  # it counts; the list of tensors would cost more than the rest
        return result

    def _again(self, closure: Optional[Callable[[], Any]]) -> Optional[Callable[[], Any]]:
        """A function that recomputes the gradients of the batch; None: not available."""
        losses = self.task.losses

        def with_closure() -> Any:
            assert closure is not None
            with torch.enable_grad():
                return closure()

        if closure is not None:
            return with_closure
        if losses is not None and losses.can_repeat:
            return lambda: losses.repeat(self.params)
        return None

    def _pfedme(self, parts: PFedMe, closure: Optional[Callable[[], Any]]) -> Any:
        again = self._again(closure)
        if again is None:
            raise PartError(
                "pfedme takes several gradients of each batch: compute the loss by task.loss(x, y) "
                "(fl_trainer.run(criterion=…)), or call optimizer.step(closure), where closure() clears "
                "the gradients, calls backward() and returns the loss"
            )
        first = None
        with torch.no_grad():
            parts.start(self._xs())
        for i in range(parts.inner_steps):
            # Without a closure those of the first are there.
            loss = again() if i > 0 or closure is not None else None
            first = loss if i == 0 else first
            with torch.no_grad():
                parts.inner(self._xs(), self._gs())
        with torch.no_grad():
            parts.follow(self._xs())
        return first

    def _per_fedavg(
        self, parts: PerFedAvg, plain: Callable[..., Any], closure: Optional[Callable[[], Any]]
    ) -> Any:
        again = self._again(closure)
        result = again() if closure is not None and again is not None else None
        self._advance(parts, plain)
        parts.made += 1
        while parts.is_cut_short and again is not None:
            again()
            self._advance(parts, plain)
        return result

    def _advance(self, parts: PerFedAvg, plain: Callable[..., Any]) -> None:
        """Make a step of an iteration with the current gradients."""
        self._check_direction(parts)
        with torch.no_grad():
            own = parts.own_step(self._xs(), self._gs())
        self._tell_direction(parts)
        if not own:
            plain()

    def _check_direction(self, parts: PerFedAvg) -> None:
        losses = self.task.losses
        if parts.phase == 2 and (losses is None or losses.made == self._told_at):
            raise PartError(
                "per_fedavg with variant 'hf' takes second derivatives: compute the loss of each batch "
                "by task.loss(x, y)"
            )

    def _tell_direction(self, parts: PerFedAvg) -> None:
        losses = self.task.losses
        if losses is None:
            return
        self._told_at = losses.made
        moves = [(p, v) for p, v in zip(self.params, parts.direction) if v is not None and p.requires_grad]
        if moves:
            losses.directions[id(self)] = moves
        else:
            losses.directions.pop(id(self), None)

    def personal(self) -> None:
        with torch.no_grad():
            self.parts.personal(self._xs())

    def result(self) -> None:
        with torch.no_grad():
            self.parts.result(self._xs())
