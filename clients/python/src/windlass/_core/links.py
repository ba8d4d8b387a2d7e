from __future__ import annotations

from .api import Api


async def make_link(api: Api, path: str, seconds: int) -> str:
    # One more link does no harm.
    return str((await api.json("POST", "/links", body={"path": path, "seconds": seconds}, safe=True))["url"])
