"""Take part in a federation with a model and a training loop of your own.

    import fl_trainer

    def train(model, task):
        optimizer = task.optimizer()
        for x, y in task.loop(loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            task.count(loss, len(y))

    fl_trainer.run(model, train, samples=len(data))

`fl-clientd` starts the script (`trainer: command`) and hands it task after task; run by hand, it
trains without a client. docs/trainers.md is the full reference.
"""

from ._api import data_path, load, run, save
from ._memory import FormatError
from ._models import Adapter, ModelError
from ._parts import PartError
from ._sklearn import Sklearn
from ._task import Canceled, Diverged, Evaluation, Metric, Task, Trained
from ._wire import ProtocolError
from ._work import Client

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "Canceled",
    "Client",
    "Diverged",
    "Evaluation",
    "Metric",
    "FormatError",
    "ModelError",
    "PartError",
    "ProtocolError",
    "Sklearn",
    "Task",
    "Trained",
    "data_path",
    "load",
    "run",
    "save",
]
