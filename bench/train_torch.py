"""PyTorch's steps of a network of libfl/nn, for bench/train --torch: INPUT BATCH MOMENTUM LAYER…

INPUT and the layers are written as in libfl/nn/net.h. Prints "torch VERSION", then for each line of its input, which is a
time in seconds, the samples per second of steps that took about as long. One thread.
"""
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)


def layer_of(words, shape):
    """The module and the shape behind it."""
    kind, args = words[0], words[1:]
    if kind == "dense":
        return torch.nn.Linear(shape[0], int(args[0])), (int(args[0]),)
    if kind == "conv":
        named = dict(zip(args[2::2], map(int, args[3::2])))
        pad, stride = named.get("pad", 0), named.get("stride", 1)
        kernel = tuple(map(int, args[1].split("x")))
        sides = tuple((s + 2 * pad - k) // stride + 1 for s, k in zip(shape[1:], kernel))
        return torch.nn.Conv2d(shape[0], int(args[0]), kernel, stride, pad), (int(args[0]), *sides)
    if kind == "maxpool" and "same" not in args:
        window = int(args[0])
        stride = int(args[2]) if "stride" in args else window
        return torch.nn.MaxPool2d(window, stride), (shape[0], *((s - window) // stride + 1 for s in shape[1:]))
    if kind == "bn":
        return torch.nn.BatchNorm2d(shape[0]), shape
    if kind == "dropout":
        return torch.nn.Dropout(float(args[0])), shape
    if kind == "relu":
        return torch.nn.ReLU(inplace=True), shape
    if kind == "flatten":
        return torch.nn.Flatten(), (torch.Size(shape).numel(),)
    sys.exit(f"train_torch.py: '{' '.join(words)}' has no counterpart here")


def network(shape, texts):
    modules = []
    for text in texts:
        module, shape = layer_of(text.split(), shape)
        modules.append(module)
    return torch.nn.Sequential(*modules), shape[0]


def main():
    shape = tuple(map(int, sys.argv[1].split(",")))
    batch, momentum = int(sys.argv[2]), float(sys.argv[3])
    net, classes = network(shape, sys.argv[4:])
    count = batch * (1 + 1000 // batch)
    x, y = torch.rand(count, *shape), torch.randint(0, classes, (count,))
    batches = list(zip(x.split(batch), y.split(batch)))
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=momentum)
    at = 0
    print("torch", torch.__version__, flush=True)
    for line in sys.stdin:
        seconds, samples = float(line), 0
        begin = time.perf_counter()
        while samples == 0 or time.perf_counter() - begin < seconds:
            some_x, some_y = batches[at]
            at = (at + 1) % len(batches)
            optimizer.zero_grad()
            loss_of(net(some_x), some_y).backward()
            optimizer.step()
            samples += batch
        print(samples / (time.perf_counter() - begin), flush=True)


main()
