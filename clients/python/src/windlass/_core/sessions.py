from __future__ import annotations

from typing import Any, List, Mapping, Optional

from ..records import SessionInfo
from .api import Api, escape
from .jobs import list_all, start_job


async def get_session(api: Api, sid: str) -> SessionInfo:
    return SessionInfo.from_json(await api.json("GET", f"/remotes/{escape(sid)}"))


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
