"""What a federation left behind, as lines of text that are equal when the federations were.

    same.py FOLDER LOG

FOLDER holds `server`, the server's state folder (database, models and vectors, personal models, data summaries), and
`clients`, with the state folder of each (what it keeps, taken over and pending; what it holds). LOG is
the server's at level debug: who was selected, asked for what, and accepted.

For test_same.sh, which holds fl-sim against the daemons. What is left out stands in LEFT_OUT and
HEAD_LEFT_OUT, with the reason; all else is compared, also columns, keys and files that come later.
"""

import hashlib
import json
import os
import re
import sqlite3
import struct
import sys

from container import container, word

LEFT_OUT = {
    # Times: of this machine's clock there, of a simulated one here.
    "migration": "*",
    "round": {"started_ms", "ended_ms", "waiting_ms", "selecting_ms", "training_ms", "planning_ms", "uploading_ms", "aggregating_ms",
              "evaluating_ms", "previous_commit_ms", "wire_up_bytes", "wire_down_bytes"},
    "client": {"last_seen_ms", "seen_up_ms", "id", "agent"},  # id: in the order of joining; agent: the program
    # A simulation has participations in clients.jsonl instead, and its clients announce no labels.
    "participation": "*",
    "client_labels": "*",
    # A sentence for an operator, of the last thing that went wrong with a client.
    "client_error": "*",
    # Random, so that no two folders are taken for each other.
    "federation": {"id", "identity", "kept_identity"},
}
# A checksum of the row, which has the columns above in it.
SUM = "sum"
# fl.database is federation.id; fl.checksum covers it; fl.states holds checksums of files with it.
HEAD_LEFT_OUT = {"fl.database", "fl.checksum"}


def digest(raw):
    return hashlib.sha256(raw).hexdigest()[:32]


def text(value):
    return value.hex() if isinstance(value, bytes) else repr(value)


def tables(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    for name in names:
        out = LEFT_OUT.get(name, set())
        if out == "*":
            continue
        lines = []
        for row in db.execute(f'SELECT * FROM "{name}"'):
            who = row["name"] if "name" in row.keys() else row["round"] if "round" in row.keys() else ""
            lines.append([f"{name} {who}: {key}={text(row[key])}" for key in row.keys() if key not in out and key != SUM])
        for line in sorted(lines):  # rows lie in the order in which clients came
            yield from line
    db.close()


def model(path, name):
    with open(path, "rb") as f:
        raw = f.read()
    (n,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + n])
    about = head.pop("__metadata__", {})
    for key in sorted(about):
        value = about[key]
        if key == "fl.states":  # names and checksums: the names
            value = " ".join(part.split(":")[0] for part in value.split())
        if key not in HEAD_LEFT_OUT:
            yield f"{name}: {key}={value!r}"
    body = raw[8 + n :]
    for key in sorted(head):
        begin, end = head[key]["data_offsets"]
        yield f"{name}: {key} {head[key]['dtype']} {head[key]['shape']} {digest(body[begin:end])}"


def whole(folder, name):
    with open(os.path.join(folder, name), "rb") as f:
        raw = f.read()
    yield f"{name}: {len(raw)} bytes {digest(raw)}"


def files(folder):
    found = []
    for where, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(where, name), folder) for name in names]
    return sorted(found)


def server(folder):
    for name in files(folder):
        path = os.path.join(folder, name)
        if name == "federation.db":
            yield from tables(path)
        elif name.endswith(".safetensors"):
            yield from model(path, name)
        elif not name.startswith(("federation.db-", ".lock", "admin.sock")):  # of a running process
            yield from whole(folder, name)


# --- a client's folder: containers (libfl/container/container.h) of client_state_file.c and result.c ---

INDEX = struct.Struct("<QQQQQ128s32s32s")
ENTRY = struct.Struct("<128sQQ")
BLOCK = struct.Struct("<QQ128s32s")


def block(folder, name, serial):
    if serial == 0:
        return "none"
    fields, (floats,) = container(os.path.join(folder, "keep", f"{name}.{serial}.keep"), "block")
    rnd, attempt, of, _ = BLOCK.unpack(fields)
    assert word(of) == name, (folder, name)
    return f"of {rnd}/{attempt}, {len(floats) // 4} floats {digest(floats)}"


def kept(folder):
    """Serials of files and the tag of the line (made of a random number) are left out."""
    fields, (rows, granted) = container(os.path.join(folder, "keep", "index"), "index")
    _, kept_round, kept_attempt, pending_round, pending_attempt, federation, layout, _ = INDEX.unpack(fields)
    yield f"keep: federation={word(federation)} layout={layout.hex()}"
    yield f"keep: kept of {kept_round}/{kept_attempt}, pending of {pending_round}/{pending_attempt}"
    yield "keep: granted " + "".join(str(x) for x in granted)
    entries = list(ENTRY.iter_unpack(rows))
    for name, serial, pending in sorted(entries):
        yield f"keep {word(name)}: kept {block(folder, word(name), serial)}"
        yield f"keep {word(name)}: pending {block(folder, word(name), pending)}"
    blocks = [name for name in files(os.path.join(folder, "keep")) if name.endswith(".keep")]
    yield f"keep: {len(blocks)} blocks"


def held(folder):
    fields, sections = container(os.path.join(folder, "result.bin"), "result")
    rnd, attempt = struct.unpack_from("<QQ", fields)
    yield f"result.bin: of {rnd}/{attempt}, {sum(map(len, sections))} bytes"


def client(folder):
    for name in files(folder):
        if name == "keep/index":
            yield from kept(folder)
        elif name == "result.bin":
            yield from held(folder)
        # summaries.bin and summary.bin are copies of what is with the server: all summaries, to fetch
        # them once, and the client's own, so that it never sends another; model.bin is the newest model; tasks.bin and
        # status.sock are for the owner of a client.
        elif not name.startswith((".lock", "keep/", "summaries.bin", "summary.bin", "model.bin", "tasks.bin", "status.sock")):
            yield from whole(folder, name)


# --- what was decided ---

DECISION = re.compile(r"\bdecision: (\w+ '([^']*)' round=(\d+) attempt=(\d+).*)$")
GAVE_UP = re.compile(r"\bround: (round (\d+): (?:timed out at the deadline|disconnected, did not reconnect in time): .*)$")


def decisions(path):
    """In an order of their own: which client was faster is not compared."""
    lines = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            found = DECISION.search(line)
            if found:
                lines.append((int(found[3]), int(found[4]), found[2], found[1]))
            found = GAVE_UP.search(line)
            if found:
                lines.append((int(found[2]), 0, "", found[1]))
    return [line[-1] for line in sorted(lines)]


def federation(folder, log):
    yield from decisions(log)
    for line in server(os.path.join(folder, "server")):
        yield "server " + line
    clients = os.path.join(folder, "clients")  # whoever keeps nothing may have no folder
    for name in sorted(os.listdir(clients)) if os.path.isdir(clients) else []:
        for line in client(os.path.join(clients, name)):
            yield f"{name} {line}"


if __name__ == "__main__":
    print(*federation(*sys.argv[1:]), sep="\n")
