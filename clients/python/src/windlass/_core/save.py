from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import IO, Any, Awaitable, Callable, Union

from .download import Sink


def check_target(path: Union[str, os.PathLike[str]]) -> None:
    """Refuses what `save()` could not write, by the name that was given, before anybody waits for the bytes."""
    given = Path(path).expanduser()
    target = given.resolve()
    if target.is_dir():
        problem = errno.EISDIR
    elif target.parent.is_dir():
        if os.access(target.parent, os.W_OK):
            return
        problem = errno.EACCES
    else:
        problem = errno.ENOTDIR if target.parent.exists() else errno.ENOENT
    raise OSError(problem, os.strerror(problem), str(given))


async def save(path: Union[str, os.PathLike[str]], fetch: Callable[[Sink], Awaitable[Any]]) -> Path:
    """Writes what is fetched beside the file, then renames it: the file is there when it is whole, with the permissions
    that it had.

    A link is followed.
    """
    check_target(path)
    given = Path(path).expanduser()
    target = given.resolve()
    present = target.stat() if target.exists() else None
    # A name has at most 255 bytes; those of two long names differ.
    begin = target.name.encode("utf-8", "replace")[:200].decode("utf-8", "ignore")
    partial = target.with_name(f".{begin}.{secrets.token_hex(6)}.part")
    # Who may not read the file that is replaced never may read this one.
    mode = stat.S_IMODE(present.st_mode) if present else 0o666
    try:
        file: IO[bytes]
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            # The umask is for files that are new.
            if present:
                partial.chmod(mode)
            await fetch(file.write)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return given
