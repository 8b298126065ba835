"""The network and the data of tests/client/train/train_fixture.h as a client of PyTorch: a script as docs/trainers.md has it.

It reads data.path/train and data.path/test: float32 samples, then int32 labels.
"""

import os
import sys

import torch
from torch.nn.functional import cross_entropy

import fl_trainer

INPUTS, CLASSES = 12, 3


class Data(torch.utils.data.Dataset):
    def __init__(self, path):
        raw = open(path, "rb").read()
        n = len(raw) // (4 * (INPUTS + 1))
        self.x = torch.frombuffer(bytearray(raw[: 4 * n * INPUTS]), dtype=torch.float32).reshape(n, INPUTS)
        self.y = torch.frombuffer(bytearray(raw[4 * n * INPUTS :]), dtype=torch.int32).long()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(INPUTS, 16)
        self.fc2 = torch.nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


torch.set_num_threads(1)
where = fl_trainer.data_path()
train_data, test_data = Data(os.path.join(where, "train")), Data(os.path.join(where, "test"))


def train(model, task):
    optimizer = task.optimizer()
    for i in task.batches():
        x, y = train_data[i]
        optimizer.zero_grad()
        loss = task.loss(x, y)
        loss.backward()
        optimizer.step()
        task.count(loss, len(y))


def evaluate(model, task):
    out = model(test_data.x)
    loss = cross_entropy(out, test_data.y, reduction="sum")
    return len(out), (out.argmax(1) == test_data.y).sum(), loss


fl_trainer.run(
    Net(),
    train,
    evaluate,
    samples=len(train_data),
    test_samples=len(test_data),
    criterion=cross_entropy,
    examples=train_data,
    classes=CLASSES,
)
