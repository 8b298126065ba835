#!/usr/bin/env python3
"""relay.py OWN OTHER TOTALS: passes connections to the unix socket OWN on to OTHER and back, and counts their bytes.

TOTALS holds "UP DOWN", the bytes from and to those that have connected, as of the last piece that was passed on."""
import os
import selectors
import socket
import sys

own, other, totals = sys.argv[1:]
counts = [0, 0]
peers = {}  # socket: (the socket on the other side, index into counts)
selector = selectors.DefaultSelector()


def note():
    with open(totals + ".new", "w", encoding="ascii") as file:
        file.write("%d %d\n" % tuple(counts))
    os.replace(totals + ".new", totals)


listener = socket.socket(socket.AF_UNIX)
listener.bind(own)
listener.listen(16)
selector.register(listener, selectors.EVENT_READ)
note()
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(other)
            peers[near], peers[far] = (far, 0), (near, 1)
            selector.register(near, selectors.EVENT_READ)
            selector.register(far, selectors.EVENT_READ)
            continue
        to, way = peers[key.fileobj]
        try:
            data = key.fileobj.recv(65536)
        except ConnectionError:
            data = b""
        if data:
            counts[way] += len(data)
            note()  # before it is passed on, so that no receiver knows of more
            try:
                to.sendall(data)
            except ConnectionError:
                pass
        else:
            selector.unregister(key.fileobj)
            try:
                to.shutdown(socket.SHUT_WR)
            except OSError:
                pass
