"""A TCP relay as a middlebox: it drops a connection that is silent for some time, or goes deaf.

    idle_relay.py LISTEN TARGET MS FOLDER

LISTEN and TARGET are paths of unix sockets, or HOST:PORT; of a port 0 FOLDER/port has the real one. A connection on which no byte travels for MS
milliseconds is closed, and a line is added to FOLDER/dropped. One that has lasted for three times
as long adds a line to FOLDER/survived. While FOLDER/deaf exists, bytes are swallowed on both sides
and nothing is closed.
"""

import os
import selectors
import socket
import sys
import time


def address(text: str) -> tuple[int, str | tuple[str, int]]:
    host, colon, port = text.rpartition(":")
    return (socket.AF_INET, (host, int(port))) if colon and "/" not in text else (socket.AF_UNIX, text)


def note_port(folder: str, port: int) -> None:
    with open(os.path.join(folder, "port.new"), "w", encoding="utf-8") as f:
        f.write(str(port))
    os.rename(os.path.join(folder, "port.new"), os.path.join(folder, "port"))


def main() -> None:
    listen, target, limit, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]) / 1000.0, sys.argv[4]
    family, at = address(listen)
    server = socket.socket(family)
    server.bind(at)
    server.listen(16)
    if family == socket.AF_INET:
        note_port(folder, server.getsockname()[1])
    waits = selectors.DefaultSelector()
    waits.register(server, selectors.EVENT_READ)
    pairs: dict[socket.socket, socket.socket] = {}
    last: dict[frozenset, float] = {}
    since: dict[frozenset, float] = {}

    def note(what: str) -> None:
        with open(os.path.join(folder, what), "a", encoding="utf-8") as f:
            f.write(what + "\n")

    def drop(one: socket.socket) -> None:
        other = pairs.pop(one)
        pairs.pop(other, None)
        last.pop(frozenset((one, other)), None)
        since.pop(frozenset((one, other)), None)
        for s in (one, other):
            waits.unregister(s)
            s.close()

    while True:
        deaf = os.path.exists(os.path.join(folder, "deaf"))
        for key, _ in waits.select(limit / 10):
            if key.fileobj is server:
                family, at = address(target)
                one, other = server.accept()[0], socket.socket(family)
                try:
                    other.connect(at)
                except OSError:
                    one.close()
                    continue
                pairs[one], pairs[other] = other, one
                last[frozenset((one, other))] = since[frozenset((one, other))] = time.monotonic()
                for s in (one, other):
                    waits.register(s, selectors.EVENT_READ)
                continue
            one = key.fileobj
            if one not in pairs:
                continue
            try:
                data = one.recv(65536)
                if data and not deaf:
                    pairs[one].sendall(data)
            except OSError:
                data = b""
            if not data:
                drop(one)
                continue
            last[frozenset((one, pairs[one]))] = time.monotonic()
        now = time.monotonic()
        if deaf:
            continue
        for pair in [p for p, at in last.items() if now - at > limit]:
            note("dropped")
            drop(next(iter(pair)))
        for pair in [p for p, at in since.items() if now - at > 3 * limit]:
            note("survived")
            since.pop(pair)


if __name__ == "__main__":
    main()
