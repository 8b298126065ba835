"""Federated averaging of 784-200-200-10 as a plain PyTorch loop, for bench/sim --against torch."""
import argparse
import os
import time

# On a busy machine its threads would spin for each other most of the time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

parser = argparse.ArgumentParser()
for name, default in (("clients", 100), ("samples", 60), ("batch", 10), ("rounds", 10), ("threads", 1)):
    parser.add_argument("--" + name, type=int, default=default)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(1)

net = torch.nn.Sequential(
    torch.nn.Linear(784, 200), torch.nn.ReLU(),
    torch.nn.Linear(200, 200), torch.nn.ReLU(),
    torch.nn.Linear(200, 10))
loss_of = torch.nn.CrossEntropyLoss()
pool_x = torch.randn(4096, 784)
pool_y = torch.randint(0, 10, (4096,))
model = {k: v.clone() for k, v in net.state_dict().items()}


def one_round():
    total = {k: torch.zeros_like(v) for k, v in model.items()}
    for client in range(args.clients):
        net.load_state_dict(model)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        start = client * args.samples % (4096 - args.samples + 1)
        order = start + torch.randperm(args.samples)
        for at in range(0, args.samples, args.batch):
            some = order[at:at + args.batch]
            optimizer.zero_grad()
            loss_of(net(pool_x[some]), pool_y[some]).backward()
            optimizer.step()
        for k, v in net.state_dict().items():
            total[k] += v
    return {k: v / args.clients for k, v in total.items()}


model = one_round()  # warms up
begin = time.monotonic()
for _ in range(args.rounds):
    model = one_round()
print("torch: version=%s threads=%d s=%.2f" %
      (torch.__version__, torch.get_num_threads(), time.monotonic() - begin))
