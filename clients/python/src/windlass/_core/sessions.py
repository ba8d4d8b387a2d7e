from __future__ import annotations

import base64
import hashlib
import io
import json
from typing import Any, List, Mapping, Optional, Union
from urllib.parse import quote

from ..records import Entry, SessionInfo, WrittenFile, read_time
from .api import Api, escape
from .download import download
from .jobs import list_all, start_job

#: A large file is written to its host before the answer comes.
WRITE_SECONDS = 3_600.0


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
    data = await api.json("POST", f"/remotes/{escape(sid)}/browse/{quote(path.lstrip('/'))}", safe=True)
    columns = zip(data["names"], data["types"], data["sizes"], data["mtimes"])
    return [Entry(name, kind, size, read_time(modified)) for name, kind, size, modified in columns]


async def write_file(
    api: Api,
    sid: str,
    path: str,
    data: Union[bytes, str],
    *,
    mode: Optional[int],
    parents: bool,
    exclusive: bool,
) -> WrittenFile:
    content = data.encode() if isinstance(data, str) else data
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    response = await api.request(
        "PUT",
        f"/remotes/{escape(sid)}/file/{quote(path.lstrip('/'))}",
        content=content,
        params={"mode": None if mode is None else f"{mode:04o}", "parents": "true" if parents else None},
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Digest": f"sha-256=:{digest}:",
            **({"If-None-Match": "*"} if exclusive else {}),
        },
        keyed=True,
        # A file that is there at the second time may be the one of the first.
        renewed=not exclusive,
        timeout=WRITE_SECONDS,
    )
    written = json.loads(response.content)
    return WrittenFile(written["path"], written["size"], written["digest"])


async def read_file(api: Api, sid: str, path: str) -> bytes:
    content = io.BytesIO()
    await download(api, f"/remotes/{escape(sid)}/file/{quote(path.lstrip('/'))}", content.write)
    return content.getvalue()
