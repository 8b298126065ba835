"""The script of bench/sim-trainer: the network and the data of bench/sim_torch.py, for fl_trainer."""
import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402
import fl_trainer  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)
SAMPLES = int(os.environ.get("FL_BENCH_SAMPLES", "60"))
pool_x = torch.randn(4096, 784)
pool_y = torch.randint(0, 10, (4096,))
loss_of = torch.nn.CrossEntropyLoss()
mine = {}


def clients(client):
    if client.name is not None:
        mine["start"] = client.number * SAMPLES % (4096 - SAMPLES + 1)
    return 0 if client.name is None else SAMPLES, 0


def train(model, task):
    optimizer = task.optimizer()
    for some in task.batches():
        some = some + mine["start"]
        optimizer.zero_grad()
        loss = loss_of(model(pool_x[some]), pool_y[some])
        loss.backward()
        optimizer.step()
        task.count(loss.detach(), len(some))


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(784, 200), torch.nn.ReLU(),
        torch.nn.Linear(200, 200), torch.nn.ReLU(),
        torch.nn.Linear(200, 10))


if __name__ == "__main__":
    fl_trainer.run(model(), train, clients=clients)
