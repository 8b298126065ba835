"""Test vectors of what changed since a model (docs/algorithms.md#moves-as-bytes), and docs/lattice.py by them.

docs/lattice.json holds them; `vectors.py --write` writes it, from the cases below and the encoder here, which
shares no code with the product's. tests/libfl/strategy/test_lattice_vectors.c reads the same file.
"""
import hashlib
import math
import random
import struct

import lattice
import vector_file

PATH = vector_file.path_of(lattice)
ONES = 255
EDGE = 16 - 2.0 ** -20
STEP = 11 << 13  # 11/128, that of 784 inputs


# --- an encoder ------------------------------------------------------------------------------------


def rice(value, low):
    return "1" * (value >> low) + "0" + (format(value & (1 << low) - 1, "0%db" % low) if low else "")


def best(values):
    """The Rice parameter with which the values are shortest; of equals the smallest."""
    return min(range(31), key=lambda low: sum((v >> low) + 1 + low for v in values))


def packed(bits):
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def coded(moves, step=None, gaps=None, sizes=None):
    """A list of moves, {position: multiples of 2^-20}; a step and Rice parameters instead of the shortest bytes."""
    step = step or math.gcd(*moves.values())
    places = sorted(moves)
    steps = [b - a - 1 for a, b in zip([-1] + places, places)]
    lengths = [abs(moves[i]) // step - 1 for i in places]
    gaps = best(steps) if gaps is None else gaps
    if sizes is None:
        sizes = best(lengths) if any(lengths) else ONES
    bits = "".join(rice(gap, gaps) + "01"[moves[i] < 0] + ("" if sizes == ONES else rice(length, sizes))
                   for i, gap, length in zip(places, steps, lengths))
    return struct.pack("<IIBB", step, len(moves), gaps, sizes) + packed(bits)


def unit(*lists, others=(), **parameters):
    """The bytes of a unit: its lists of moves, or those that are coded already, and its other entries."""
    return struct.pack("<H", len(lists)) + b"".join(
        moves if isinstance(moves, bytes) else coded(moves, **parameters) for moves in lists) + struct.pack(
            "<%df" % len(others), *others)


def times(step, moves):
    return {position: step * move for position, move in moves.items()}


# --- models that differ -----------------------------------------------------------------------------


class Good:
    """`units`: of each a list of (entries, trained); `lists`: of each unit its lists of moves; `others`: of each its
    other entries."""

    def __init__(self, name, units, lists, others=None, held=None, **parameters):
        self.name, self.units, self.shortest = name, units, not parameters
        others = others or [()] * len(units)
        self.held = list(held or drawn(sum(count for tensors in units for count, _ in tensors)))
        self.difference = b"".join(unit(*each, others=rest, **parameters) for each, rest in zip(lists, others))
        # The new model entry by entry, from what the moves mean and not from their bytes.
        self.new, at = list(self.held), 0
        for tensors, each, values in zip(units, lists, others):
            kinds = [trained for count, trained in tensors for _ in range(count)]
            trained = [at + i for i, kind in enumerate(kinds) if kind]
            rest = [at + i for i, kind in enumerate(kinds) if not kind]
            for i, position in enumerate(trained):
                self.new[position] += sum(moves.get(i, 0) for moves in each) / 2 ** 20
            for position, value in zip(rest, values):
                self.new[position] = value
            at += len(kinds)

    def row(self):
        new = struct.pack("<%df" % len(self.new), *self.new)
        return {"name": self.name, "units": self.units, "held": hexed(self.held), "difference": self.difference.hex(),
                "shortest": self.shortest, "new": new.hex(), "sha256": hashlib.sha256(new).hexdigest()}


def hexed(values):
    return struct.pack("<%df" % len(values), *values).hex()


def drawn(n, seed=1):
    """Entries like first weights, multiples of 2^-20."""
    source = random.Random(seed)
    return [source.randrange(-1 << 17, 1 << 17) / 2 ** 20 for _ in range(n)]


def drawn_moves(n, count, most, seed):
    source = random.Random(seed)
    return {i: source.choice((-1, 1)) * source.randint(1, most) for i in source.sample(range(n), count)}


def plain(n):
    return [[(n, True)]]


def good():
    smallest, largest = 2.0 ** -149, (2 - 2.0 ** -23) * 2.0 ** 127
    several = [[(6, True), (2, True)], [(3, True)], [(4, True), (1, True)]]
    normed = [[(6, True), (2, True), (2, False), (2, False)], [(3, True)], [(1, False), (2, True), (1, False)]]
    return [
        Good("nothing moved", plain(5), [[]]),
        Good("all magnitudes are 1", plain(12), [[times(STEP, {0: 1, 3: -1, 4: 1, 11: -1})]]),
        Good("all entries moved", plain(9), [[{i: (-1) ** i * STEP for i in range(9)}]]),
        Good("the last bit fills a byte", plain(4), [[times(STEP, {0: 1, 1: 1, 2: -1, 3: -1})]]),
        Good("mixed magnitudes", plain(12), [[times(STEP, {0: 1, 1: -3, 5: 2, 7: -40, 11: 9})]]),
        Good("several units, one without moves", several,
             [[times(STEP, {7: -1})], [], [times(STEP, {0: 2, 4: -1})]]),
        Good("batch-norm statistics beside trained entries", normed,
             [[times(STEP, {0: 1, 7: -1})], [times(STEP, {2: 3})], [times(STEP, {1: -1})]],
             [(0.5, -0.25, 1.0, 2.0), (), (-0.0, 3.5)]),
        Good("statistics at the ends of binary32", [[(1, True), (4, False)]], [[]],
             [(smallest, -smallest, largest, -largest)]),
        Good("a unit of statistics alone", [[(2, False)], [(3, True)]], [[], [times(STEP, {1: 1})]], [(7.0, 8.0), ()]),
        Good("the largest gap", plain(300), [[times(STEP, {299: -1})]]),
        Good("the largest gap in one-bits", plain(300), [[times(STEP, {299: 1})]], gaps=0),
        Good("the largest Rice parameters", plain(20), [[times(STEP, {2: 5, 19: -1})]], gaps=30, sizes=30),
        Good("magnitudes of 1 with a Rice parameter", plain(8), [[times(STEP, {1: 1, 6: -1})]], sizes=0),
        Good("a step that is not the longest", plain(8), [[times(STEP, {1: 1, 6: -2})]], step=STEP // 2),
        Good("step 1: to the neighbours of an entry", plain(4), [[{1: 1, 2: -1}]]),
        Good("a step that was halved: moves of earlier rounds count twice", plain(8),
             [[times(STEP // 2, {0: 2, 3: -2, 4: 1, 7: 3})]]),
        Good("each list has its step", plain(8), [[times(9973, {0: 1, 3: -1}), times(7919, {3: -1, 7: 1})]]),
        Good("lists that cancel each other", plain(6), [[times(9973, {1: 1, 4: -1}), times(9973, {1: -1, 4: 1})]]),
        Good("of three units one has two lists", several,
             [[times(STEP, {2: 1})], [{0: 3}, {0: 5, 2: -5}], [times(STEP, {4: -1})]]),
        Good("to both edges of the range", plain(4), [[{0: (1 << 24) - 1, 3: 1 - (1 << 24)}]], held=[0.0] * 4),
        Good("from edge to edge in the longest step", plain(2), [[{0: 2 - (1 << 25), 1: (1 << 25) - 2}]],
             held=[EDGE, -EDGE]),
        Good("from edge to edge in steps of 2", plain(2), [[{0: 2 - (1 << 25), 1: 2}]], held=[EDGE, -EDGE]),
        Good("out of the range and back, in two lists", plain(2), [[{0: 1 << 25}, {0: -(1 << 25)}]]),
        Good("sixty of two hundred entries, drawn", [[(120, True), (30, True)], [(50, True)]],
             [[times(STEP, drawn_moves(150, 45, 3, 2))], [times(STEP, drawn_moves(50, 15, 1, 3))]]),
    ]


# --- bytes that are refused -------------------------------------------------------------------------

BAD_STEP, COUNT = "the step is out of range", "a count or a Rice parameter is out of range"
POSITION, MOVE = "a position is out of range", "a move is out of range"
BIT, MISSING, LEFT = "a bit after the last move is not 0", "bytes are missing", "bytes are left over"
RANGE = "an entry leaves the range"


def head(step, count, gaps, sizes, bits=""):
    return struct.pack("<IIBB", step, count, gaps, sizes) + packed(bits)


def refused():
    mixed = [[(3, True), (2, False)]]
    ones, sized = times(STEP, {0: 1, 2: -1}), times(STEP, {0: 1, 3: -7})
    most = 1 << 25
    last = unit(ones)[-1]
    return [
        ("step 0", plain(4), unit(head(0, 1, 0, ONES, "00")), BAD_STEP),
        ("a step above 2^25", plain(4), unit(head(most + 1, 1, 0, ONES, "00")), BAD_STEP),
        ("a list without moves", plain(4), unit(head(STEP, 0, 0, ONES)), COUNT),
        ("more moves than trained entries", mixed, unit(head(STEP, 4, 0, ONES, "0" * 8), others=(1.0, 1.0)), COUNT),
        ("a count of 2^32 - 1", plain(4), unit(head(STEP, (1 << 32) - 1, 0, ONES, "0" * 8)), COUNT),
        ("Rice parameter 31 of the gaps", plain(4), unit(ones, gaps=31), COUNT),
        ("Rice parameter 31 of the magnitudes", plain(4), unit(ones, sizes=31), COUNT),
        ("Rice parameter 254 of the magnitudes", plain(4), unit(head(STEP, 1, 0, 254, "00")), COUNT),
        ("a first position behind the last entry", plain(4), unit({4: 1}, gaps=0), POSITION),
        ("a position that is that of a statistic", mixed, unit({3: 1}, others=(1.0, 1.0), gaps=1), POSITION),
        ("a second position behind the last entry", plain(4), unit({3: 1, 4: 1}), POSITION),
        ("a position above 2^32", plain(4), unit({1 << 33: 1}, gaps=30), POSITION),
        ("one-bits without an end", plain(4), unit(head(STEP, 1, 0, ONES, "1" * 80)), POSITION),
        ("a move of more than 2^25", plain(4), unit({0: most + 1}, step=1, sizes=30), MOVE),
        ("more than 2^25 in long steps", plain(4), unit({0: 2 * most}, step=most), MOVE),
        ("a sum of moves above 2^25", plain(4), unit({1: most}, {1: 1}), MOVE),
        ("a sum of moves below -2^25", plain(4), unit({1: -1}, {1: -most}), MOVE),
        ("a magnitude in one-bits without an end", plain(4), unit(head(1, 1, 0, 30, "00" + "1" * 78)), MOVE),
        ("the last bit is 1", plain(4), unit(ones)[:-1] + bytes([last | 1]), BIT),
        ("the first bit after the last move is 1", plain(2), unit(head(STEP, 1, 0, ONES, "001")), BIT),
        ("no byte at all", plain(4), b"", MISSING),
        ("half a number of lists", plain(4), b"\0", MISSING),
        ("half the head of a list", plain(4), unit(ones)[:7], MISSING),
        ("moves without their end", plain(4), unit(sized, sizes=1)[:-1], MISSING),
        ("a list is missing", plain(4), struct.pack("<H", 2) + coded(ones), MISSING),
        ("a unit is missing", [[(4, True)], [(4, True)]], unit(ones), MISSING),
        ("half a statistic", mixed, unit(ones, others=(1.0, 1.0))[:-2], MISSING),
        ("a byte behind the last move", plain(4), unit(ones) + b"\0", LEFT),
        ("a list that is not counted", plain(4), struct.pack("<H", 1) + coded(ones) + coded(ones), LEFT),
        ("a unit too many", plain(4), unit(ones) + unit(ones), LEFT),
        ("an entry becomes 16", plain(4), unit({1: 1 << 24}), RANGE, [0.0] * 4),
        ("an entry becomes -16", plain(4), unit({3: -1}), RANGE, [0.0, 0.0, 0.0, -EDGE]),
        ("a move of 2^25", plain(4), unit({0: most}), RANGE),
        ("a statistic is infinite", mixed, unit(ones, others=(math.inf, 1.0)), RANGE),
        ("a statistic is not a number", mixed, unit(ones, others=(1.0, math.nan)), RANGE),
    ]


def refused_row(name, units, data, reason, held=None):
    n = sum(count for tensors in units for count, _ in tensors)
    return {"name": name, "units": units, "held": hexed(held or drawn(n)), "difference": data.hex(), "reason": reason}


def text():
    return vector_file.text(
        "What changed since a model, docs/algorithms.md#moves-as-bytes. units: for each unit a list of "
        "[entries, trained]; held, difference, new: bytes in hexadecimal; shortest: a server writes these lists of moves so.",
        [v.row() for v in good()], [refused_row(*v) for v in refused()])


# --- the decoder of docs/ ---------------------------------------------------------------------------


class Vectors(vector_file.Vectors):
    path, decoder = PATH, lattice

    def made(self):
        return text()

    def apply(self, vector, data=None):
        return self.decoder.apply(vector["units"], bytes.fromhex(vector["held"]),
                                  bytes.fromhex(vector["difference"]) if data is None else data)

    def test_each_difference_gives_the_new_model_bit_for_bit(self):
        for vector in self.vectors["good"]:
            with self.subTest(vector["name"]):
                new = self.apply(vector)
                self.assertEqual(new.hex(), vector["new"])
                self.assertEqual(hashlib.sha256(new).hexdigest(), vector["sha256"])

    def test_each_refused_one_raises_its_reason(self):
        for vector in self.vectors["refused"]:
            with self.subTest(vector["name"]), self.assertRaises(ValueError) as caught:
                self.apply(vector)
            self.assertEqual(str(caught.exception), vector["reason"], vector["name"])

    def test_no_shorter_bytes_are_taken_and_none_with_a_byte_more(self):
        for vector in self.vectors["good"]:
            data = bytes.fromhex(vector["difference"])
            for wrong in [data[:n] for n in range(len(data))] + [data + b"\0"]:
                with self.subTest(vector["name"], bytes=len(wrong)), self.assertRaises(ValueError):
                    self.apply(vector, wrong)

    def test_a_held_model_of_another_size_is_refused(self):
        vector = dict(self.vectors["good"][0])
        for held in ("", vector["held"] + "00000000", vector["held"][:-8], vector["held"][:-2]):
            with self.subTest(len(held)), self.assertRaises(ValueError):
                self.apply(dict(vector, held=held))


if __name__ == "__main__":
    vector_file.main(PATH, text())
