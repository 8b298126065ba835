"""A small text model as a client: embedding and GRU tell which of four machines wrote a line of a log.

    python3 text_federated.py [SEED]     the lines are made up, other ones for each seed; FOLDER of the client's
                                         configuration (data.path) names a file of "label<TAB>line" instead
"""

import random
import sys

import fl_trainer
import torch
from torch import nn

LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789"
LENGTH = 32
MACHINES = (("pump", "bar", "valve"), ("oven", "celsius", "door"), ("press", "newton", "sheet"), ("belt", "metre", "motor"))


def made_up(seed, n):
    draw = random.Random(seed)
    for _ in range(n):
        label = draw.randrange(len(MACHINES))
        words = [draw.choice(MACHINES[label]), draw.choice(("ok", "low", "high", "stuck")), str(draw.randrange(100)),
                 draw.choice(("early", "late", "night"))]
        draw.shuffle(words)
        yield label, " ".join(words)


def tensors(pairs):
    y, x = zip(*((label, [LETTERS.find(c) + 1 for c in line.lower()[:LENGTH].ljust(LENGTH)]) for label, line in pairs))
    return torch.tensor(x), torch.tensor(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, 16)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.head = nn.Linear(32, len(MACHINES))

    def forward(self, x):
        h, _ = self.gru(self.embedding(x))
        return self.head(h.amax(1))  # of each feature, the place of the line where it is strongest


seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
path = fl_trainer.data_path()
if path:
    with open(path, encoding="utf-8") as f:
        pairs = [(int(label), line) for label, line in (row.rstrip("\n").split("\t", 1) for row in f)]
else:
    pairs = list(made_up(seed, 400))
x, y = tensors(pairs)
test_x, test_y = x[-80:], y[-80:]
x, y = x[:-80], y[:-80]


def train(model, task):
    optimizer = task.optimizer()
    for some in task.batches(samples=len(y)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[some]), y[some])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        task.count(loss, len(some))


def evaluate(model, task):
    scores = model(test_x)
    loss = nn.functional.cross_entropy(scores, test_y, reduction="sum")
    return len(test_y), int((scores.argmax(1) == test_y).sum()), float(loss)


torch.manual_seed(1)
torch.set_num_threads(1)


fl_trainer.run(Net(), train, evaluate, samples=len(y), test_samples=len(test_y))
