from __future__ import annotations

import io
import os
from typing import IO, List, Optional, Tuple, Union

from ..errors import WindlassError

#: A file by its path, or one that is open for reading bytes.
Source = Union[str, "os.PathLike[str]", IO[bytes]]


def open_source(source: Source) -> Tuple[IO[bytes], bool]:
    if isinstance(source, (str, os.PathLike)):
        return open(source, "rb"), True
    if not hasattr(source, "read"):
        raise WindlassError("It is no file.", code="invalid_input", hint="Give a path, a file, or io.BytesIO(…).")
    # A temporary file of text is no TextIOBase and has such a mode.
    mode = getattr(source, "mode", "b")
    if isinstance(source, io.TextIOBase) or (isinstance(mode, str) and "b" not in mode):
        raise WindlassError("The file gives text, not bytes.", code="invalid_input", hint="Open it with 'rb'.")
    return source, False


def measure(file: IO[bytes]) -> Optional[int]:
    """The bytes from where it stands to its end; None where that is not known before."""
    try:
        if not file.seekable():
            return None
        begin = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(begin)
    except (AttributeError, OSError):
        return None
    return end - begin


def read_fully(file: IO[bytes], size: int) -> bytes:
    """As many bytes, or fewer at the end: a pipe gives what it has."""
    pieces: List[bytes] = []
    left = size
    while left > 0:
        piece = file.read(left)
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Original:
    """What a file was when it was opened: of two states of it nothing is made."""

    def __init__(self, file: IO[bytes], size: Optional[int]) -> None:
        self._file = file
        self._size = size
        self._state = self._find_state()

    def check(self) -> None:
        """Raises `changed` where it is another one by now."""
        if self._find_state() != self._state:
            raise _has_changed()

    def check_end(self, length: int) -> None:
        """Raises `changed` where it has ended after so many bytes, before the end that was measured."""
        if self._size is not None and length < self._size:
            raise _has_changed()

    def _find_state(self) -> Optional[Tuple[int, int]]:
        """None where there is none: a pipe has no second state, and nor has what is no file of the system."""
        if self._size is None:
            return None
        try:
            found = os.fstat(self._file.fileno())
        except (AttributeError, OSError):
            return None
        return found.st_size, found.st_mtime_ns


def _has_changed() -> WindlassError:
    return WindlassError(
        "The file has changed while it was sent.", code="changed", hint="Send it when nothing writes to it."
    )
