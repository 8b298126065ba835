#!/usr/bin/python3
"""A trainer for `trainer: command` of fl-clientd: dense ReLU networks in plain numpy.

    trainer: command
    command:
      program: [/usr/bin/python3, /path/to/trainer_numpy.py, "{task}"]
    data:
      path: /path/to/the/data/of/this/client

fl-clientd calls it once a round with the path of task.json. It reads the received model, trains
it on this client's own data, and writes the trained model and result.json. What the files hold is
in docs/trainers.md. Anything printed to stderr before a non-zero exit code stands in the
client's log and reaches the server's.

Needs python3-numpy, nothing else.

The same with PyTorch
---------------------
The model arrives in PyTorch's own names and shapes ("fc1.weight" of [out, in]), so a script that
you have needs four more lines, marked (1) to (4) here and below:

    import json, sys
    from safetensors.torch import load_file, save_file

    task = json.load(open(sys.argv[1]))                                   # (1) the task
    net.load_state_dict(load_file(task["model"]))                         # (2) the received model
    opt = torch.optim.SGD(net.parameters(), lr=task["learning_rate"],     #     as the server asks
                          momentum=task["momentum"], weight_decay=task["weight_decay"])
    ... your loop over task["epochs"], or task["steps"] when that is 0 ...
    save_file(net.state_dict(), task["result_model"])                     # (3) the trained model
    json.dump({"samples": len(data), "steps": steps, "train_loss": loss},  # (4) what it says
              open(task["result"], "w"))

Make the optimiser anew each round: its momentum belongs to the model that was received. For the
solver "prox" add mu/2 * sum((p - p0)**2) to the loss, with p0 the received parameters.
"""

import gzip
import json
import os
import sys

import numpy as np


def load_safetensors(path):
    """name -> array. The format: 8 bytes header length, JSON header, then the numbers."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            sys.exit(f"{path}: tensor {name} is {entry['dtype']}, expected F32")
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy()
    return tensors


def save_safetensors(path, tensors):
    header, parts, at = {}, [], 0
    for name, array in tensors.items():
        part = np.ascontiguousarray(array, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # readers that map the file want aligned numbers
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(parts))


def read_idx(path):
    """One IDX file (MNIST's format), plain or packed: magic, big-endian sizes, bytes."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        raw = f.read()
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        sys.exit(f"{path}: not an IDX file of bytes")
    shape = np.frombuffer(raw, ">u4", raw[3], 4).astype(int)
    return np.frombuffer(raw, "u1", offset=4 + 4 * raw[3]).reshape(shape)


def load_data(folder, part):
    """(x, y) of "train" or "test" as NPY or IDX files; None when the folder has no such part."""
    idx = "t10k" if part == "test" else part
    pairs = [(f"{part}-x.npy", f"{part}-y.npy")]
    pairs += [(f"{idx}-images-idx3-ubyte{z}", f"{idx}-labels-idx1-ubyte{z}") for z in ("", ".gz")]
    for xs, ys in pairs:
        xs, ys = os.path.join(folder, xs), os.path.join(folder, ys)
        if os.path.exists(xs) and os.path.exists(ys):
            x, y = (np.load(xs), np.load(ys)) if xs.endswith(".npy") else (read_idx(xs), read_idx(ys))
            scale = 255.0 if x.dtype == np.uint8 else 1.0
            x = (x.reshape(len(x), -1) / scale).astype(np.float32)
            norm = os.path.join(folder, "norm.npy")  # of fl-data split --standardise
            if os.path.exists(norm):
                mean, std = (np.repeat(v, x.shape[1] // len(v)) for v in np.load(norm))
                x = (x - mean) / std
            return x, y.astype(np.int64)
    return None


class Net:
    """Dense layers with ReLU between them, as many as the model has units."""

    def __init__(self, task, tensors):
        self.layers = []
        for unit in task["units"]:
            names = {len(t["shape"]): t["name"] for t in unit["tensors"]}
            if sorted(names) != [1, 2]:
                sys.exit(f"unit {unit['name']}: this example knows dense layers only "
                         "(a matrix and a bias)")
            self.layers.append((names[2], names[1]))
        self.p = tensors

    def forward(self, x):
        """Inputs of every layer, and the class scores."""
        inputs = []
        for i, (w, b) in enumerate(self.layers):
            inputs.append(x)
            x = x @ self.p[w].T + self.p[b]
            if i + 1 < len(self.layers):
                x = np.maximum(x, 0)
        return inputs, x

    def loss(self, scores, y):
        """Softmax cross-entropy of each sample, and the probabilities."""
        z = scores - scores.max(axis=1, keepdims=True)
        e = np.exp(z)
        prob = e / e.sum(axis=1, keepdims=True)
        return np.log(e.sum(axis=1)) - z[np.arange(len(y)), y], prob

    def gradient(self, x, y):
        """Mean loss of a batch and its gradient, by name."""
        inputs, scores = self.forward(x)
        losses, delta = self.loss(scores, y)
        delta[np.arange(len(y)), y] -= 1
        delta /= len(y)
        grad = {}
        for i in range(len(self.layers) - 1, -1, -1):
            w, b = self.layers[i]
            grad[w], grad[b] = delta.T @ inputs[i], delta.sum(axis=0)
            delta = (delta @ self.p[w]) * (inputs[i] > 0)
        return float(losses.mean()), grad

    def evaluate(self, x, y):
        _, scores = self.forward(x)
        return {"samples": len(y), "correct": int((scores.argmax(axis=1) == y).sum()),
                "loss_sum": float(self.loss(scores, y)[0].sum())}


def batches(task, n):
    """Index arrays of all steps: whole epochs in fresh orders, or steps through one order.

    That order is the same in every round, and each round goes on where the one before ended."""
    size = task["batch_size"]
    rng = np.random.default_rng(task["seed"])
    for _ in range(task["epochs"]):
        order = rng.permutation(n)
        for at in range(0, n, size):
            yield order[at:at + size]
    if task["epochs"] == 0:
        order = np.random.default_rng(task["order_seed"]).permutation(n)
        first = (task["round"] - 1) * task["steps"]
        for step in range(first, first + task["steps"]):
            at = step % -(-n // size) * size
            yield order[at:at + size]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:  # (1)
        task = json.load(f)
    if task["version"] != 1:
        sys.exit(f"task version {task['version']}, this trainer knows 1")
    solver = task["solver"]
    if solver["name"] not in ("sgd", "prox"):
        sys.exit(f"this trainer knows the solvers sgd and prox, the server asks for {solver['name']}")
    mu = float(solver["options"]["mu"]) if solver["name"] == "prox" else 0.0
    if not task["data"]:
        sys.exit("no data folder: set data.path in the client's configuration")
    train, test = load_data(task["data"], "train"), load_data(task["data"], "test")
    if train is None:
        sys.exit(f"{task['data']}: no train-x.npy and train-y.npy, no train-images-idx3-ubyte")
    x, y = train

    net = Net(task, load_safetensors(task["model"]))  # (2)
    inputs = net.p[net.layers[0][0]].shape[1]
    if x.shape[1] != inputs:
        sys.exit(f"the model takes {inputs} inputs, a sample of {task['data']} has {x.shape[1]}")
    received = net.evaluate(*test) if test is not None else None

    anchor = {name: p.copy() for name, p in net.p.items()}
    velocity = {name: np.zeros_like(p) for name, p in net.p.items()}
    loss_sum, seen, steps = 0.0, 0, 0
    for index in batches(task, len(x)):
        loss, grad = net.gradient(x[index], y[index])
        for name, p in net.p.items():
            g = grad[name] + task["weight_decay"] * p + mu * (p - anchor[name])
            velocity[name] = task["momentum"] * velocity[name] + g
            p -= (task["learning_rate"] * velocity[name]).astype(np.float32)
        loss_sum, seen, steps = loss_sum + loss * len(index), seen + len(index), steps + 1

    save_safetensors(task["result_model"], net.p)  # (3)
    result = {"samples": len(x), "steps": steps, "train_loss": loss_sum / max(seen, 1)}
    if received is not None:
        result["received"] = received
    with open(task["result"], "w", encoding="utf-8") as f:  # (4)
        json.dump(result, f)


if __name__ == "__main__":
    main()
