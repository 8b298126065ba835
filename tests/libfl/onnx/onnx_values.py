"""Runs an ONNX model with numpy and compares its outputs: onnx_values.py MODEL VALUES classes|mse|mae

MODEL is read by its wire format alone, and run operator by operator as https://onnx.ai/onnx/operators/ describes them.
VALUES has doubles: the inputs [batch][inputs], then for each sample the logarithm of softmax of the outputs (classes),
or the losses of its one output with the targets 0 and 1. Exit status 0: equal to 1e-5; 77: there is no numpy here.
"""
import math
import struct
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)

TOLERANCE = 1e-5
BATCH = 4


def fields(data):
    """(number, value) of each field of a message; of a length-delimited one its bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << 64) if value >> 63 else value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 2:
            size = varint()
            assert size <= len(data) - at
            yield number, data[at : at + size]
            at += size
        elif kind == 5:
            yield number, struct.unpack_from("<f", data, at)[0]
            at += 4
        else:
            raise ValueError(f"wire type {kind}")


def packed(data):
    return [value for _, value in fields(b"".join(b"\x08" + one for one in split(data)))]


def split(data):
    """The varints of a packed field, each as its bytes."""
    start = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[start : i + 1]
            start = i + 1


def all_of(message, number):
    return [value for n, value in fields(message) if n == number]


def one_of(message, number, default=None):
    found = all_of(message, number)
    assert len(found) <= 1, (number, found)
    return found[0] if found else default


def ints_of(message, number):
    """A repeated integer, packed or not."""
    return [v for one in all_of(message, number) for v in ([one] if isinstance(one, int) else packed(one))]


def tensor(message):
    kind = {1: np.float32, 7: np.int64}[one_of(message, 2)]
    values = np.frombuffer(one_of(message, 9), dtype=np.dtype(kind).newbyteorder("<"))
    values = values.reshape(ints_of(message, 1))
    return one_of(message, 8).decode(), values.astype(np.float64) if kind is np.float32 else values


def attributes(node):
    result = {}
    for a in all_of(node, 5):
        kind = one_of(a, 20)
        result[one_of(a, 1).decode()] = {1: lambda: one_of(a, 2, 0.0), 2: lambda: one_of(a, 3, 0), 7: lambda: ints_of(a, 8)}[kind]()
    return result


def windows(x, a, fill):
    """[n, c, oh, ow, kh, kw] of a padded image."""
    (kh, kw), (sh, sw), (top, left, bottom, right) = a["kernel_shape"], a["strides"], a["pads"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(2, 3))[:, :, ::sh, ::sw]


def conv(x, w, b, a):
    groups, per = a["group"], w.shape[0] // a["group"]
    v = windows(x, a, 0.0)
    parts = [np.einsum("ncyxhw,kchw->nkyx", v[:, g * w.shape[1] : (g + 1) * w.shape[1]], w[g * per : (g + 1) * per])
             for g in range(groups)]
    return np.concatenate(parts, axis=1) + (0 if b is None else b.reshape(1, -1, 1, 1))


def normalise(x, axes, eps):
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + eps)


def channels(v, x):
    return v.reshape((1, -1) + (1,) * (x.ndim - 2))


def lrn(x, a):
    half, total = (a["size"] - 1) // 2, np.zeros_like(x)
    for d in range(-half, a["size"] - half):
        low, high = max(0, -d), min(x.shape[1], x.shape[1] - d)
        total[:, low:high] += x[:, low + d : high + d] ** 2
    return x / (a["bias"] + a["alpha"] / a["size"] * total) ** a["beta"]


def reshape(x, shape):
    return x.reshape([x.shape[i] if n == 0 else int(n) for i, n in enumerate(shape)])


def lstm(x, w, r, b, units):
    """Y[steps][1][batch][units] of the operator's equations, with gates in the order i, o, f, c."""
    steps, batch = x.shape[:2]
    h, c = np.zeros((batch, units)), np.zeros((batch, units))
    out = np.zeros((steps, 1, batch, units))

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    for t in range(steps):
        i, o, f, g = np.split(x[t] @ w[0].T + h @ r[0].T + b[0, : 4 * units] + b[0, 4 * units :], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out[t, 0] = h
    return out


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def run(op, v, a):
    return {
        "Gemm": lambda: v[0] @ (v[1].T if a["transB"] else v[1]) + v[2],
        "Conv": lambda: conv(v[0], v[1], v[2] if len(v) > 2 else None, a),
        "MaxPool": lambda: windows(v[0], a, -np.inf).max(axis=(4, 5)),
        "AveragePool": lambda: windows(v[0], a, np.nan).mean(axis=(4, 5)),
        "GlobalAveragePool": lambda: v[0].mean(axis=(2, 3), keepdims=True),
        "Flatten": lambda: v[0].reshape(v[0].shape[0], -1),
        "Reshape": lambda: reshape(v[0], v[1]),
        "Transpose": lambda: v[0].transpose(a["perm"]),
        "Identity": lambda: v[0],
        "BatchNormalization": lambda: (v[0] - channels(v[3], v[0])) / np.sqrt(channels(v[4], v[0]) + a["epsilon"])
        * channels(v[1], v[0]) + channels(v[2], v[0]),
        "InstanceNormalization": lambda: normalise(v[0], tuple(range(2, v[0].ndim)), a["epsilon"]) * channels(v[1], v[0])
        + channels(v[2], v[0]),
        "LayerNormalization": lambda: normalise(v[0], (a["axis"],), a["epsilon"]) * v[1] + v[2],
        "LRN": lambda: lrn(v[0], a),
        "Relu": lambda: np.maximum(v[0], 0),
        "Sigmoid": lambda: 1 / (1 + np.exp(-v[0])),
        "Tanh": lambda: np.tanh(v[0]),
        "Erf": lambda: np.vectorize(math.erf)(v[0]),
        "Add": lambda: v[0] + v[1],
        "Mul": lambda: v[0] * v[1],
        "MatMul": lambda: v[0] @ v[1],
        "Softmax": lambda: softmax(v[0], a["axis"]),
        "LSTM": lambda: lstm(*v, a["hidden_size"]),
        "Gather": lambda: np.take(v[0], v[1], axis=a["axis"]),
        "Cast": lambda: np.trunc(v[0]).astype({7: np.int64}[a["to"]]),
        "GreaterOrEqual": lambda: v[0] >= v[1],
        "Less": lambda: v[0] < v[1],
        "And": lambda: v[0] & v[1],
        "Where": lambda: np.where(*v),
    }[op]()


def main():
    with open(sys.argv[1], "rb") as file:
        model = file.read()
    values = np.fromfile(sys.argv[2], dtype=np.float64)
    assert one_of(model, 1) == 8 and one_of(one_of(model, 8), 2) == 17, "IR version 8, opset 17"
    graph = one_of(model, 7)
    port = one_of(graph, 11)
    dims = [one_of(d, 1, 0) for d in all_of(one_of(one_of(one_of(port, 2), 1), 2), 1)]
    inputs = math.prod(dims[1:])
    views = dict(tensor(t) for t in all_of(graph, 5))
    assert len(views) == len(all_of(graph, 5)), "names of tensors are unique"
    views[one_of(port, 1).decode()] = values[: BATCH * inputs].reshape([BATCH] + dims[1:])
    for node in all_of(graph, 1):
        output = one_of(node, 2).decode()
        assert output not in views, output
        views[output] = run(one_of(node, 4).decode(), [views[n.decode()] for n in all_of(node, 1)], attributes(node))
    port = one_of(graph, 12)
    name = one_of(port, 1).decode()
    assert name == ("logits" if sys.argv[3] == "classes" else "values"), name
    z = views[name]
    assert [one_of(d, 1, 0) for d in all_of(one_of(one_of(one_of(port, 2), 1), 2), 1)] == [0, z.shape[1]]
    want = values[BATCH * inputs :].reshape(BATCH, -1)
    if sys.argv[3] == "classes":
        top = z.max(axis=1, keepdims=True)
        have = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    else:
        have = np.concatenate([z, z - 1], axis=1)
        have = have ** 2 if sys.argv[3] == "mse" else np.abs(have)
    worst = (np.abs(have - want) / (1 + np.abs(want))).max()
    if not worst <= TOLERANCE:
        sys.exit(f"outputs differ by up to {worst}")


main()
