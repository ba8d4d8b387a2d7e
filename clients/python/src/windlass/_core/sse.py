from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    id: str
    data: str


class EventDecoder:
    """Server-sent events (WHATWG HTML, 9.2.6) of bytes that come in chunks, cut anywhere.

    What is decoded is a whole line, so that no character is cut. An event that the stream does not complete is
    dropped.
    """

    def __init__(self) -> None:
        self._chunks: List[bytes] = []
        self._skips_feed = False
        self._event = ""
        self._id = ""
        self._data: List[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        # A CR ends a line, and an LF right after it, perhaps in the next chunk, belongs to it.
        if self._skips_feed and chunk:
            self._skips_feed = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._chunks.append(chunk)
            return
        self._skips_feed = chunk.endswith(b"\r")
        text = b"".join([*self._chunks, chunk]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._chunks = [rest]
        for line in lines:
            yield from self._read_line(line.decode("utf-8", "replace"))

    def _read_line(self, line: str) -> Iterator[ServerSentEvent]:
        if line == "":
            if self._data:
                yield ServerSentEvent(self._event or "message", self._id, "\n".join(self._data))
            self._event, self._data = "", []
            return
        name, _, value = line.partition(":")
        if value.startswith(" "):
            value = value[1:]
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
