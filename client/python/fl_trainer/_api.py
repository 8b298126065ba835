"""fl_trainer.run(), save() and data_path()."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _memory
from ._alone import run_alone
from ._files import TaskFile
from ._loop import Persistent
from ._models import CLOSURE_PARTS, LOSS_PARTS, ModelError, backend_of, check_names
from ._task import Task
from ._wire import Gone, ProtocolError
from ._work import Client, Program, show

Train = Callable[[Any, Task], Any]
Evaluate = Callable[[Any, Task], Any]

_caller: Union[None, Persistent, TaskFile] = None
_looked = False

#: Where the model goes that run() is given, in place of all it does: `python3 -m fl_trainer save SCRIPT.py OUT`.
saving_to: Optional[str] = None


def _find_caller() -> Union[None, Persistent, TaskFile]:
    """Find the client that started this program, once; clears its variables."""
    global _caller, _looked
    if not _looked:
        _looked = True
        try:
            _caller = Persistent.from_environment() or TaskFile.from_environment()
        except (ProtocolError, ModelError) as e:
            sys.exit(f"fl_trainer: {e}")
    return _caller


def data_path(default: Optional[str] = None) -> Optional[str]:
    """`data.path` of the client that started this program, `default` without one.

    Call it before run() to read the data.
    """
    caller = _find_caller()
    path = None
    if isinstance(caller, Persistent):
        try:
            path = caller.start.get("data")
        except Gone:
            sys.exit(0)
        except ProtocolError as e:
            sys.exit(f"fl_trainer: the client: {e}")
    elif isinstance(caller, TaskFile):
        path = caller.message.get("data")
    return default if path is None else path


def run(
    model: Any,
    train: Optional[Train],
    evaluate: Optional[Evaluate] = None,
    *,
    samples: int = 0,
    test_samples: Optional[int] = None,
    parts: Optional[Sequence[str]] = None,
    criterion: Optional[Callable[[Any, Any], Any]] = None,
    examples: Any = None,
    classes: int = 0,
    evaluate_received: bool = True,
    software: str = "",
    clients: Optional[Callable[[Client], Tuple[int, int]]] = None,
    alone: Optional[Dict[str, Any]] = None,
) -> None:
    """Take part in a federation: carry out what the client asks for until it has no more to ask.

    model
        A torch.nn.Module, a dictionary of numpy arrays, an adapter (`Sklearn`, or your own with names,
        get and set), or a function without arguments that returns one. It holds the received model
        whenever one of the functions is called.
    train(model, task)
        Train `model` in place as `task` says (Task). Returns the mean loss; or (loss, steps[,
        samples]), a dictionary or a Trained with those names; or nothing after task.count().
    evaluate(model, task)
        Returns samples, correct and the sum of losses on local test data: a tuple, a dictionary or an
        Evaluation. Called in evaluation mode and without gradients.
    samples, test_samples
        How many there are here: the weight of this client's updates, and of its evaluations.
    parts
        What train() can do in each step beyond plain gradient descent. Unless given: what
        task.optimizer() and task.watch() do by themselves (PyTorch and numpy: pull, gradient, drift, space,
        per_fedavg), and with `criterion` and `examples` more. Add "pfedme" when train() calls
        optimizer.step(closure); say () when it makes its steps without them.
    criterion
        PyTorch: criterion(output, target), the mean loss of a batch, when train() computes that by
        task.loss(x, y). Then pfedme, and per_fedavg with second derivatives, can be had.
    examples, classes
        With `criterion`: the training samples, a sequence of (x, label) as train() sees them, and the
        number of classes: mixup can be had, for which means of them leave the machine if the client's
        configuration says `summaries: yes`.
    evaluate_received
        False: do not evaluate the received model in each round before training.
    software
        Your own name and version for the client's log.
    clients
        In place of samples and test_samples, for a program that acts for many clients of a simulation in
        turn (fl-sim): clients(client) prepares for the data of a Client and returns how many training and
        test samples that has. On a machine of its own it is called once, with name and data of that client.
    alone
        learning_rate, epochs, … of a run by hand: without a client the model is trained once, as it is.

    Returns when the client has ended the session, after the single task of a file, or standalone.
    """
    if saving_to is not None:
        save(model, saving_to)
        sys.exit(0)
    caller = _find_caller()

    settings: Dict[str, Any] = {
        "samples": samples,
        "test_samples": test_samples,
        "parts": parts,
        "criterion": criterion,
        "examples": examples,
        "classes": classes,
        "evaluate_received": evaluate_received,
        "software": software,
        "clients": clients,
        "alone": alone,
    }
    try:
        if isinstance(caller, Persistent):
            _line_by_line()
            start = caller.start
            try:
                program = _program(model, train, evaluate, **settings)
                _act_for(program, start.get("client"), start)
            except Exception as e:
                show(e)
                caller.refuse(e)
                sys.exit(1)
            caller.serve(program)
            return
    except Gone:
        return
    except ProtocolError as e:
        sys.exit(f"fl_trainer: the client: {e}")
    program = _program(model, train, evaluate, **settings)
    _act_for(program, "", caller.message if isinstance(caller, TaskFile) else {})
    if caller is None:
        run_alone(program)
    else:
        caller.serve(program)


def _act_for(program: Program, name: Optional[str], start: Mapping[str, Any]) -> None:
    """The client that started the program, if run() was given `clients`; a simulation tells later."""
    purpose = start.get("purpose") or "train"
    if program.clients is not None and purpose != "simulate":
        program.act_for(Client(None if purpose == "evaluate" else name, data=start.get("data")))


def _program(
    model: Any,
    train: Optional[Train],
    evaluate: Optional[Evaluate],
    *,
    samples: int = 0,
    test_samples: Optional[int] = None,
    parts: Optional[Sequence[str]] = None,
    alone: Optional[Dict[str, Any]] = None,
    clients: Optional[Callable[[Client], Tuple[int, int]]] = None,
    **settings: Any,
) -> Program:
    """Made from run()'s arguments."""
    if train is None and evaluate is None:
        raise TypeError("fl_trainer.run(): neither train nor evaluate was given")
    if clients is not None and (samples or test_samples):
        raise TypeError("fl_trainer.run(): clients= counts the samples, do not say samples= or test_samples=")
    if clients is None and train is not None and samples < 1:
        raise TypeError("fl_trainer.run(): say samples=, the number of local training samples")
    if clients is None and evaluate is not None and test_samples is None:
        raise TypeError("fl_trainer.run(): say test_samples=, the number of samples evaluate() sees")
    backend = backend_of(model)
    backend.entries()
    program = Program(
        backend=backend,
        train=train,
        evaluate=evaluate,
        samples=int(samples),
        test_samples=int(test_samples or 0),
        alone=dict(alone or {}),
        clients=clients,
        **settings,
    )
    program.parts = _parts(program, parts)
    return program


def _parts(program: Program, wanted: Optional[Sequence[str]]) -> Tuple[str, ...]:
    """The declared capabilities: those requested, or all that are supported."""
    there = program.backend.parts
    if program.criterion is not None and not program.backend.has_losses:
        raise TypeError("fl_trainer.run(): criterion= is for PyTorch models")
    if program.examples is not None and (program.criterion is None or program.classes < 2):
        raise TypeError("fl_trainer.run(): examples= takes criterion= and classes=, 2 or more")
    if program.examples is None:
        there = tuple(p for p in there if p not in LOSS_PARTS)
    unknown = [p for p in wanted or () if p not in there]
    if unknown:
        raise TypeError(
            f"fl_trainer.run(): part '{unknown[0]}' cannot be had with this model"
            f"{' without examples=' if unknown[0] in LOSS_PARTS else ''}; there are "
            f"{', '.join(there) or 'none'}"
        )
    if wanted is not None:
        return tuple(wanted)
    if program.train is None:
        return ()
    return tuple(p for p in there if program.has_losses or p not in CLOSURE_PARTS)


def _line_by_line() -> None:
    """Flush the program's output line by line, so that the client logs it at once."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)


def save(model: Any, path: "str | os.PathLike[str]") -> None:
    """Write `model` as safetensors, for `model.file` of a server: what travels, as float32.

    Raises ModelError for a tensor that no server takes. The file takes the place of an older one in
    one step.
    """
    backend = backend_of(model)
    tensors = [(e.name, e.shape) for e in backend.entries()]
    check_names(tensors)
    places = _memory.packed(tensors)
    backend.fit(places)
    target = os.fspath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    try:
        block = _memory.create_file(temporary, places, {"format": "pt"})
        backend.store(block)
        _memory.flush_file(block)
        os.replace(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def load(model: Any, path: "str | os.PathLike[str]") -> Any:
    """Read a federation's model (save() or flctl export) into `model`, in place.

    Strict: all that travels of `model` has to be there with its shape, and nothing else. Tied tensors
    are read once; what does not travel (frozen parameters, counters) stays. Returns the model, for
    which a function may stand as in run().
    """
    backend = backend_of(model)
    block = _memory.open_file(os.fspath(path))
    try:
        backend.fit(block.places, "file")
    except ModelError as e:
        raise ModelError(f"{os.fspath(path)}: {e}") from e
    backend.load(block)
    return backend.model
