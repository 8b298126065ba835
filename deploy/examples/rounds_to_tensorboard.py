#!/usr/bin/env python3
"""Figures of rounds for TensorBoard.

    flctl rounds --last 0 --format jsonl | rounds_to_tensorboard.py runs/edge
    flctl rounds --last 0 --follow --format jsonl | rounds_to_tensorboard.py runs/edge
    tensorboard --logdir runs

Reads one JSON object per line and writes an event file into the folder: each figure is a scalar, its step is the round,
its time that of the commit. Needs neither tensorboard nor tensorflow: an event file is a sequence of records (length,
checksum, data, checksum), whose data is a protobuf message with a handful of fields. Each run writes a file of its own;
give a folder of its own to each federation.
"""
import json
import os
import struct
import sys
import time

# What places a round instead of measuring it.
PLACE = {"round", "attempt", "started_ms", "ended_ms", "generation", "abandoned_ms"}


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)  # CRC-32C, reflected
        table.append(n)
    return table


TABLE = crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def text(field, data):  # a field of bytes, a string or a message
    return varint(field << 3 | 2) + varint(len(data)) + data


def event(wall_time, step=0, version=b"", scalars=()):
    # Event: wall_time = 1, step = 2, file_version = 3, summary = 5; Summary: value = 1; Value: tag = 1, simple_value = 2
    out = b"\x09" + struct.pack("<d", wall_time)
    if step:
        out += b"\x10" + varint(step)
    if version:
        out += text(3, version)
    if scalars:
        out += text(5, b"".join(text(1, text(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in scalars))
    return out


def scalars_of(figures):
    for key, value in figures.items():
        if key not in PLACE and isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, value
    if figures["ended_ms"] > figures["started_ms"]:
        yield "seconds", (figures["ended_ms"] - figures["started_ms"]) / 1000


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: flctl rounds --format jsonl | rounds_to_tensorboard.py FOLDER")
    os.makedirs(sys.argv[1], exist_ok=True)
    path = os.path.join(sys.argv[1], "events.out.tfevents.%d.fl.%d" % (time.time(), os.getpid()))
    with open(path, "xb") as out:
        out.write(record(event(time.time(), version=b"brain.Event:2")))
        for line in sys.stdin:
            figures = json.loads(line)
            out.write(record(event(figures["ended_ms"] / 1000, figures["round"], scalars=list(scalars_of(figures)))))
            out.flush()  # TensorBoard reads while rounds are followed.


if __name__ == "__main__":
    main()
