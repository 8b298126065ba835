"""A table as a client, in plain numpy: logistic regression on measurements with a rule behind them.

    python3 tabular_federated.py [SEED]     rows are made up, other ones for each seed; data.path of the client's
                                            configuration names a CSV of numbers instead, the label 0 or 1 in the last column
"""

import sys

import fl_trainer
import numpy as np

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
path = fl_trainer.data_path()
if path:
    table = np.loadtxt(path, delimiter=",")
    x, y = table[:, :-1], table[:, -1]
else:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(300, 8))
    y = (x @ np.arange(-3, 5) + draw.normal(size=300) > 0).astype(float)
x, test_x, y, test_y = x[:-60], x[-60:], y[:-60], y[-60:]
model = {"linear.weight": np.zeros((1, x.shape[1]), "float32"), "linear.bias": np.zeros(1, "float32")}


def scores_of(model, x):
    return x @ model["linear.weight"][0] + model["linear.bias"][0]


def losses(scores, y):
    return np.logaddexp(0, scores) - y * scores


def train(model, task):
    optimizer = task.optimizer()
    for some in task.batches(samples=len(y)):
        scores = scores_of(model, x[some])
        away = (1 / (1 + np.exp(-scores)) - y[some]) / len(some)
        optimizer.step({"linear.weight": (away @ x[some])[None, :], "linear.bias": away.sum(keepdims=True)})
        task.count(losses(scores, y[some]).mean(), len(some))


def evaluate(model, task):
    scores = scores_of(model, test_x)
    return len(test_y), int(((scores > 0) == (test_y > 0.5)).sum()), float(losses(scores, test_y).sum())


fl_trainer.run(model, train, evaluate, samples=len(y), test_samples=len(test_y))
