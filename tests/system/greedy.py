#!/usr/bin/env python3
"""
A foreign HTTP/2 peer of an fl-serverd that asks for much and gives little.

    greedy.py ADDRESS unfinished N       N connections, on each eight messages that never end
    greedy.py ADDRESS unread N           N connections that ask for replies and read none
    greedy.py ADDRESS silent PATH        one call that is opened and then left alone
    greedy.py ADDRESS idle N             N connections without any call
    greedy.py ADDRESS crowd N FOLDER N connections over TLS with the certificate in FOLDER
    greedy.py ADDRESS bad N              N calls, one after the other, each bad in its own way

It prints "ready" when it has done so. `silent` waits until the server has ended the call and
prints its status; the others wait until standard input ends, then say how many of their connections
the server has closed.
"""

import select
import socket
import ssl
import struct
import sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """RFC 7541 section 6.2.2: a literal field that is not indexed; all lengths fit 7 bits."""
    name, value = name.encode(), value.encode()
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(stream, path):
    block = b"".join(
        literal(k, v)
        for k, v in ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
                     ("te", "trailers"), ("content-type", "application/grpc"))
    )
    return frame(HEADERS, END_HEADERS, stream, block)


def connect(address, window=65535):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(address[5:])
    else:
        host, port = address.rsplit(":", 1)
        s = socket.create_connection((host, int(port)))
    s.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window)))
    return s


def try_send(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass  # closed by the server: what is looked for


def frames(s):
    """Frames that come in; answers SETTINGS and PING as a peer must."""
    buf = b""
    while True:
        while len(buf) < 9 or len(buf) < 9 + int.from_bytes(buf[:3], "big"):
            more = s.recv(65536)
            if not more:
                return
            buf += more
        n = int.from_bytes(buf[:3], "big")
        kind, flags, stream = buf[3], buf[4], int.from_bytes(buf[5:9], "big")
        payload, buf = buf[9:9 + n], buf[9 + n:]
        if kind in (SETTINGS, PING) and not flags & 1:
            try_send(s, frame(kind, 1, 0, payload if kind == PING else b""))
        yield kind, flags, stream, payload


def closed(s):
    s.setblocking(False)
    try:
        while True:
            if not s.recv(1 << 20):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def message(data, length=None):
    return b"\0" + struct.pack(">I", len(data) if length is None else length) + data


def unfinished(address, n):
    peers = []
    for _ in range(n):
        s = connect(address)
        for k in range(8):
            try_send(s, request(2 * k + 1, "/fl.v1.Federation/Push"))
            try_send(s, frame(DATA, 0, 2 * k + 1, message(b"abc", 100000)))
        peers.append(s)
    return peers


def unread(address, n):
    peers = []
    ask = message(b"\x3a\x01*")  # ServerReflectionRequest.list_services
    for _ in range(n):
        s = connect(address, 0)
        s.setblocking(False)
        for k in range(4):
            try_send(s, request(2 * k + 1, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"))
            for _ in range(12):
                try_send(s, frame(DATA, 0, 2 * k + 1, ask * 150))
        peers.append(s)
    return peers


def idle(address, n):
    peers = []
    for _ in range(n):
        try:
            peers.append(connect(address))
        except OSError:
            break
    return peers


def secure(address, folder):
    """As a client with that certificate; None when the server closed it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(folder + "/client.pem", folder + "/client.key")
    host, port = address.rsplit(":", 1)
    try:
        s = context.wrap_socket(socket.create_connection((host, int(port))))
        s.sendall(PREFACE + frame(SETTINGS, 0, 0, b""))
        s.setblocking(False)
        return s
    except OSError:
        return None


def is_open(s):
    try:
        while s is not None and s.recv(1 << 16):
            pass
    except ssl.SSLWantReadError:
        return True
    except OSError:
        pass
    return False


def crowd(address, n, folder):
    """Always N connections, whatever the server does, until standard input ends."""
    peers = [secure(address, folder) for _ in range(n)]
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        peers = [s if is_open(s) else secure(address, folder) for s in peers]
    print("open", sum(is_open(s) for s in peers), "of", n)


def silent(address, path):
    s = connect(address)
    s.sendall(request(1, path))
    print("ready", flush=True)
    for kind, flags, stream, _ in frames(s):
        if stream == 1 and (kind == RST or (kind == HEADERS and flags & END_STREAM)):
            print("ended")
            return
        if kind == GOAWAY:
            print("ended with its connection")
            return
    print("closed")


def bad(address, n):
    s = connect(address, 1 << 30)
    s.sendall(frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
    paths = ("/fl.v1.Federation/Attend", "/fl.v1.Federation/Push", "/fl.v1.Federation/Fetch")
    stream, done, incoming = 1, 0, frames(s)
    while done < n:
        out = b""
        for _ in range(8):
            out += request(stream, paths[stream // 2 % 3])
            out += frame(DATA, END_STREAM, stream, message(b"\xff" * 9))
            stream += 2
        s.sendall(out)
        over = 0
        while over < 8:
            kind, flags, _, _ = next(incoming)
            over += kind in (HEADERS, DATA) and flags & END_STREAM
        done += 8
    return [s]


def main():
    address, what, arg = sys.argv[1:4]
    if what == "silent":
        silent(address, arg)
        return
    if what == "crowd":
        crowd(address, int(arg), sys.argv[4])
        return
    peers = {"unfinished": unfinished, "unread": unread, "idle": idle, "bad": bad}[what](address, int(arg))
    print("ready", flush=True)
    sys.stdin.read()
    print("closed", sum(closed(s) for s in peers), "of", len(peers))


main()
