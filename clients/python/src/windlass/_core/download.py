from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

import httpx

from ..errors import WindlassError
from .api import Api, is_passing, to_error

Sink = Callable[[bytes], object]


async def download(
    api: Api,
    path: str,
    sink: Sink,
    *,
    params: Optional[Mapping[str, Any]] = None,
    offset_parameter: Optional[str] = None,
    first_offset: int = 0,
) -> httpx.Headers:
    """Passes the bytes of a GET to `sink`, each once: after a lost connection it goes on where it stood.

    It asks for the rest by Range, or by a parameter of the query. Returns the headers of the last answer.
    """
    patience = api.patience()
    received = 0
    tag = ""
    while True:
        response: Optional[httpx.Response] = None
        headers: Dict[str, str] = {"Accept": "*/*"}
        query = dict(params or {})
        if offset_parameter is not None:
            query[offset_parameter] = first_offset + received
        elif received > 0:
            headers["Range"] = f"bytes={received}-"
            headers["If-Range"] = tag
        try:
            async with api.stream(path, params=query, headers=headers) as response:
                if response.status_code in (301, 302, 303, 307, 308):
                    raise WindlassError("The service redirects to somewhere else.", status=response.status_code)
                if response.status_code < 400:
                    if "Range" in headers and response.status_code != 206:
                        raise WindlassError("What is being fetched has changed meanwhile.", code="changed")
                    tag = response.headers.get("ETag", "")
                    chunks = api.transport.chunks(response)
                    try:
                        async for chunk in chunks:
                            patience.renew()
                            sink(chunk)
                            received += len(chunk)
                    finally:
                        await chunks.aclose()
                    return response.headers
                await api.transport.read(response)
                failure = to_error(response)
                if not is_passing(response):
                    raise failure
        except httpx.TransportError as cause:
            failure = api.explain(cause)
        seconds = patience.pause(response)
        if seconds is None:
            raise failure
        await api.transport.sleep(seconds)
