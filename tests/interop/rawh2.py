"""An HTTP/2 peer over TLS that keeps to no limit and reads what it likes. Used by crowding.py."""
import socket
import ssl
import struct

from harness import DEADLINE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS, INITIAL_WINDOW, REFUSED_STREAM = 1, 4, 4, 7


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """RFC 7541, 6.2.2: a literal field that is not indexed; both lengths are below 127."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Raw:
    def __init__(self, address, folder, window):
        """Connects with the certificate in that folder; `window`: bytes that the server may send in a call."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(folder + "/client.pem", folder + "/client.key")
        host, port = address.rsplit(":", 1)
        self.socket = context.wrap_socket(socket.create_connection((host, int(port)), DEADLINE), server_hostname=host)
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, window)))
        self.stream = -1

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # closed by the server

    def call(self, path, message):
        """Begins a call with one request, and returns its stream."""
        self.stream += 2
        fields = ((":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "localhost"),
                  ("te", "trailers"), ("content-type", "application/grpc"))
        self.send(frame(HEADERS, END_HEADERS, self.stream, b"".join(literal(k, v) for k, v in fields)) +
                  frame(DATA, END_STREAM, self.stream, b"\0" + struct.pack(">I", len(message)) + message))
        return self.stream

    def read(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def frames(self):
        """Kind, flags, stream and payload of what arrives, until the server closes the connection."""
        try:
            while True:
                head = self.read(9)
                payload = self.read(int.from_bytes(head[:3], "big"))
                if head[3] == SETTINGS and not head[4] & 1:
                    self.send(frame(SETTINGS, 1, 0, b""))
                yield head[3], head[4], int.from_bytes(head[5:9], "big"), payload
        except OSError:
            return

    def close(self):
        self.socket.close()
