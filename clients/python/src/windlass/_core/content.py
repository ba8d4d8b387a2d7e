from __future__ import annotations

import hashlib
import io
import os
from contextlib import asynccontextmanager
from typing import IO, AsyncIterator, Iterator, Union

from .api import Api
from .local_files import Original, measure, open_source, read_fully

#: What may be sent: text, bytes, a file by its path, or one that is open for reading bytes.
Data = Union[str, bytes, "os.PathLike[str]", IO[bytes]]

BLOCK_BYTES = 1 << 20


class Content:
    """Bytes of memory, or of a file here from where it stands, which is read as it is sent, each time anew."""

    def __init__(self, file: IO[bytes], size: int, *, start: int, original: Original) -> None:
        self._file = file
        self._start = start
        self._original = original
        self.size = size

    def part(self, start: int, size: int) -> Content:
        """Up to so many bytes of it."""
        size = min(size, self.size - start)
        return Content(self._file, size, start=self._start + start, original=self._original)

    def blocks(self) -> Iterator[bytes]:
        """Its bytes; raises `changed` where the file ends before its end that was measured."""
        at = 0
        while at < self.size:
            self._file.seek(self._start + at)
            block = read_fully(self._file, min(BLOCK_BYTES, self.size - at))
            if not block:
                self._original.check_end(at)
            at += len(block)
            yield block

    def digest(self) -> bytes:
        """The SHA-256 of it."""
        found = hashlib.sha256()
        for block in self.blocks():
            found.update(block)
        return found.digest()

    def check(self) -> None:
        """Raises `changed` where the file is another one by now."""
        self._original.check()


@asynccontextmanager
async def open_content(api: Api, data: Data) -> AsyncIterator[Content]:
    if isinstance(data, (str, bytes, bytearray, memoryview)):
        held: IO[bytes] = io.BytesIO(data.encode() if isinstance(data, str) else data)
        yield await _measured(api, held)
        return
    file, is_own = await api.transport.call(lambda: open_source(data))
    try:
        yield await _measured(api, file)
    finally:
        if is_own:
            file.close()


async def _measured(api: Api, file: IO[bytes]) -> Content:
    size = await api.transport.call(lambda: measure(file))
    if size is None:
        # A pipe gives its bytes once.
        held = io.BytesIO(await api.transport.call(file.read))
        return await _measured(api, held)
    return Content(file, size, start=file.tell(), original=Original(file, size))
