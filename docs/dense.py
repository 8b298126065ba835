"""Whole numbers without positions (docs/algorithms.md#whole-numbers-as-bytes); dense.json has test vectors."""
MOST, UNARY, SINGLE, LENGTHS = 1 << 25, 20, 12, 24
EVEN, ALL, TOP = 1 << 31, (1 << 32) - 1, 1 << 24


def initial(values):
    """The h that a list is coded with."""
    n, some = len(values), sum(v != 0 for v in values)
    a = 2 * sum(min(abs(v), UNARY + 1) for v in values) - some
    return max([1] + [h for h in range(256) if (a + n + some) * h * h + 256 * (n - some) * h <= 65536 * a])


class Questions:
    """Probabilities of the answer no in 2^-32, and weights, by question."""

    def __init__(self, h):
        above = (65536 - h * h) << 16
        self.none = [(256 - h) << 24] + [above] * (SINGLE + 1) + [EVEN] * LENGTHS
        self.weight = [16] * len(self.none)

    def adapt(self, i, yes):
        weight = self.weight[i]
        self.none[i] += -(self.none[i] // weight) if yes else (ALL - self.none[i]) // weight
        self.weight[i] = min(weight + 1, 512)


class Code:
    """An arithmetic code that zeros follow."""

    def __init__(self, data, h):
        self.data, self.at, self.range, self.questions = data, 4, ALL, Questions(h)
        self.code = int.from_bytes((data + bytes(4))[:4], "big")

    def answer(self, none=EVEN):
        part = self.range * none >> 32
        yes = self.code >= part
        self.code, self.range = (self.code - part, self.range - part) if yes else (self.code, part)
        while self.range < TOP:
            self.code = (self.code << 8 | (self.data[self.at] if self.at < len(self.data) else 0)) & ALL
            self.range, self.at = self.range << 8, self.at + 1
        return yes

    def adaptive(self, i):
        yes = self.answer(self.questions.none[i])
        self.questions.adapt(i, yes)
        return yes

    def number(self):
        if not self.adaptive(0):
            return 0
        sign, size, length, rest = -1 if self.answer() else 1, 1, 0, 1
        while size <= UNARY and self.adaptive(min(size, SINGLE + 1)):
            size += 1
        if size > UNARY:
            while length < LENGTHS and self.adaptive(SINGLE + 2 + length):
                length += 1
            for _ in range(length):
                rest = rest << 1 | self.answer()
            size = UNARY + rest
        return sign * size


def decode(data, n):
    """n numbers from the front of `data`, and the number of bytes that they take."""
    if not data:
        raise ValueError("bytes are missing")
    if data[0] == 0:
        if len(data) < 1 + 4 * n:
            raise ValueError("bytes are missing")
        values = [int.from_bytes(data[i:i + 4], "little", signed=True) for i in range(1, 1 + 4 * n, 4)]
        at = end = 1 + 4 * n
    else:
        length, at = 0, 1
        while at == 1 or data[at - 1] > 127:
            if at == 6:
                raise ValueError("a length is out of range")
            if at == len(data):
                raise ValueError("bytes are missing")
            length |= (data[at] & 127) << 7 * (at - 1)
            at += 1
        if length > ALL or (at > 2 and data[at - 1] == 0):
            raise ValueError("a length is out of range")
        end = at + length
        if end > len(data):
            raise ValueError("bytes are missing")
        if end > 1 + 4 * n:
            raise ValueError("a code is longer than the numbers")
        code = Code(data[at:end], data[0])
        values = []
        for _ in range(n):
            values.append(code.number())
            if abs(values[-1]) > MOST:
                break
    if any(abs(v) > MOST for v in values):
        raise ValueError("a number is out of range")
    if data[0] != 0:
        if length > 0 and data[end - 1] == 0:
            raise ValueError("a code ends with a zero")
        if length > code.at - 3 or code.code >= TOP:
            raise ValueError("a code is not what its numbers make it")
        if initial(values) != data[0]:
            raise ValueError("initial probabilities are not those of the numbers")
    return values, end
