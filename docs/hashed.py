"""What changed since a held model in a hashed space (docs/algorithms.md#hashed-spaces); hashed.json has test vectors."""
import struct

import dense
import lattice

MARK, MASK, LISTS = 1 << 31, (1 << 64) - 1, 1024


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def seed_of(seed, draw):
    """The seed of a draw, of which a Task has the number."""
    return mix(mix(seed + 1) + draw & MASK) >> 32


def numbers_of(seed, unit, entries, n):
    """Of each trained entry of a unit the index of its number, and its sign."""
    if n == entries:
        return [(i, 1) for i in range(n)]
    key = mix(seed + (unit + 1 << 32) & MASK)
    drawn = [mix(key + (i + 1) * 0x9E3779B97F4A7C15 & MASK) for i in range(entries)]
    return [((x >> 32) * n >> 32, -1 if x & 1 else 1) for x in drawn]


class Reader(lattice.Reader):
    unit = -1

    def one_list(self, n):
        """The moves of a list; whether it is about numbers."""
        if int.from_bytes(self.data[self.at:self.at + 4], "little") < MARK:
            plain = lattice.Reader(b"\1\0" + self.data[self.at:])
            moves = plain.moves(n)
            self.at += plain.at - 2
            return moves, False
        step, seed, count = struct.unpack("<III", self.take(12))
        if not 1 <= step - MARK <= lattice.MOVE_MAX or not 1 <= count <= n:
            raise ValueError("the step or the count of hashed numbers is out of range")
        values, used = dense.decode(self.data[self.at:], count)
        self.at += used
        places = numbers_of(seed, self.unit, n, count)
        return {i: sign * values[at] * (step - MARK) for i, (at, sign) in enumerate(places)}, True

    def moves(self, n):
        self.unit, moves, hashed = self.unit + 1, {}, 0
        for _ in range(int.from_bytes(self.take(2), "little")):
            more, is_hashed = self.one_list(n)
            hashed += is_hashed
            if hashed > LISTS:
                raise ValueError("more than %d lists of hashed numbers" % LISTS)
            for i, move in more.items():
                moves[i] = moves.get(i, 0) + move
                if abs(moves[i]) > lattice.MOVE_MAX:
                    raise ValueError("a move is out of range")
        return moves


def apply(units, held, difference):
    """The bytes of the new model, as lattice.apply()."""
    return lattice.apply(units, held, difference, Reader)
