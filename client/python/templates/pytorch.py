"""A client of a federation with a model in PyTorch: a small network on rows of numbers.

It runs as it is, on data that it draws; what is marked CHANGE is yours. docs/trainers.md has the rest.
"""
import zlib

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import fl_trainer

FEATURES, CLASSES, BATCH = 20, 3, 20  # CHANGE: of your data


def read_data(client):
    """A data set to train with, and one to test with."""
    if client.data is not None:  # CHANGE: data.path of the client's configuration, a folder with these files
        own, test = (torch.load(f"{client.data}/{part}.pt") for part in ("train", "test"))  # x and y each
        if client.train is not None:  # in fl-sim with `set`: the folder is that of all clients, these are the client's samples
            own, test = ([values[indices] for values in own] for indices in (client.train, client.test))
        return TensorDataset(*own), TensorDataset(*test)
    rule = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(1))  # the same for all clients
    x = torch.randn(600, FEATURES, generator=torch.Generator().manual_seed(zlib.crc32(str(client.name).encode())))
    y = (x @ rule).argmax(1)
    return TensorDataset(x[:500], y[:500]), TensorDataset(x[500:], y[500:])


def choose(client):
    """Become this client: once on a machine of its own, in fl-sim one client after the other."""
    global loader, test_data
    train_data, test_data = read_data(client)
    loader = DataLoader(train_data, batch_size=BATCH, shuffle=True)
    return len(train_data), len(test_data)


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
    fl_trainer.run(make_model(), train, evaluate, clients=choose)
