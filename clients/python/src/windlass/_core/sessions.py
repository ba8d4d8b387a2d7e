from __future__ import annotations

import io
from typing import Any, List, Mapping, Optional

from ..records import Entry, SessionInfo, read_time
from .api import Api, escape, escape_path
from .download import download
from .jobs import list_all, start_job


async def get_session(api: Api, sid: str) -> SessionInfo:
    return SessionInfo.from_json(await api.json("GET", f"/remotes/{escape(sid)}"))


async def start_batch(api: Api, sid: str, request: Mapping[str, Any]) -> str:
    return await start_job(api, f"/remotes/{escape(sid)}/batch", request)


async def start_command(
    api: Api,
    sid: str,
    command: str,
    *,
    cwd: Optional[str],
    env: Optional[Mapping[str, str]],
    stdin: Optional[str],
    timeout: Optional[float],
    name: Optional[str],
) -> str:
    body: Mapping[str, Any] = {
        "sid": sid,
        "command": command,
        "cwd": cwd,
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


async def read_file(api: Api, sid: str, path: str) -> bytes:
    content = io.BytesIO()
    await download(api, f"/remotes/{escape(sid)}/file/{escape_path(path)}", content.write)
    return content.getvalue()
