"""Test vectors of what changed in a hashed space (docs/algorithms.md#hashed-spaces), and docs/hashed.py by them.

docs/hashed.json holds them; `hashed_vectors.py --write` writes it, from the cases below: the numbers are coded by
dense_vectors.py, and the new model is computed from the documented hash, entry by entry.
tests/libfl/strategy/test_lattice_vectors.c reads the same file.
"""
import hashlib
import struct

import dense_vectors
import hashed
import vector_file
import vectors

PATH = vector_file.path_of(hashed)
GOLDEN, FULL = 0x9E3779B97F4A7C15, 1 << 64


def mixed(x):
    """The output function of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x // (1 << shift))) * factor % FULL
    return x ^ (x // (1 << 31))


def moved(step, seed, unit, entries, values):
    """By how much each entry moves, in 2^-20."""
    out = []
    for i in range(entries):
        if len(values) == entries:
            out.append(step * values[i])
            continue
        x = mixed((mixed((seed + (unit + 1) * (1 << 32)) % FULL) + (i + 1) * GOLDEN) % FULL)
        out.append(step * values[(x // (1 << 32)) * len(values) // (1 << 32)] * (-1 if x % 2 else 1))
    return out


def hashed_list(step, seed, values):
    return struct.pack("<III", (1 << 31) + step, seed, len(values)) + dense_vectors.encoded(values)


def row(name, units, lists, others=()):
    """`lists`: of each unit those of (step, seed, values), or moves of vectors.py."""
    held = vectors.drawn(sum(n for unit in units for n, _ in unit))
    new, difference, at = list(held), b"", 0
    for index, (unit, own) in enumerate(zip(units, lists)):
        kinds = [kind for n, kind in unit for _ in range(n)]
        trained = [at + i for i, kind in enumerate(kinds) if kind]
        rest = [at + i for i, kind in enumerate(kinds) if not kind]
        difference += struct.pack("<H", len(own))
        for one in own:
            if isinstance(one, dict):
                difference += vectors.coded(one)
                moves = [one.get(i, 0) for i in range(len(trained))]
            else:
                difference += hashed_list(*one)
                moves = moved(one[0], one[1], index, len(trained), one[2])
            for i, move in zip(trained, moves):
                new[i] += move / 2 ** 20
        for i in rest:
            new[i] = 0.5
        difference += struct.pack("<%df" % len(rest), *[0.5] * len(rest))
        at += len(kinds)
    data = struct.pack("<%df" % len(new), *new)
    return {"name": name, "units": units, "held": vectors.hexed(held), "difference": difference.hex(),
            "shortest": False, "new": data.hex(), "sha256": hashlib.sha256(data).hexdigest()}


def good():
    one, two = [[(40, True)]], [[(30, True), (4, True), (3, False)], [(12, True)]]
    numbers = dense_vectors.drawn(8, 2, 7)
    return [
        row("numbers of a unit", one, [[(30000, 77, numbers)]]),
        row("a number for all entries", one, [[(1, 0, [5])]]),
        row("the largest seed", one, [[(4096, (1 << 32) - 1, numbers)]]),
        row("as many numbers as entries", one, [[(4096, 9, dense_vectors.drawn(40, 1, 3))]]),
        row("one number less than entries", one, [[(4096, 9, dense_vectors.drawn(39, 1, 4))]]),
        row("two draws follow on each other", one, [[(30000, 77, numbers), (30000, 78, numbers[::-1])]]),
        row("a step that was halved", one, [[(30000, 77, numbers), (15000, 77, numbers[::-1])]]),
        row("a full space before and behind", one, [[{3: 4096, 39: -8192}, (30000, 77, numbers), {3: -4096}]]),
        row("two units, and entries that are not trained", two, [[(9000, 5, numbers)], [(2000, 5, numbers[:3])]]),
        row("numbers of the second unit alone", two, [[], [(2000, 5, numbers[:3])]]),
        row("numbers that are all 0", one, [[(2000, 5, [0] * 8)]]),
        row("plain numbers", one, [[(1, 5, [3000000, -3000001])]]),
    ]


def refused():
    units, numbers = [[(40, True)]], [1, 0, -2, 1]
    whole = struct.pack("<H", 1) + hashed_list(3000, 77, numbers)

    def changed(at, data):
        return whole[:at] + data + whole[at + len(data):]

    bound = "the step or the count of hashed numbers is out of range"
    return [{"name": name, "units": units, "held": vectors.hexed(vectors.drawn(40)), "difference": data.hex(),
             "reason": reason}
            for name, data, reason in [
                ("a step of 0", changed(2, struct.pack("<I", 1 << 31)), bound),
                ("a step above 2^25", changed(2, struct.pack("<I", (1 << 31) + (1 << 25) + 1)), bound),
                ("no number", changed(10, struct.pack("<I", 0)), bound),
                ("more numbers than entries", changed(10, struct.pack("<I", 41)), bound),
                ("half a head", whole[:9], "bytes are missing"),
                ("no numbers", whole[:14], "bytes are missing"),
                ("half of the numbers", whole[:-1], "bytes are missing"),
                ("a byte more", whole + b"\0", "bytes are left over"),
                ("a list that is missing", b"\2" + whole[1:], "bytes are missing"),
                ("a move beyond 2^25", struct.pack("<H", 1) + hashed_list(1 << 25, 77, [2]), "a move is out of range"),
                ("an entry that leaves the range", struct.pack("<H", 1) + hashed_list(17 << 20, 77, [1]),
                 "an entry leaves the range"),
                ("1025 lists", struct.pack("<H", 1025) + 1025 * hashed_list(1, 77, [0]),
                 "more than 1024 lists of hashed numbers"),
            ]]


def text():
    return vector_file.text(
        "What changed since a model in a hashed space, docs/algorithms.md#hashed-spaces; as lattice.json.", good(), refused())


class HashedVectors(vectors.Vectors):
    path, decoder = PATH, hashed

    def made(self):
        return text()

    def test_the_seed_of_a_draw_changes_with_it(self):
        self.assertEqual(hashed.seed_of(1, 1), hashed.seed_of(1, 1))
        self.assertNotEqual(hashed.seed_of(1, 1), hashed.seed_of(1, 0))


if __name__ == "__main__":
    vector_file.main(PATH, text())
