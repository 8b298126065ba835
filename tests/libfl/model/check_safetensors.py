"""Reads and writes safetensors with json, struct and numpy only: the other side of
test_safetensors.c. Exit status 0 means that all is as that test expects it."""
import json
import struct
import sys

import numpy


def read(path):
    data = open(path, "rb").read()
    (n,) = struct.unpack("<Q", data[:8])
    assert (8 + n) % 8 == 0, "data is not aligned"
    header = json.loads(data[8 : 8 + n])
    meta = header.pop("__metadata__")
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        assert t["dtype"] == "F32"
        raw = data[8 + n + begin : 8 + n + end]
        tensors[name] = numpy.frombuffer(raw, "<f4").reshape(t["shape"])
    assert sum(v.nbytes for v in tensors.values()) == len(data) - 8 - n
    return meta, tensors


def check(path):
    meta, tensors = read(path)
    assert list(tensors) == ["fc1.weight", "fc1.bias", "bn.running_mean", "bn.scale"], list(tensors)
    assert meta["round"] == '7 "quoted" \\ \n end', repr(meta["round"])
    assert meta["fl.layout"].startswith("unit fc1\nfc1.weight 3x4\n")
    flat = numpy.concatenate([v.ravel() for v in tensors.values()])
    assert tensors["fc1.weight"].shape == (3, 4)
    assert tensors["bn.scale"].shape == ()
    assert (flat == numpy.arange(flat.size, dtype="<f4") * 0.5 - 3).all(), flat


def write(path):
    """The same model as another program would write it: sorted names, four types."""
    counter = numpy.array(12, "<i8")
    half = numpy.array([0.5, -2.0, 6e-8], "<f2")
    brain = (numpy.array([1.0, -1.5, 3.0], "<f4").view("<u4") >> 16).astype("<u2")
    rows = [
        ("bn.num_batches_tracked", "I64", counter),
        ("bn.running_mean", "BF16", brain),
        ("fc1.bias", "F16", half),
        ("fc1.weight", "F64", numpy.arange(12, dtype="<f8").reshape(3, 4) / 4),
    ]
    header, offset = {}, 0
    for name, dtype, a in rows:
        header[name] = {
            "dtype": dtype,
            "shape": list(a.shape),
            "data_offsets": [offset, offset + a.nbytes],
        }
        offset += a.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, a in rows:
            f.write(a.tobytes())


{"check": check, "write": write}[sys.argv[1]](sys.argv[2])
