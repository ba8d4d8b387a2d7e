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
    # What comes from a pipe is gone when it was compared.
    if size is None:
        return
    if record["state"] == "open":
        said = await api.transport.call(lambda: _compare_stored(file, size, record["parts"]))
        if said is not None:
            raise differ(said)
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


def _compare_stored(file: IO[bytes], size: int, stored: Iterable[Mapping[str, Any]]) -> Optional[str]:
    """How the file differs from the stored parts that run from its first one, whose place in it is certain.

    Where parts were made smaller, an earlier and larger one may have been stored late: what follows it stands
    elsewhere.
    """
    parts = {part["pid"]: part for part in stored if part["fid"] == 0}
    begin = file.tell()
    start = last = number = 0
    try:
        while number in parts:
            length, digest = parts[number]["size"], parts[number]["digest"]
            # One that is smaller is the end of the file, or the first of smaller ones.
            if length < last and number + 1 in parts:
                return None
            end = start + length
            if end > size:
                return f"{end} bytes or more were sent, and this one has {size}"
            if _digest(file.read(length)) != digest:
                return f"its bytes {start} to {end} are not those that were sent"
            start, last, number = end, length, number + 1
        return None
    finally:
        file.seek(begin)


def _digest(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def _digest_parts(file: IO[bytes], sizes: List[Tuple[int, int]]) -> str:
    start = file.tell()
    lengths = (size for size, count in sizes for _ in range(count))
    digests = [_digest(file.read(length)) for length in lengths]
    file.seek(start)
    return _digest_all(digests)


def _digest_all(digests: Iterable[str]) -> str:
    return _digest(b"".join(base64.b64decode(digest) for digest in digests))
