"""What changed since a held model (docs/algorithms.md#moves-as-bytes); lattice.json has test vectors."""
import math
import struct

MOVE_MAX, RICE_MAX, ALL_ONES = 1 << 25, 30, 255


def floats(data):
    return list(struct.unpack("<%df" % (len(data) // 4), data))


class Reader:
    def __init__(self, data):
        self.data, self.at, self.used = data, 0, 0  # `used` bits of the byte at `at` were read

    def take(self, n):
        if n > len(self.data) - self.at:
            raise ValueError("bytes are missing")
        self.at += n
        return self.data[self.at - n:self.at]

    def bits(self, n):
        value = 0
        for _ in range(n):
            if self.at == len(self.data):
                raise ValueError("bytes are missing")
            value = value << 1 | self.data[self.at] >> 7 - self.used & 1
            self.at, self.used = self.at + (self.used == 7), (self.used + 1) % 8
        return value

    def rice(self, low, end, name):
        value = 0
        while value << low < end and self.bits(1):
            value += 1
        value = value << low | (self.bits(low) if value << low < end else 0)
        if value >= end:
            raise ValueError("a %s is out of range" % name)
        return value

    def moves(self, n):
        """{position: multiples of 2^-20} of those of the n trained entries of a unit that moved."""
        moves = {}
        for _ in range(int.from_bytes(self.take(2), "little")):
            step, count, gaps, sizes = struct.unpack("<IIBB", self.take(10))
            if not 1 <= step <= MOVE_MAX:
                raise ValueError("the step is out of range")
            if not 1 <= count <= n or gaps > RICE_MAX or RICE_MAX < sizes < ALL_ONES:
                raise ValueError("a count or a Rice parameter is out of range")
            at = -1
            for _ in range(count):
                at += 1 + self.rice(gaps, n - at - 1, "position")
                signed = -step if self.bits(1) else step
                size = 1 if sizes == ALL_ONES else 1 + self.rice(sizes, MOVE_MAX, "move")
                moves[at] = moves.get(at, 0) + signed * size
                if abs(moves[at]) > MOVE_MAX:
                    raise ValueError("a move is out of range")
            if self.used and self.bits(8 - self.used):
                raise ValueError("a bit after the last move is not 0")
        return moves


def apply(units, held, difference, reader=Reader):
    """The bytes of the new model. `units`: of each a list of (entries, trained), one for each tensor."""
    if len(held) != 4 * sum(n for unit in units for n, _ in unit):
        raise ValueError("the held model has another number of entries")
    model, reader, at = floats(held), reader(difference), 0
    for unit in units:
        places = {True: [], False: []}  # where the model has the trained entries, and the others
        for n, trained in unit:
            places[trained] += range(at, at + n)
            at += n
        for position, move in reader.moves(len(places[True])).items():
            model[places[True][position]] += move / 2 ** 20
        for i, value in zip(places[False], floats(reader.take(4 * len(places[False])))):
            model[i] = value
        if not all(abs(model[i]) < (16 if trained else math.inf) for trained in places for i in places[trained]):
            raise ValueError("an entry leaves the range")
    if reader.at != len(difference):
        raise ValueError("bytes are left over")
    return struct.pack("<%df" % len(model), *model)
