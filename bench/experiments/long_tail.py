#!/usr/bin/env python3
"""Makes the long-tailed MNIST of Karimireddy, He, Jaggi 2022, section 6: class c keeps the first 2^-c of its samples.

    bench/experiments/long_tail.py $FL_DATA_DIR/mnist $FL_DATA_DIR/long-tail     # IDX files; an experiment names the folder in data.set
"""
import gzip
import pathlib
import struct
import sys


def read(folder, name):
    """The header and the body of an IDX file, packed or not."""
    for path, opener in ((folder / name, open), (folder / (name + ".gz"), gzip.open)):
        if path.exists():
            with opener(path, "rb") as file:
                return file.read()
    sys.exit(f"{folder}: no {name}, packed or not")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        images = read(source, f"{part}-images-idx3-ubyte")
        labels = read(source, f"{part}-labels-idx1-ubyte")[8:]
        size = struct.unpack(">II", images[8:16])
        pixels = size[0] * size[1]
        left = [int(labels.count(c) * 0.5**c) for c in range(10)]
        kept = []
        for i, label in enumerate(labels):
            if left[label] > 0:
                left[label] -= 1
                kept.append(i)
        (target / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, len(kept), *size)
            + b"".join(images[16 + i * pixels : 16 + (i + 1) * pixels] for i in kept))
        (target / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, len(kept)) + bytes(labels[i] for i in kept))
        print(f"{part}: {len(kept)} samples")


if __name__ == "__main__":
    main()
