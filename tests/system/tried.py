"""A trainer in plain Python for test_try_trainer.sh: tried.py MODE, which says what it does wrong.

tried.py model FILE writes its model. Without numpy, and without fl_trainer: by docs/trainers.md alone.
"""
import array
import json
import mmap
import os
import select
import socket
import struct
import sys

SHAPES = {"fc.weight": [3, 2], "fc.bias": [3]}
COUNT = 9
mode = sys.argv[1]


def write_model(path):
    at, header = 0, {}
    for name, shape in SHAPES.items():
        n = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + array.array("f", [0.5 * i for i in range(COUNT)]).tobytes())


if mode == "model":
    write_model(sys.argv[2])
    sys.exit()
if mode == "prints":
    print("Epoch 1/10: loss 0.7")
    sys.exit()

sock = socket.socket(fileno=int(os.environ["FL_TRAINER_SOCKET"]))


def say(**message):
    text = json.dumps(message).encode()
    sock.sendall(struct.pack("<I", len(text)) + text)


def receive(n):
    data = b""
    while len(data) < n:
        piece = sock.recv(n - len(data))
        if not piece:
            sys.exit()
        data += piece
    return data


def hear():
    return json.loads(receive(struct.unpack("<I", receive(4))[0]))


def floats(memory, slot):
    return array.array("f", memory[slot["data"]:slot["data"] + 4 * COUNT])


def train(task):
    if task["epochs"] > 1:  # it waits to be canceled
        select.select([] if mode == "deaf" else [sock], [], [])
        return {"type": "canceled" if hear()["type"] == "cancel" else "failed"}
    if mode == "strict" and set(task) - KNOWN:
        return {"type": "failed", "error": f"unknown field {sorted(set(task) - KNOWN)[0]}"}
    if mode == "exits":
        sys.exit("no space left on device")
    slots = model["weights"]["slots"]
    x = floats(weights, slots["model"])
    gradient = floats(weights, slots["gradient"]) if "gradient" in task["do"] and mode != "idle_part" else [0.0] * COUNT
    if mode == "bad_part" and "gradient" in task["do"]:
        gradient = [1.0] * COUNT
    changed = array.array("f", [v - task["learning_rate"] * (v + g) for v, g in zip(x, gradient)])
    if mode == "frozen":
        changed[COUNT - 3:] = x[COUNT - 3:]
    if mode == "nan":
        changed[COUNT - 1] = float("nan")
    if mode == "random":
        changed[0] = struct.unpack("<I", os.urandom(4))[0]
    at = model["result"]["slots"]["model"]["data"]
    result[at:at + 4 * COUNT] = changed.tobytes()
    return {"type": "done", "samples": 10, "steps": 1, "train_loss": 0.5}


KNOWN = {"type", "id", "round", "attempt", "seed", "order_seed", "learning_rate", "momentum", "weight_decay", "epochs",
         "steps", "batch_size", "time_limit_ms", "evaluate_trained", "given", "do"}
start = hear()
if mode == "silent":
    select.select([], [], [])
say(type="ready", protocol=1, can=["train", "evaluate"], parts=["gradient"], samples=10, test_samples=4,
    software=f"tried {start['purpose']}")
print("this is no answer", flush=True)
while True:
    message = hear()
    kind = message["type"]
    if kind == "bye":
        if mode == "stays":
            select.select([], [], [])
        os._exit(3 if mode == "code" else 0)
    elif kind == "model":
        shapes = {t["name"]: t["shape"] for u in message["units"] for t in u["tensors"]}
        if shapes != SHAPES and mode != "any_model":
            say(type="failed", error=f"the shapes are {SHAPES}, found {shapes}")
            continue
        model = message
        weights = mmap.mmap(int(os.environ["FL_TRAINER_WEIGHTS"]), model["weights"]["bytes"],
                            prot=mmap.PROT_READ | (mmap.PROT_WRITE if mode == "writes" else 0))
        result = mmap.mmap(int(os.environ["FL_TRAINER_RESULT"]), model["result"]["bytes"])
        say(type="accepted")
    elif kind == "evaluate":
        say(type="done", id=message["id"],
            received={"samples": 5 if mode == "samples" else 4, "correct": 3, "loss_sum": 1.5})
    else:
        say(id=message["id"] + (mode == "wrong_id"), **train(message))
