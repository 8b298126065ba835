"""Models as one block of float32, in shared memory or in a safetensors file."""

from __future__ import annotations

import json
import math
import mmap
import os
import sys
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

Shape = Tuple[int, ...]

#: What fl-serverd takes of a header (libfl/model/safetensors.h).
MAX_HEADER = 16 << 20


class FormatError(Exception):
    """An invalid file or description; the message says what is wrong and where."""


class Place(NamedTuple):
    """Position of a tensor: offset in float32 from the start of the block, and its shape."""

    offset: int
    shape: Shape


class Block:
    """A model's numbers: memory of float32 with a table of names.

    `memory` is anything with the buffer protocol (an mmap, a bytearray), which the block keeps;
    `data` is the byte where the numbers begin.
    """

    def __init__(self, memory: Any, data: int, places: Dict[str, Place]) -> None:
        self.memory = memory
        self.data = data
        self.places = places
        self._cache: Dict[str, Any] = {}
        count = max((p.offset + math.prod(p.shape) for p in places.values()), default=0)
        view = memoryview(memory)
        if data % 4 != 0 or data + 4 * count > view.nbytes:
            raise FormatError(
                f"the numbers take {4 * count} bytes from byte {data} on, there are {view.nbytes}"
            )
        #: All numbers, flat. Read-only where the memory is.
        self.floats = view.cast("B")[data : data + 4 * count].cast("f")

    def view(self, name: str) -> memoryview:
        """The tensor as a memoryview of float32 with its shape, without a copy."""
        offset, shape = self.places[name]
        flat = self.floats[offset : offset + math.prod(shape)]
        return flat.cast("B").cast("f", shape)

    def native(self, kind: str, make: Any) -> Any:
        """The result of `make(self)` for the whole block (an array of a library), cached."""
        if kind not in self._cache:
            self._cache[kind] = make(self)
        return self._cache[kind]


def places_of(tensors: Iterable[Dict[str, Any]]) -> Dict[str, Place]:
    """Table from the `tensors` of all units, as in the protocol's `model`."""
    return {t["name"]: Place(int(t["offset"]), tuple(t["shape"])) for t in tensors}


def packed(tensors: Iterable[Tuple[str, Shape]]) -> Dict[str, Place]:
    """Table of contiguous tensors in this order."""
    places, at = {}, 0
    for name, shape in tensors:
        places[name] = Place(at, tuple(shape))
        at += math.prod(shape)
    return places


def header(places: Dict[str, Place], metadata: Optional[Dict[str, str]] = None) -> bytes:
    """Length and header of a safetensors file, padded to a multiple of 8 as readers require."""
    entries: Dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    for name, (offset, shape) in places.items():
        end = offset + math.prod(shape)
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [4 * offset, 4 * end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def create_file(path: str, places: Dict[str, Place], metadata: Dict[str, str]) -> Block:
    """A safetensors file of zeros, to be written through the block. flush_file() ends it."""
    _need_little_endian()
    head = header(places, metadata)
    count = sum(math.prod(p.shape) for p in places.values())
    with open(path, "w+b") as f:
        f.write(head)
        f.truncate(len(head) + 4 * count)
        f.flush()
        memory = mmap.mmap(f.fileno(), 0)
    return Block(memory, len(head), places)


def flush_file(block: Block) -> None:
    block.memory.flush()


def open_file(path: str) -> Block:
    """A safetensors file of float32, mapped to be read. Raises FormatError, OSError."""
    _need_little_endian()
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        size = os.fstat(f.fileno()).st_size
        if size < 8 or not 2 <= length <= min(size - 8, MAX_HEADER):
            raise FormatError(f"{path}: no safetensors file: the header claims {length} bytes")
        try:
            entries = json.loads(f.read(length))
            places = _places_in(entries)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise FormatError(f"{path}: the header cannot be read: {e}") from e
        memory = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return Block(memory, 8 + length, places)
    except FormatError as e:
        raise FormatError(f"{path}: {e}") from e


def _places_in(entries: Dict[str, Any]) -> Dict[str, Place]:
    places = {}
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        if entry["dtype"] != "F32" or begin % 4 or end - begin != 4 * math.prod(shape):
            raise ValueError(f"tensor '{name}' is {entry['dtype']}, expected F32 of its shape")
        places[name] = Place(begin // 4, shape)
    return places


def map_descriptor(fd: int, size: int, write: bool) -> mmap.mmap:
    """`size` bytes of shared memory."""
    _need_little_endian()
    access = mmap.ACCESS_WRITE if write else mmap.ACCESS_READ
    return mmap.mmap(fd, size, access=access)


def shape_text(shape: Sequence[int]) -> str:
    return "x".join(str(d) for d in shape) if len(shape) else "a single number"


def first_difference(
    have: List[Tuple[str, Shape]], want: Dict[str, Shape], theirs: str = "server"
) -> Optional[str]:
    """The first difference between the program's tensors `have` and the required `want`, or None."""
    mine = dict(have)
    for name, shape in want.items():
        if name not in mine:
            return f"tensor '{name}' ({shape_text(shape)}) of the {theirs}'s model is not in the program's"
        if tuple(mine[name]) != tuple(shape):
            return (
                f"tensor '{name}' is {shape_text(mine[name])} in the program, "
                f"{shape_text(shape)} {'on the server' if theirs == 'server' else f'in the {theirs}'}"
            )
    for name, shape in have:
        if name not in want:
            return f"tensor '{name}' ({shape_text(shape)}) of the program's model is not in the {theirs}'s"
    return None


def _need_little_endian() -> None:
    if sys.byteorder != "little":
        raise FormatError("models lie in memory as little-endian float32, this machine is big-endian")
