from __future__ import annotations

import base64
import hashlib
import os
import time
from typing import IO, Any, Awaitable, Callable, Dict, Mapping, NamedTuple, Optional, Tuple

from ..errors import Unreachable, WindlassError
from ..records import Upload, UploadProgress
from .api import Api, escape, is_certain, strong_tag
from .jobs import wait_for_job
from .local_files import Original, Source, measure, open_source, read_fully
from .losses import Losses
from .parsers import parser_of
from .sent_files import check_file

PART_BYTES = 8 << 20
MAX_PARTS = 100_000
#: So many parts in a row must get through before several go at once again.
ENOUGH = 8
#: Parts get no smaller than that over a link that is cut.
LEAST_BYTES = 256 << 10

#: The length and the digest of each part that is stored, by its number.
Stored = Mapping[int, Tuple[int, str]]


class Wanted(NamedTuple):
    """What becomes of the file."""

    model: str
    aid: Optional[str]
    #: None is that of the file's name.
    parser: Optional[str]
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
    file, is_own = await api.transport.call(lambda: open_source(source))
    uid = sending.resume
    try:
        model = wanted.model
        size = measure(file)
        if uid is None:
            aid = wanted.aid or _name(source)
            parser = wanted.parser or parser_of(_find_name(source) or aid)
            body = {"mid": model, "aids": [aid], "parser": parser, "input": wanted.is_input}
            uid = str((await api.json("POST", "/uploads", body={**body, **wanted.options}))["id"])
            found = _Found({}, None, None)
        else:
            # Its end may have been accepted, and the answer lost.
            found, record = await _look(api, uid)
            await check_file(api, file, size, record)
            model, aid = record["mid"], record["aids"][0]
            if wanted.model != model or wanted.aid not in (None, aid):
                raise ValueError(f"Upload {uid} makes {aid} in model {model}: resume it with these.")
        job = found.job or await _send_all(_Sender(api, file, uid, size, found.stored), sending)
        if not sending.wait:
            return Upload(uid, model, aid, job)
        result = (await wait_for_job(api, job, check=True)).result
        made = result.get("artifacts", []) if isinstance(result, dict) else []
        return Upload(uid, model, aid, job, [artifact["aid"] for artifact in made])
    except WindlassError as error:
        error.upload = uid
        raise
    finally:
        if is_own:
            file.close()


class _Found(NamedTuple):
    """An upload as the service has it."""

    stored: Stored
    #: Names this state.
    tag: Optional[str]
    #: None while it is open.
    job: Optional[str]


async def _look(api: Api, uid: str) -> Tuple[_Found, Mapping[str, Any]]:
    """And its record."""
    response = await api.request("GET", f"/uploads/{escape(uid)}")
    record = api.read_json(response)
    stored = {part["pid"]: (part["size"], part["digest"]) for part in record["parts"] if part["fid"] == 0}
    return _Found(stored, strong_tag(response), None if record["state"] == "open" else record.get("job")), record


async def _send_all(sender: _Sender, sending: Sending) -> str:
    """The job that parses it."""
    while True:
        count = await sender.send(sending)
        tag = None
        if sender.may_differ:
            # A request that was given up may have been stored after what took the place of its part.
            found, _record = await _look(sender.api, sender.uid)
            if any(found.stored.get(number) != part for number, part in sender.parts.items()):
                await sender.begin_again(found.stored)
                continue
            tag = found.tag
        await sender.api.transport.call(sender.original.check)
        path = f"/uploads/{escape(sender.uid)}/finished"
        headers = {"If-Match": tag} if tag else {}
        try:
            answer = await sender.api.json("POST", path, body={"uploaded": [count]}, headers=headers, keyed=True)
            return str(answer["job"])
        except WindlassError as error:
            if error.status != 412:
                raise


class _TooLarge(Exception):
    """The link is cut before a part is through."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length


class _Sender:
    """Sends the parts of a file that the service has not stored."""

    def __init__(self, api: Api, file: IO[bytes], uid: str, size: Optional[int], stored: Stored) -> None:
        self.api = api
        self._file = file
        self.original = Original(file, size)
        self.uid = uid
        self._size = size
        self._start = 0 if size is None else file.tell()
        self._stored = stored
        self._cut: Optional[_Cut] = None
        #: What was sent, as it must be stored.
        self.parts: Dict[int, Tuple[int, str]] = {}
        #: Whether another state of a part may be stored than the one that was sent here.
        self.may_differ = bool(stored) and size is not None
        #: Of parts that were sent alone.
        self._losses = Losses(api)
        self._told = 0
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
        while True:
            try:
                await self._send_rest(sending)
                return self._count
            except _TooLarge as lost:
                self.may_differ = True
                self._losses.reset()
                found, _record = await _look(self.api, self.uid)
                await self.begin_again(found.stored, -(-lost.length // 2))

    async def begin_again(self, stored: Stored, length: Optional[int] = None) -> None:
        """From the beginning of the file; with a length, parts are made of it from the first on that is not stored."""
        await self.api.transport.call(lambda: self._file.seek(self._start))
        if length is not None and self._cut is not None:
            missing = (number for number in range(self._count) if stored.get(number) != self.parts.get(number))
            self._cut.shrink(max(LEAST_BYTES, length), next(missing, self._count), stored)
        self._stored = stored
        self.parts = {}
        self._count = self._begin = self._sent = 0
        self._is_at_end = False
        self._failure = None

    async def _send_rest(self, sending: Sending) -> None:
        cut = self._cut = self._cut or _Cut(sending.part_size, self._size, self._stored)

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

        await self.api.transport.together([work] * sending.parallel, self._stop)
        if self._failure is not None:
            raise self._failure

    def _stop(self) -> None:
        self._failure = self._failure or InterruptedError("The upload was interrupted.")

    async def _read(self, cut: _Cut) -> Optional[Tuple[int, bytes]]:
        """The next part; None at the end. An empty file is one empty part."""
        async with self._lock.hold():
            if self._is_at_end:
                return None
            number = self._count
            part_size = cut.length(number, self._begin)
            data = await self.api.transport.call(lambda: read_fully(self._file, part_size))
            self._is_at_end = len(data) < part_size
            self._begin += len(data)
            if self._is_at_end:
                self.original.check_end(self._begin)
            if not data and number > 0:
                return None
            if number == MAX_PARTS:
                raise ValueError(
                    f"The file is longer than {MAX_PARTS} parts of {part_size} bytes: give a larger part_size."
                )
            self._count += 1
            return number, data

    async def _send_part(self, number: int, data: bytes) -> None:
        digest = await self.api.transport.call(lambda: base64.b64encode(hashlib.sha256(data).digest()).decode())
        self.parts[number] = (len(data), digest)
        if self._stored.get(number) == (len(data), digest):
            return
        headers = {"Content-Type": "application/octet-stream", "Content-Digest": f"sha-256=:{digest}:"}
        path = f"/uploads/{escape(self.uid)}/files/0/parts/{number}"

        begun = 0.0

        async def put() -> None:
            nonlocal begun
            begun = time.monotonic()
            await self.api.request("PUT", path, content=data, headers=headers, safe=True, lost_once=True)

        while self._failure is None:
            is_alone = self._alone > 0
            try:
                await self._in_turn(put)
                self._losses.reset()
                return
            except Unreachable as failure:
                if is_alone:
                    await self._losses.add(begun)
                if self._losses.are_enough and len(data) > LEAST_BYTES and self._size is not None:
                    raise _TooLarge(len(data)) from failure
                # A part may take longer than the patience lasts: that begins with the first loss.
                if self._alone != ENOUGH:
                    self._patience.renew()
                self._alone = ENOUGH
                seconds = self._patience.pause()
                if seconds is None or (failure.__cause__ and is_certain(failure.__cause__)):
                    raise
            await self.api.transport.sleep(seconds)

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
            # Parts that get smaller are sent again.
            self._told = max(self._told, self._sent)
            if progress is not None:
                progress(UploadProgress(self.uid, self._told, self._size))


class _Cut:
    """How a file is cut: as its stored parts were.

    Parts are compared by their numbers, and none must be left over. A client that resumed before may have made
    parts smaller from one on. A wrong guess only costs time.
    """

    def __init__(self, wanted: int, size: Optional[int], stored: Stored) -> None:
        self._least = wanted if size is None else max(wanted, -(-size // MAX_PARTS))
        self._size = size
        self._lengths = {number: length for number, (length, _digest) in sorted(stored.items()) if length > 0}
        self._highest = max(stored, default=-1)
        self._first: Optional[int] = None

    def shrink(self, length: int, first: int, stored: Stored) -> None:
        """Makes parts of this length from the first one on."""
        self._least = length if self._size is None else max(length, -(-self._size // MAX_PARTS))
        self._lengths = {number: length for number, (length, _digest) in stored.items() if number < first}
        self._highest = max(stored, default=-1)
        self._first = first

    def length(self, number: int, begin: int) -> int:
        """Bytes of the part with this number, that begins there."""
        is_new = number > self._highest or (self._first is not None and number >= self._first)
        length = self._lengths.get(number) or (self._least if is_new else self._guess(number))
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


def _name(source: Source) -> str:
    name = _find_name(source)
    if name is None:
        raise ValueError("Give an aid: the file has no name.")
    return name


def _find_name(source: Source) -> Optional[str]:
    path = source if isinstance(source, (str, os.PathLike)) else getattr(source, "name", None)
    return os.path.basename(path) if isinstance(path, (str, os.PathLike)) else None
