from __future__ import annotations

from typing import Dict, Generator, Iterator, List

from ..records import Event, Line, OutputEvent


class LineAssembler:
    """Lines of two streams whose bytes come in pieces, cut anywhere; a line comes when its end has come."""

    def __init__(self) -> None:
        self._begun: Dict[str, List[bytes]] = {}

    def feed(self, stream: str, data: bytes) -> Iterator[Line]:
        begun = self._begun.setdefault(stream, [])
        if b"\n" not in data:
            begun.append(data)
            return
        first, *others = data.split(b"\n")
        yield _to_line(stream, b"".join([*begun, first]))
        for line in others[:-1]:
            yield _to_line(stream, line)
        self._begun[stream] = [others[-1]]

    def finish(self) -> Iterator[Line]:
        """The last lines, where they have no end."""
        for stream, begun in self._begun.items():
            rest = b"".join(begun)
            if rest:
                yield _to_line(stream, rest)
        self._begun.clear()


def assemble(events: Generator[Event, None, None]) -> Iterator[Line]:
    """The lines of a job's events. Where there is no event loop this costs much less for each line than a coroutine."""
    assembler = LineAssembler()
    try:
        for event in events:
            if isinstance(event, OutputEvent):
                yield from assembler.feed(event.stream, event.data)
        yield from assembler.finish()
    finally:
        events.close()


def _to_line(stream: str, line: bytes) -> Line:
    return Line(stream, (line[:-1] if line.endswith(b"\r") else line).decode("utf-8", "replace"))
