from __future__ import annotations

import base64
import hashlib
from typing import IO, Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..errors import WindlassError
from .api import Api, escape


class _Sent(NamedTuple):
    """What is known of a file that was sent."""

    size: int
    #: So many parts of so many bytes, one after the other.
    sizes: List[Tuple[int, int]]
    #: The SHA-256 of the parts' SHA-256s; None where it is not known.
    digest: Optional[str]


async def check_file(api: Api, file: IO[bytes], size: Optional[int], record: Mapping[str, Any]) -> None:
    """Raises `other_files` where this is not the file that the upload was begun with, as far as that can be told."""

    def differ(what: str) -> WindlassError:
        return WindlassError(
            f"Upload {record['id']} was begun with another file: {what}.",
            code="other_files",
            hint="Resume it with the same file, or begin another one.",
        )

    count = len(record["aids"])
    if count != 1:
        raise differ(f"it has {count} of them")
    # What is open is compared part by part when it is sent.
    if record["state"] == "open" or size is None:
        return
    sent = await _find_sent(api, record)
    if sent is None:
        return
    if sent.size != size:
        raise differ(f"{sent.size} bytes were sent, and this one has {size}")
    if sent.digest is not None:
        digest, sizes = sent.digest, sent.sizes
        if await api.transport.call(lambda: _digest_parts(file, sizes)) != digest:
            raise differ("this one has as many bytes, and not the same ones")


async def _find_sent(api: Api, record: Mapping[str, Any]) -> Optional[_Sent]:
    """The service lists the parts until they are parsed, and the end of that tells what they were."""
    parts: List[Dict[str, Any]] = record["parts"]
    if parts:
        sizes = [(part["size"], 1) for part in parts]
        return _Sent(sum(part["size"] for part in parts), sizes, _digest_all(part["digest"] for part in parts))
    try:
        job = await api.json("GET", f"/jobs/{escape(record['job'])}")
    except WindlassError as error:
        # Its record was removed.
        if error.status == 404:
            return None
        raise
    files = (job.get("result") or {}).get("files")
    if not files:
        return None
    known = files[0].get("parts") or {"sizes": [], "digest": None}
    return _Sent(files[0]["size"], [(size, count) for size, count in known["sizes"]], known["digest"])


def _digest_parts(file: IO[bytes], sizes: List[Tuple[int, int]]) -> str:
    start = file.tell()
    lengths = (size for size, count in sizes for _ in range(count))
    digests = [base64.b64encode(hashlib.sha256(file.read(length)).digest()).decode() for length in lengths]
    file.seek(start)
    return _digest_all(digests)


def _digest_all(digests: Iterable[str]) -> str:
    joined = b"".join(base64.b64decode(digest) for digest in digests)
    return base64.b64encode(hashlib.sha256(joined).digest()).decode()
