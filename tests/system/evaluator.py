"""A program that evaluates dense ReLU networks, written from docs/trainers.md alone.

evaluator.py FOLDER [MARK]: the test part of FOLDER as NPY; with MARK it dies once, in its second evaluation.
"""
import json
import mmap
import os
import socket
import sys

import numpy as np

folder = sys.argv[1]
mark = sys.argv[2] if len(sys.argv) > 2 else None
x = np.load(os.path.join(folder, "test-x.npy")).astype(np.float32)
y = np.load(os.path.join(folder, "test-y.npy")).astype(np.int64)
x = x.reshape(len(x), -1)
line = socket.socket(fileno=int(os.environ["FL_TRAINER_SOCKET"]))


def receive(n):
    data = b""
    while len(data) < n:
        piece = line.recv(n - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def say(**message):
    text = json.dumps(message).encode()
    line.sendall(len(text).to_bytes(4, "little") + text)


def evaluate(model):
    at = model["weights"]["slots"]["model"]["data"]
    fd = int(os.environ["FL_TRAINER_WEIGHTS"])
    weights = mmap.mmap(fd, model["weights"]["bytes"], prot=mmap.PROT_READ)
    h = x
    for i, unit in enumerate(model["units"]):
        p = {}
        for t in unit["tensors"]:
            count = int(np.prod(t["shape"]))
            p[len(t["shape"])] = np.frombuffer(weights, "<f4", count, at + 4 * t["offset"]).reshape(t["shape"])
        h = (np.maximum(h, 0) if i else h) @ p[2].T + p[1]
    top = h.max(axis=1)
    loss = np.log(np.exp(h - top[:, None]).sum(axis=1)) + top - h[np.arange(len(y)), y]
    said = h.argmax(axis=1)
    f1, recall = [], []
    for c in range(h.shape[1]):
        both = ((said == c) & (y == c)).sum()
        if (said == c).any() or (y == c).any():
            f1.append(2 * both / ((said == c).sum() + (y == c).sum()))
        if (y == c).any():
            recall.append(both / (y == c).sum())
    metrics = {"macro_f1": float(np.mean(f1)), "worst_class": {"value": float(min(recall)), "samples": 1}}
    return {"samples": len(y), "correct": int((said == y).sum()), "loss_sum": float(loss.sum()), "metrics": metrics}


evaluations = 0
described = None
while True:
    message = json.loads(receive(int.from_bytes(receive(4), "little")))
    kind = message["type"]
    if kind == "start":
        say(type="ready", protocol=1, can=["evaluate"], parts=[], samples=0, test_samples=len(y), software="evaluator.py")
    elif kind == "model":
        described = message
        say(type="accepted")
    elif kind == "evaluate":
        evaluations += 1
        if mark and evaluations == 2 and not os.path.exists(mark):
            open(mark, "w").close()
            sys.exit("I have lost my notes")
        say(type="done", id=message["id"], received=evaluate(described))
    elif kind == "bye":
        sys.exit(0)
