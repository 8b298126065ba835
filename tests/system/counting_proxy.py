"""A TCP proxy that counts what it forwards, and can stop at a point of its own.

    counting_proxy.py PORT HOLD_AT

Forwards connections to 127.0.0.1:PORT. Once all connections together have carried HOLD_AT bytes to the
server, nothing more from the server is forwarded to a client: it is still read and counted.

Prints `listening PORT`, then a line for each piece, before the piece is forwarded: the bytes to the
server, the bytes from the server, and those of them that were forwarded.
"""

import selectors
import socket
import sys

UP, DOWN = 0, 1


def main(port, hold_at):
    waiting = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", 0))
    waiting.register(listener, selectors.EVENT_READ)
    print(f"listening {listener.getsockname()[1]}", flush=True)
    total = [0, 0]
    forwarded = 0

    def close(*both):
        for s in both:
            waiting.unregister(s)
            s.close()

    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    client.close()
                    continue
                waiting.register(client, selectors.EVENT_READ, (UP, server))
                waiting.register(server, selectors.EVENT_READ, (DOWN, client))
                continue
            if key.fileobj.fileno() < 0:  # closed with its other half, in this turn
                continue
            way, other = key.data
            try:
                piece = key.fileobj.recv(65536)
            except OSError:
                piece = b""
            if not piece:
                close(key.fileobj, other)
                continue
            total[way] += len(piece)
            held = way == DOWN and total[UP] >= hold_at
            forwarded += len(piece) if way == DOWN and not held else 0
            print(*total, forwarded, flush=True)
            if held:
                continue
            try:
                other.sendall(piece)
            except OSError:
                close(key.fileobj, other)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
