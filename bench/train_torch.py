"""PyTorch's steps of a network of libfl/nn, for bench/train --torch: INPUT BATCH MOMENTUM LAYER…

INPUT and the layers are written as in libfl/nn/net.h. Prints "torch VERSION", then for each line of its input, which is a
time in seconds, the samples per second of steps that took about as long. One thread. tests/libfl/nn/torch_values.py
compares values and gradients with the same networks.
"""
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)


class ChannelNorm(torch.nn.LayerNorm):
    """LayerNorm of the channels of each pixel."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Embedding(torch.nn.Embedding):
    """Indices to a sequence (batch, dim, positions, 1)."""

    def forward(self, x):
        words = x.trunc().long()
        words = torch.where((x >= 0) & (words < self.num_embeddings), words, torch.zeros_like(words))
        return super().forward(words).transpose(1, 2).unsqueeze(-1)


class Lstm(torch.nn.LSTM):
    """All hidden states of a sequence; the second bias stays zero."""

    def __init__(self, inputs, units):
        super().__init__(inputs, units, batch_first=True)
        torch.nn.init.zeros_(self.bias_hh_l0)
        self.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        y, _ = super().forward(x.flatten(2).transpose(1, 2))
        return y.transpose(1, 2).unsqueeze(-1)


class Attention(torch.nn.MultiheadAttention):
    """Self-attention over the positions of a sequence."""

    def __init__(self, channels, heads, causal):
        super().__init__(channels, heads, batch_first=True)
        self.causal = causal

    def forward(self, x):
        sequence = x.flatten(2).transpose(1, 2)
        steps = sequence.shape[1]
        mask = torch.ones(steps, steps, dtype=torch.bool).triu(1) if self.causal else None
        y, _ = super().forward(sequence, sequence, sequence, attn_mask=mask, need_weights=False)
        return y.transpose(1, 2).reshape(x.shape)


class Last(torch.nn.Module):
    def forward(self, x):
        return x.flatten(2)[:, :, -1]


def conv_of(args, shape):
    flags = [word for word in args[2:] if word == "nobias"]
    rest = [word for word in args[2:] if word != "nobias"]
    named = dict(zip(rest[::2], map(int, rest[1::2])))
    pad, stride = named.get("pad", 0), named.get("stride", 1)
    kernel = tuple(map(int, args[1].split("x")))
    sides = tuple((s + 2 * pad - k) // stride + 1 for s, k in zip(shape[1:], kernel))
    module = torch.nn.Conv2d(shape[0], int(args[0]), kernel, stride, pad, groups=named.get("groups", 1), bias=not flags)
    return module, (int(args[0]), *sides)


def pool_of(kind, args, shape):
    window = int(args[0])
    stride = int(args[2]) if "stride" in args else window
    pool = torch.nn.MaxPool2d if kind == "maxpool" else torch.nn.AvgPool2d
    return pool(window, stride), (shape[0], *((s - window) // stride + 1 for s in shape[1:]))


def layer_of(words, shape):
    """The module and the shape behind it."""
    kind, args = words[0], words[1:]
    same = {
        "dropout": lambda: torch.nn.Dropout(float(args[0])),
        "relu": lambda: torch.nn.ReLU(inplace=True),
        "sigmoid": lambda: torch.nn.Sigmoid(),
        "tanh": lambda: torch.nn.Tanh(),
        "gelu": lambda: torch.nn.GELU(),
        "bn": lambda: torch.nn.BatchNorm2d(shape[0]) if len(shape) == 3 else torch.nn.BatchNorm1d(shape[0]),
        "gn": lambda: torch.nn.GroupNorm(int(args[0]), shape[0]),
        "ln": lambda: ChannelNorm(shape[0]),
    }
    if kind in same:
        return same[kind](), shape
    if kind == "dense":
        return torch.nn.Linear(shape[0], int(args[0])), (int(args[0]),)
    if kind == "conv":
        return conv_of(args, shape)
    if kind in ("maxpool", "avgpool") and "same" not in args:
        return pool_of(kind, args, shape)
    if kind == "globalpool":
        return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()), (shape[0],)
    if kind == "embedding":
        return Embedding(int(args[0]), int(args[1])), (int(args[1]), shape[0], 1)
    if kind == "lstm":
        return Lstm(shape[0], int(args[0])), (int(args[0]), shape[1] * shape[2], 1)
    if kind == "attention":
        return Attention(shape[0], int(args[0]), "causal" in args), shape
    if kind == "last":
        return Last(), (shape[0],)
    if kind == "flatten":
        return torch.nn.Flatten(), (torch.Size(shape).numel(),)
    sys.exit(f"train_torch.py: '{' '.join(words)}' has no counterpart here")


class Network(torch.nn.Module):
    """The layers in their order; residual blocks keep what they need on a stack."""

    def __init__(self, shape, texts):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        self.kinds = []
        begins = []
        for text in texts:
            words = text.split()
            self.kinds.append(words[0])
            if words[0] in ("block", "shortcut", "add"):
                self.layers.append(torch.nn.Identity())
                if words[0] == "block":
                    begins.append(shape)
                elif words[0] == "shortcut":
                    shape = begins[-1]
                else:
                    begins.pop()
                continue
            module, shape = layer_of(words, shape)
            self.layers.append(module)
        self.classes = shape[0]

    def forward(self, x):
        blocks = []
        for kind, layer in zip(self.kinds, self.layers):
            if kind == "block":
                blocks.append([x, None])
            elif kind == "shortcut":
                blocks[-1][1], x = x, blocks[-1][0]
            elif kind == "add":
                begin, first = blocks.pop()
                x = x + (begin if first is None else first)
            else:
                x = layer(x)
        return x


def main():
    shape = tuple(map(int, sys.argv[1].split(",")))
    batch, momentum = int(sys.argv[2]), float(sys.argv[3])
    net = Network(shape, sys.argv[4:])
    count = batch * (1 + 1000 // batch)
    x, y = torch.rand(count, *shape), torch.randint(0, net.classes, (count,))
    batches = list(zip(x.split(batch), y.split(batch)))
    loss_of = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.001, momentum=momentum)
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


if __name__ == "__main__":
    main()
