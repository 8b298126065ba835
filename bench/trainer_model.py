"""The network, the data and the loop that bench/trainer trains, with a federation and without one."""
import os

# On a busy machine its threads would spin for each other most of the time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

BATCH = 10
RATE = 0.05
torch.set_num_threads(1)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(512, 10))


def data_of(client, samples):
    """Pictures with a bright bar at the place of their label: something to learn."""
    draw = torch.Generator().manual_seed(100 + client)
    y = torch.randint(0, 10, (samples,), generator=draw)
    x = torch.randn(samples, 1, 28, 28, generator=draw)
    for i, label in enumerate(y.tolist()):
        x[i, 0, 2 + 2 * label:5 + 2 * label] += 1.0
    return x, y


def train(model, optimizer, data, round_, client):
    """One epoch in an order that (round, client) alone decide; the mean loss."""
    x, y = data
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(1000 * round_ + client))
    total = 0.0
    model.train()
    for at in range(0, len(y), BATCH):
        some = order[at:at + BATCH]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[some]), y[some])
        loss.backward()
        optimizer.step()
        total += float(loss.detach()) * len(some)
    return total / len(y)


def evaluate(model, data):
    x, y = data
    model.eval()
    with torch.no_grad():
        scores = model(x)
    loss = torch.nn.functional.cross_entropy(scores, y, reduction="sum")
    return len(y), int((scores.argmax(1) == y).sum()), float(loss)
