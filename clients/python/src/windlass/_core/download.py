from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional

import httpx

from ..errors import WindlassError
from .api import FIRST_CONTACT_SECONDS, Api, is_certain, is_passing, to_error

Sink = Callable[[bytes], object]


async def download(
    api: Api,
    path: str,
    sink: Sink,
    *,
    params: Optional[Mapping[str, Any]] = None,
    offset_parameter: Optional[str] = None,
    first_offset: int = 0,
    start: int = 0,
    length: Optional[int] = None,
) -> httpx.Headers:
    """Passes the bytes of a GET to `sink`, each once: after a lost connection it goes on where it stood.

    It asks for the rest by Range, or by a parameter of the query. `start` and `length` are of the bytes to get by
    Range. Returns the headers of the last answer.
    """
    patience = api.patience()
    received = 0
    known_total: Optional[str] = None
    tag = ""
    while True:
        response: Optional[httpx.Response] = None
        headers: Dict[str, str] = {"Accept": "*/*"}
        query = dict(params or {})
        if offset_parameter is not None:
            query[offset_parameter] = first_offset + received
        elif start + received > 0 or length is not None:
            last = "" if length is None else start + length - 1
            headers["Range"] = f"bytes={start + received}-{last}"
            if tag and not tag.startswith("W/"):
                headers["If-Range"] = tag
        try:
            async with api.stream(path, params=query, headers=headers) as response:
                if response.status_code < 400:
                    api.require_service(response)
                    total = _read_total(response)
                    is_other = received > 0 and total != known_total
                    if "Range" in headers and (response.status_code != 206 or is_other):
                        raise WindlassError("What is being fetched has changed meanwhile.", code="changed")
                    known_total = total
                    tag = response.headers.get("ETag", "")
                    if first_offset < 0:
                        # It counts from the end, which moves while a job prints.
                        first_offset = int(response.headers.get("Output-Offset", first_offset))
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
                if not is_passing(response.status_code):
                    raise failure
        except httpx.RequestError as cause:
            failure = api.explain(cause)
            if is_certain(cause):
                raise failure from cause
            if not api.was_reached:
                patience.shorten(FIRST_CONTACT_SECONDS)
        seconds = patience.pause(response)
        if seconds is None:
            raise failure
        await api.transport.sleep(seconds)


def _read_total(response: httpx.Response) -> Optional[str]:
    """The length of the whole, where the answer says it."""
    if response.status_code == 206:
        return str(response.headers.get("Content-Range", "")).rpartition("/")[2]
    total: Optional[str] = response.headers.get("Content-Length")
    return total
