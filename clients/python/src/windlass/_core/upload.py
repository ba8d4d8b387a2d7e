from __future__ import annotations

import base64
import hashlib
import os
from typing import IO, Any, Awaitable, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..errors import Unreachable, WindlassError
from ..records import Upload, UploadProgress
from .api import Api, escape, is_certain
from .jobs import wait_for_job

#: A file by its path, or one that is open for reading bytes.
Source = Union[str, "os.PathLike[str]", IO[bytes]]

PART_BYTES = 8 << 20
MAX_PARTS = 100_000
#: So many parts in a row must get through before several go at once again.
ENOUGH = 8


class Wanted(NamedTuple):
    """What becomes of the file."""

    model: str
    aid: Optional[str]
    parser: str
    is_input: bool
    options: Mapping[str, Any]


class Sending(NamedTuple):
    """How it is sent."""

    part_size: int
    parallel: int
    progress: Optional[Callable[[UploadProgress], object]]
    resume: Optional[str]
    wait: bool


async def upload_file(api: Api, source: Source, wanted: Wanted, sending: Sending) -> Upload:
    """Sends a file in parts, several at the same time, and has it parsed; a part that was lost is sent again.

    An error of the way there names the upload, with which `resume` goes on: only parts that the service lacks are
    sent.
    """
    if sending.part_size < 1 or sending.parallel < 1:
        raise ValueError("part_size and parallel are at least 1.")
    file, is_own = await api.transport.call(lambda: _open(source))
    uid = sending.resume
    try:
        aid = wanted.aid or _name(source)
        size = _measure(file)
        if uid is None:
            body = {"mid": wanted.model, "aids": [aid], "parser": wanted.parser, "input": wanted.is_input}
            uid = str((await api.json("POST", "/uploads", body={**body, **wanted.options}))["id"])
            stored: Dict[int, Tuple[int, str]] = {}
            job = None
        else:
            record = await api.json("GET", f"/uploads/{escape(uid)}")
            stored = {part["pid"]: (part["size"], part["digest"]) for part in record["parts"] if part["fid"] == 0}
            # Its end was accepted, and the answer lost.
            job = None if record["state"] == "open" else record.get("job")
        if job is None:
            count = await _Sender(api, file, uid, size, stored).send(sending)
            path = f"/uploads/{escape(uid)}/finished"
            job = (await api.json("POST", path, body={"uploaded": [count]}, keyed=True))["job"]
        if sending.wait:
            await wait_for_job(api, job, check=True)
        return Upload(uid, wanted.model, aid, job)
    except WindlassError as error:
        error.upload = uid
        raise
    finally:
        if is_own:
            file.close()


class _Sender:
    """Sends the parts of a file that the service has not stored."""

    def __init__(
        self, api: Api, file: IO[bytes], uid: str, size: Optional[int], stored: Mapping[int, Tuple[int, str]]
    ) -> None:
        self._api = api
        self._file = file
        self._uid = uid
        self._size = size
        self._stored = stored
        self._lock = api.transport.lock()
        self._turn = api.transport.lock()
        self._alone = 0
        self._patience = api.patience()
        self._count = 0
        self._begin = 0
        self._sent = 0
        self._is_at_end = False
        self._failure: Optional[BaseException] = None

    async def send(self, sending: Sending) -> int:
        """The number of parts."""
        cut = _Cut(sending.part_size, self._size, self._stored)

        async def work() -> None:
            while self._failure is None:
                try:
                    part = await self._read(cut)
                    if part is None:
                        return
                    await self._send_part(*part)
                    await self._tell(len(part[1]), sending.progress)
                except Exception as failure:
                    self._failure = self._failure or failure

        await self._api.transport.together([work] * sending.parallel, self._stop)
        if self._failure is not None:
            raise self._failure
        return self._count

    def _stop(self) -> None:
        self._failure = self._failure or InterruptedError("The upload was interrupted.")

    async def _read(self, cut: _Cut) -> Optional[Tuple[int, bytes]]:
        """The next part; None at the end. An empty file is one empty part."""
        async with self._lock.hold():
            if self._is_at_end:
                return None
            number = self._count
            part_size = cut.length(number, self._begin)
            data = await self._api.transport.call(lambda: _read_fully(self._file, part_size))
            self._is_at_end = len(data) < part_size
            if not data and number > 0:
                return None
            self._begin += len(data)
            if number == MAX_PARTS:
                raise ValueError(
                    f"The file is longer than {MAX_PARTS} parts of {part_size} bytes: give a larger part_size."
                )
            self._count += 1
            return number, data

    async def _send_part(self, number: int, data: bytes) -> None:
        digest = await self._api.transport.call(lambda: base64.b64encode(hashlib.sha256(data).digest()).decode())
        if self._stored.get(number) == (len(data), digest):
            return
        headers = {"Content-Type": "application/octet-stream", "Content-Digest": f"sha-256=:{digest}:"}
        path = f"/uploads/{escape(self._uid)}/files/0/parts/{number}"

        async def put() -> None:
            await self._api.request("PUT", path, content=data, headers=headers, lost_once=True)

        while self._failure is None:
            try:
                await self._in_turn(put)
                return
            except Unreachable as failure:
                # A part may take longer than the patience lasts: that begins with the first loss.
                if self._alone != ENOUGH:
                    self._patience.renew()
                self._alone = ENOUGH
                seconds = self._patience.pause()
                if seconds is None or (failure.__cause__ and is_certain(failure.__cause__)):
                    raise
            await self._api.transport.sleep(seconds)

    async def _in_turn(self, put: Callable[[], Awaitable[None]]) -> None:
        """Several parts at the same time while the link holds; after a loss one at a time.

        Where the link is cut before that much comes through, none of them would ever arrive.
        """
        if self._alone == 0:
            await put()
        else:
            async with self._turn.hold():
                await put()
        self._alone = max(0, self._alone - 1)
        self._patience.renew()

    async def _tell(self, count: int, progress: Optional[Callable[[UploadProgress], object]]) -> None:
        async with self._lock.hold():
            self._sent += count
            if progress is not None:
                progress(UploadProgress(self._uid, self._sent, self._size))


class _Cut:
    """How a file is cut: as its stored parts were.

    Parts are compared by their numbers, and none must be left over. A client that resumed before may have made
    parts smaller from one on. A wrong guess only costs time.
    """

    def __init__(self, wanted: int, size: Optional[int], stored: Mapping[int, Tuple[int, str]]) -> None:
        self._least = wanted if size is None else max(wanted, -(-size // MAX_PARTS))
        self._size = size
        self._lengths = {number: length for number, (length, _digest) in sorted(stored.items()) if length > 0}
        self._highest = max(stored, default=-1)

    def length(self, number: int, begin: int) -> int:
        """Bytes of the part with this number, that begins there."""
        length = self._lengths.get(number) or self._guess(number)
        if self._size is None or number > self._highest:
            return length
        # So many parts are to come, as there are stored ones that cannot be removed.
        left, count = self._size - begin, self._highest + 1 - number
        return length if -(-left // length) >= count else max(1, left // count)

    def _guess(self, number: int) -> int:
        """As the stored parts around it: the last one of a file may be shorter, and alone says nothing."""
        earlier = [length for other, length in self._lengths.items() if other < number]
        later = [length for other, length in self._lengths.items() if other > number]
        if len(later) > 1:
            return max(later)
        if len(earlier) > 1:
            return earlier[-1] if earlier[-1] == earlier[-2] else earlier[-2]
        around = earlier + later
        return max(around) if len(around) > 1 else max([self._least, *around])


def _open(source: Source) -> Tuple[IO[bytes], bool]:
    if isinstance(source, (str, os.PathLike)):
        return open(source, "rb"), True
    return source, False


def _name(source: Source) -> str:
    path = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", None)
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError("Give an aid: the file has no name.")
    return os.path.basename(path)


def _measure(file: IO[bytes]) -> Optional[int]:
    """The bytes from where it stands to its end; None where that is not known before."""
    try:
        if not file.seekable():
            return None
        begin = file.tell()
        end = file.seek(0, os.SEEK_END)
        file.seek(begin)
    except (AttributeError, OSError):
        return None
    return end - begin


def _read_fully(file: IO[bytes], size: int) -> bytes:
    """As many bytes, or fewer at the end: a pipe gives what it has."""
    pieces: List[bytes] = []
    left = size
    while left > 0:
        piece = file.read(left)
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
