"""Test vectors of whole numbers as bytes (docs/algorithms.md#whole-numbers-as-bytes), and docs/dense.py by them.

docs/dense.json holds them; `dense_vectors.py --write` writes it, from the cases below and the encoder here, which
computes with one long number instead of carries. tests/libfl/strategy/test_dense_vectors.c reads the same file.
"""
import random
import struct

import dense
import vector_file

PATH = vector_file.path_of(dense)
MOST = 1 << 25

# --- an encoder ------------------------------------------------------------------------------------


class Interval:
    """low and range in units of 256^-places."""

    def __init__(self, h):
        self.low, self.range, self.places, self.questions = 0, (1 << 32) - 1, 4, dense.Questions(h)

    def answer(self, yes, none=1 << 31):
        part = self.range * none >> 32
        if yes:
            self.low, self.range = self.low + part, self.range - part
        else:
            self.range = part
        while self.range < 1 << 24:
            self.low, self.range, self.places = self.low << 8, self.range << 8, self.places + 1

    def adaptive(self, i, yes):
        self.answer(yes, self.questions.none[i])
        self.questions.adapt(i, yes)

    def number(self, value):
        size = abs(value)
        self.adaptive(0, size > 0)
        if size == 0:
            return
        self.answer(value < 0)
        for k in range(1, min(size, 20) + 1):
            self.adaptive(min(k, 13), size > k)
        if size > 20:
            bits = bin(size - 20)[3:]
            for k in range(min(len(bits), 23) + 1):
                self.adaptive(14 + k, k < len(bits))
            for bit in bits:
                self.answer(bit == "1")

    def bytes(self):
        end = -(-self.low >> 24) << 24
        return end.to_bytes(self.places, "big").rstrip(b"\0")


def length_of(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + length_of(n >> 7)


def coded(values, h=None):
    interval = Interval(h or dense.initial(values))
    for value in values:
        interval.number(value)
    code = interval.bytes()
    return bytes([h or dense.initial(values)]) + length_of(len(code)) + code


def encoded(values):
    data = coded(values)
    return data if len(data) <= 1 + 4 * len(values) else b"\0" + struct.pack("<%di" % len(values), *values)


# --- lists of numbers ---------------------------------------------------------------------------------


def drawn(n, deviation, seed):
    source = random.Random(seed)
    return [round(sum(source.uniform(-1, 1) for _ in range(12)) / 2 * deviation) for _ in range(n)]


def good():
    return [
        ("no number", []),
        ("zeros", [0] * 9),
        ("a one", [1]),
        ("three numbers", [1, 0, -2]),
        ("each magnitude to 30", [k if k % 3 else -k for k in range(31)]),
        ("around the powers of two", [s * ((1 << k) + d) for k in range(5, 25) for d in (-1, 0, 1) for s in (1, -1)]),
        ("the largest magnitudes", [MOST, -MOST] + [0] * 20 + [MOST - 1]),
        ("the largest magnitude alone", [-MOST]),
        ("magnitudes without order", [(k * 2654435761) % (2 * MOST + 1) - MOST for k in range(12)]),
        ("300 ones: probabilities near their bound", [1] * 300),
        ("700 zeros and a number", [0] * 700 + [-3]),
        ("deviation 0.3", drawn(400, 0.3, 1)),
        ("deviation 2", drawn(300, 2, 2)),
        ("deviation 8: a length of two bytes", drawn(300, 8, 3)),
        ("deviation 60", drawn(200, 60, 4)),
    ]


# --- bytes that are refused -------------------------------------------------------------------------

MISSING, LENGTH, LONGER = "bytes are missing", "a length is out of range", "a code is longer than the numbers"
NUMBER, END = "a number is out of range", "a code is not what its numbers make it"
ZERO, INITIAL = "a code ends with a zero", "initial probabilities are not those of the numbers"


def too_large(size):
    """A code of a number above 2^25, and of 30 zeros, so that it is not longer than they are."""
    return coded([size] + [0] * 30)


def refused():
    three = coded([1, 0, -2])
    return [
        ("no byte at all", 3, b"", MISSING),
        ("no length", 3, b"\1", MISSING),
        ("half a length", 99, b"\1\x80", MISSING),
        ("half a code", 3, three[:-1], MISSING),
        ("a plain number without its end", 2, b"\0" + struct.pack("<2i", 7, -7)[:-1], MISSING),
        ("a length with a needless byte", 3, b"\1\x80\0", LENGTH),
        ("a length of six bytes", 3, b"\1\x80\x80\x80\x80\x80\1", LENGTH),
        ("a length of 2^32", 3, b"\1\x80\x80\x80\x80\x10", LENGTH),
        ("a code that is longer than plain numbers", 1, b"\1\4\1\2\3\4", LONGER),
        ("a byte more in the code", 3, three[:1] + bytes([three[1] + 1]) + three[2:] + b"\1", END),
        ("a code above the lowest in the range", 3, three[:2] + bytes([three[2] + 1]), END),
        ("the highest code", 3, b"\x80\6" + b"\xff" * 6, END),
        ("a code that ends with a zero", 3, three[:1] + bytes([three[1] + 1]) + three[2:] + b"\0", ZERO),
        ("zeros with a zero", 3, b"\1\1\0", ZERO),
        ("initial probabilities of other numbers", 3, coded([1, 0, -2], h=dense.initial([1, 0, -2]) + 1), INITIAL),
        ("zeros with h = 2", 3, b"\2\0", INITIAL),
        ("2^25 + 1", 31, too_large(MOST + 1), NUMBER),
        ("-2^25 - 20", 31, too_large(-MOST - 19), NUMBER),
        ("2^25 + 1, plain", 1, b"\0" + struct.pack("<i", MOST + 1), NUMBER),
        ("-2^31, plain", 1, b"\0" + struct.pack("<i", -1 << 31), NUMBER),
    ]


def text():
    return vector_file.text(
        "Whole numbers as bytes, docs/algorithms.md#whole-numbers-as-bytes. bytes: in hexadecimal; n: how many "
        "numbers a reader expects.",
        [{"name": name, "values": values, "bytes": encoded(values).hex()} for name, values in good()],
        [{"name": name, "n": n, "bytes": data.hex(), "reason": reason} for name, n, data, reason in refused()])


# --- the decoder of docs/ ---------------------------------------------------------------------------


class Vectors(vector_file.Vectors):
    path = PATH

    def made(self):
        return text()

    def test_each_good_one_gives_its_numbers_and_where_it_ends(self):
        for vector in self.vectors["good"]:
            data = bytes.fromhex(vector["bytes"])
            for behind in (b"", b"\0", b"\xff\xff"):
                with self.subTest(vector["name"], behind=behind):
                    self.assertEqual(dense.decode(data + behind, len(vector["values"])), (vector["values"], len(data)))

    def test_each_refused_one_raises_its_reason(self):
        for vector in self.vectors["refused"]:
            with self.subTest(vector["name"]), self.assertRaises(ValueError) as caught:
                dense.decode(bytes.fromhex(vector["bytes"]), vector["n"])
            self.assertEqual(str(caught.exception), vector["reason"], vector["name"])

    def test_no_shorter_bytes_are_taken(self):
        for vector in self.vectors["good"]:
            data = bytes.fromhex(vector["bytes"])
            for n in range(len(data)):
                with self.subTest(vector["name"], bytes=n), self.assertRaises(ValueError) as caught:
                    dense.decode(data[:n], len(vector["values"]))
                self.assertEqual(str(caught.exception), MISSING)


if __name__ == "__main__":
    vector_file.main(PATH, text())
