from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import Optional, Union

from ..errors import WindlassError
from .api import Api
from .host_scripts import find_home

HostPath = Union[str, "os.PathLike[str]"]


def path_text(path: HostPath) -> str:
    """A path on a host, whose separators are not those of Windows, where a `Path` has others."""
    return path.as_posix() if isinstance(path, PurePath) else os.fspath(path)


class HostPaths:
    """Paths on a session's host as a command reads them there: a relative one, or with `~/`, is in the home."""

    def __init__(self, api: Api, sid: str) -> None:
        self._api = api
        self._sid = sid
        self._home: Optional[str] = None

    async def resolve(self, given: HostPath) -> str:
        """The absolute path."""
        path = path_text(given)
        if path.startswith("/"):
            return path
        if not path:
            raise ValueError("The path is empty: '~' is the home.")
        if re.match("~[^/]", path):
            raise WindlassError(
                f"{path} begins with another home than the account's own.",
                code="invalid_input",
                hint="Only ~/ is known: give an absolute path, or ./~ for a name that begins so.",
            )
        if self._home is None:
            self._home = await find_home(self._api, self._sid)
        below = re.sub(r"^~(/+|$)", "", path)
        return f"{self._home.rstrip('/')}/{below}" if below else self._home
