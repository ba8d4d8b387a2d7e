from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, List, Mapping, Optional, Union

from ..records import Entry, SessionInfo, read_time
from .api import Api, escape, escape_path
from .download import Sink, download
from .host_paths import HostPath, path_text
from .jobs import list_all, start_job
from .save import save
from .whole_number import whole_number


async def get_session(api: Api, sid: str) -> SessionInfo:
    return SessionInfo.from_json(await api.json("GET", f"/remotes/{escape(sid)}"))


async def start_batch(api: Api, sid: str, cwd: Optional[HostPath], request: Mapping[str, Any]) -> str:
    body = {**request, "cwd": None if cwd is None else path_text(cwd)}
    return await start_job(api, f"/remotes/{escape(sid)}/batch", body)


async def start_command(
    api: Api,
    sid: str,
    command: str,
    *,
    cwd: Optional[HostPath],
    env: Optional[Mapping[str, str]],
    stdin: Optional[str],
    timeout: Optional[float],
    name: Optional[str],
) -> str:
    body: Mapping[str, Any] = {
        "sid": sid,
        "command": command,
        "cwd": None if cwd is None else path_text(cwd),
        "env": env,
        "stdin": stdin,
        "timeout": timeout,
        "name": name,
    }
    return await start_job(api, "/remotes/launch", body)


async def list_sessions(api: Api) -> List[SessionInfo]:
    return [SessionInfo.from_json(item) async for item in list_all(api, "/remotes", {})]


async def list_folder(api: Api, sid: str, path: str) -> List[Entry]:
    """The entries of a folder on the host."""
    # A browse that the service lost its client of is cancelled, and changes nothing.
    data = await api.json("POST", f"/remotes/{escape(sid)}/browse/{escape_path(path)}", safe=True)
    columns = zip(data["names"], data["types"], data["sizes"], data["mtimes"])
    return [Entry(name, kind, size, read_time(modified)) for name, kind, size, modified in columns]


async def read_file(api: Api, sid: str, path: str, start: int, length: Optional[int]) -> bytes:
    content = io.BytesIO()
    await _download_file(api, sid, path, content.write, start, length)
    return content.getvalue()


async def save_file(
    api: Api, sid: str, path: str, to: Union[str, os.PathLike[str]], start: int, length: Optional[int]
) -> Path:
    return await save(to, lambda sink: _download_file(api, sid, path, sink, start, length))


async def _download_file(api: Api, sid: str, path: str, sink: Sink, start: int, length: Optional[int]) -> None:
    start = whole_number("start", start)
    length = None if length is None else whole_number("length", length)
    # There is no range of no bytes: the service would send all of them.
    if length != 0:
        address = f"/remotes/{escape(sid)}/file/{escape_path(path)}"
        await download(api, address, sink, start=start, length=length)
