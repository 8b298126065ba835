"""Reads the project's own binary files (libfl/container/container.h); checksums are the business of `fl-data inspect`.

    container.py FILE       the bytes of its sections, on standard output
"""

import struct
import sys


def word(raw):
    return raw.rstrip(b"\0").decode()


def container(path, kind):
    """Fields, and a list of the sections."""
    with open(path, "rb") as f:
        raw = f.read()
    magic, found, version, n, _, n_fields = struct.unpack_from("<8s8sIIII", raw)
    assert magic == b"FL-FILE1" and kind in (None, word(found)) and version == 1, (path, magic, found, version)
    fields = 32 + 16 * n
    at = (fields + n_fields + 16 + 4095) // 4096 * 4096
    sections = []
    for i in range(n):
        (size,) = struct.unpack_from("<Q", raw, 32 + 16 * i + 8)
        sections.append(raw[at : at + size])
        at += size
    blocks = sum((len(s) + 16383) // 16384 for s in sections)
    assert len(raw) == at + 8 * (blocks + 1), (path, len(raw))
    return raw[fields : fields + n_fields], sections


if __name__ == "__main__":
    sys.stdout.buffer.write(b"".join(container(sys.argv[1], None)[1]))
