"""The socket to the client: framed messages, and what arrived while the program was busy.

docs/trainers.md has the frames. Nothing here starts a thread: the computing thread looks at the
socket between two batches (`Channel.interrupted`).
"""

from __future__ import annotations

import json
import os
import select
import socket
from typing import Any, Dict, Optional

#: What one message may take. `model` describes each tensor, so that it can be long.
MAX_RECEIVED = 16 << 20
MAX_SENT = 1 << 20


class ProtocolError(Exception):
    """The client violated the protocol."""


class Gone(Exception):
    """The client closed the socket, or ended."""


class Channel:
    """Messages over a stream socket, one at a time in each direction."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.setblocking(True)
        self._buffer = bytearray()
        self._ended = False
        self._owner = os.getpid()

    def send(self, message: Dict[str, Any]) -> None:
        """Raises Gone when the client closed the socket."""
        text = json.dumps(message, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        if len(text) > MAX_SENT:
            raise ProtocolError(f"a message of {len(text)} bytes, at most {MAX_SENT} may be sent")
        try:
            self._sock.sendall(len(text).to_bytes(4, "little") + text)
        except (BrokenPipeError, ConnectionError) as e:
            raise Gone from e

    def receive(self) -> Optional[Dict[str, Any]]:
        """Wait for the next message; None at the end of the socket."""
        while True:
            message = self._next()
            if message is not None:
                return message
            if self._ended:
                if self._buffer:
                    raise ProtocolError("the socket ended in the middle of a message")
                return None
            self._read()

    def interrupted(self) -> bool:
        """Whether a complete message or the end of the socket is available; does not wait."""
        if os.getpid() != self._owner:
            return False  # a forked worker, such as a DataLoader's, must not use the socket
        while not self._ended and not self._whole():
            if not select.select([self._sock], [], [], 0)[0]:
                break
            self._read()
        return self._ended or self._whole()

    def peek(self) -> Optional[str]:
        """Peek at the type of the next message; None at the end of the socket."""
        if not self._whole():
            return None
        return self._message(bytes(self._buffer[4 : 4 + (self._length() or 0)]))["type"]

    def close(self) -> None:
        self._sock.close()

    def _read(self) -> None:
        try:
            data = self._sock.recv(65536)
        except ConnectionError:
            data = b""
        if data:
            self._buffer += data
        else:
            self._ended = True

    def _length(self) -> Optional[int]:
        if len(self._buffer) < 4:
            return None
        length = int.from_bytes(self._buffer[:4], "little")
        if not 1 <= length <= MAX_RECEIVED:
            raise ProtocolError(f"a message of {length} bytes, expected 1 to {MAX_RECEIVED}")
        return length

    def _whole(self) -> bool:
        length = self._length()
        return length is not None and len(self._buffer) >= 4 + length

    def _next(self) -> Optional[Dict[str, Any]]:
        if not self._whole():
            return None
        end = 4 + (self._length() or 0)
        text = bytes(self._buffer[4:end])
        del self._buffer[:end]
        return self._message(text)

    @staticmethod
    def _message(text: bytes) -> Dict[str, Any]:
        try:
            message = json.loads(text)
        except ValueError as e:
            raise ProtocolError(f"a message that is no JSON: {e}") from e
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise ProtocolError("a message that is no object with a 'type'")
        return message
