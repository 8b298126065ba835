"""A client of a federation with a model in PyTorch: a small network on rows of numbers.

It runs as it is, on data that it draws; what is marked CHANGE is yours. docs/trainers.md has the rest.
"""
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import fl_trainer

FEATURES, CLASSES, BATCH = 20, 3, 20  # CHANGE: of your data


def read_data(path):
    """A data set to train with, and one to test with."""
    if path is not None:  # CHANGE: data.path of the client's configuration, a folder with these files
        return tuple(TensorDataset(*torch.load(f"{path}/{part}.pt")) for part in ("train", "test"))
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(600, FEATURES, generator=draw)
    y = (x @ torch.randn(FEATURES, CLASSES, generator=draw)).argmax(1)
    return TensorDataset(x[:500], y[:500]), TensorDataset(x[500:], y[500:])


def make_model():
    """What every client and the server begin with. CHANGE: your network, .to("cuda") where it is."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def train(model, task):
    """Train the model that is handed in, in place, for so long as the server says."""
    optimizer = task.optimizer()  # torch.optim.SGD; task.watch(your own) for another
    for x, y in task.loop(loader):
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        task.count(loss, len(y))


def evaluate(model, task):
    """Samples, how many are right, and the sum of their losses, on local test data."""
    x, y = test_data.tensors
    out = model(x)
    return len(y), int((out.argmax(1) == y).sum()), float(cross_entropy(out, y, reduction="sum"))


if __name__ == "__main__":
    train_data, test_data = read_data(fl_trainer.data_path())
    loader = DataLoader(train_data, batch_size=BATCH, shuffle=True)
    fl_trainer.run(make_model(), train, evaluate, samples=len(train_data), test_samples=len(test_data))
