"""A client of a federation with a model in numpy: softmax regression on rows of numbers.

It runs as it is, on data that it draws; what is marked CHANGE is yours. docs/trainers.md has the rest.
"""
import zlib

import numpy as np

import fl_trainer

FEATURES, CLASSES = 20, 3  # CHANGE: of your data


def read_data(client):
    """x [samples][FEATURES] and y [samples], labels from 0 on: to train with, and to test with."""
    if client.data is not None:  # CHANGE: data.path of the client's configuration, a folder with these files
        x, y, test_x, test_y = (np.load(f"{client.data}/{name}.npy") for name in ("train-x", "train-y", "test-x", "test-y"))
        if client.train is not None:  # in fl-sim with `set`: the folder is that of all clients, these are the client's samples
            return (x[client.train], y[client.train]), (x[client.test], y[client.test])
        return (x, y), (test_x, test_y)
    rule = np.random.default_rng(1).normal(size=(FEATURES, CLASSES))  # the same for all clients
    x = np.random.default_rng(zlib.crc32(str(client.name).encode())).normal(size=(600, FEATURES)).astype("float32")
    y = (x @ rule).argmax(1)
    return (x[:500], y[:500]), (x[500:], y[500:])


def choose(client):
    """Become this client: once on a machine of its own, in fl-sim one client after the other."""
    global train_data, test_data
    train_data, test_data = read_data(client)
    return len(train_data[1]), len(test_data[1])


def make_model():
    """What every client and the server begin with: names and shapes are the federation's."""
    return {"out.weight": np.zeros((FEATURES, CLASSES), "float32"), "out.bias": np.zeros(CLASSES, "float32")}


def probabilities(model, x):
    z = x @ model["out.weight"] + model["out.bias"]
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def train(model, task):
    """Train the model that is handed in, in place, for so long as the server says."""
    x, y = train_data
    optimizer = task.optimizer()
    for i in task.batches(samples=len(y)):
        p = probabilities(model, x[i])
        task.count(-np.log(p[np.arange(len(i)), y[i]] + 1e-9).mean(), len(i))
        p[np.arange(len(i)), y[i]] -= 1  # now the gradient of the loss by z
        optimizer.step({"out.weight": x[i].T @ p / len(i), "out.bias": p.mean(0)})


def evaluate(model, task):
    """Samples, how many are right, and the sum of their losses, on local test data."""
    x, y = test_data
    p = probabilities(model, x)
    return len(y), int((p.argmax(1) == y).sum()), float(-np.log(p[np.arange(len(y)), y] + 1e-9).sum())


if __name__ == "__main__":
    fl_trainer.run(make_model(), train, evaluate, clients=choose)
