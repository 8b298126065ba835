"""An image script as there are many: a small CNN on digits, trained on this machine's folder of pictures.

    python3 image.py FOLDER        train-x.npy, train-y.npy, test-x.npy, test-y.npy, as `fl-data split` writes them
"""

import sys

import fl_trainer
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 3
device = "cuda" if torch.cuda.is_available() else "cpu"


def load(folder, part):
    x = np.load(f"{folder}/{part}-x.npy").astype("float32")
    side = int((x.size // len(x)) ** 0.5)
    y = np.load(f"{folder}/{part}-y.npy").astype("int64")
    return TensorDataset(torch.from_numpy(x).reshape(-1, 1, side, side), torch.from_numpy(y))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.conv2(nn.functional.max_pool2d(x, 2)))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))


def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def evaluate(model, loader):
    model.eval()
    correct, loss_sum = 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            scores = model(x.to(device)).cpu()
            correct += (scores.argmax(1) == y).sum().item()
            loss_sum += nn.functional.cross_entropy(scores, y, reduction="sum").item()
    return len(loader.dataset), correct, loss_sum


torch.manual_seed(1)
folder = sys.argv[1]
train_data, test_data = load(folder, "train"), load(folder, "test")
train_loader = DataLoader(train_data, batch_size=16, shuffle=True)
test_loader = DataLoader(test_data, batch_size=256)
model = Net().to(device)
criterion = nn.CrossEntropyLoss()


def one_round(model, task):
    return train(model, task.loop(train_loader), task.optimizer(), criterion)


fl_trainer.run(model, one_round, lambda model, task: evaluate(model, test_loader),
               samples=len(train_data), test_samples=len(test_data))
