from __future__ import annotations

import base64
import time
import uuid
from typing import List, Optional

from ..errors import Unreachable, WindlassError
from ..records import WrittenFile
from .api import FIRST_CONTACT_SECONDS, Api, escape, escape_path, is_certain
from .content import Content, Data, open_content
from .host_scripts import PieceFolder, join_pieces, make_folder, remove_folder
from .losses import Losses
from .patience import Patience

#: A large file is written to its host before the answer comes.
WRITE_SECONDS = 3_600.0
#: What took so long before it was lost was under way.
PATIENT_SECONDS = 1.0
#: What is smaller is not sent in pieces: they would cost more than they save.
LEAST_BYTES = 256 << 10
PIECE_BYTES = 8 << 20
#: Each is a job.
MAX_PIECES = 10_000
#: Pieces need a folder of the account alone, and names that are given by links, so that nothing is written over.
NO_PIECES = ("not_private", "forbidden", "sftp_unavailable")


async def write_file(
    api: Api, sid: str, path: str, data: Data, *, mode: Optional[int], parents: bool, exclusive: bool
) -> WrittenFile:
    """Writes a file on the host; over a link that is cut before all of it is through, in pieces."""
    async with open_content(api, data) as content:
        return await _write(api, sid, path, content, mode=mode, parents=parents, exclusive=exclusive)


async def _write(
    api: Api, sid: str, path: str, content: Content, *, mode: Optional[int], parents: bool, exclusive: bool
) -> WrittenFile:
    # A file that is there at the second time may be the one of the first.
    if exclusive or content.size <= LEAST_BYTES:
        return await _put(api, sid, path, content, mode=mode, parents=parents, exclusive=exclusive)
    losses = Losses(api)
    patience = api.patience()
    takes_pieces = True
    while True:
        begun = time.monotonic()
        try:
            return await _put(api, sid, path, content, mode=mode, parents=parents, lost_once=True)
        except Unreachable as failure:
            lost = failure
        # A file may take longer than the patience lasts. One that only goes whole might be lost again for ever.
        is_long = takes_pieces and time.monotonic() - begun > PATIENT_SECONDS
        await losses.add(begun)
        if losses.are_enough and takes_pieces:
            written = await _send_pieces(api, sid, path, content, mode, parents)
            if written:
                return written
            takes_pieces = False
        await _pause(api, patience, lost, renew=is_long)


async def _put(
    api: Api,
    sid: str,
    path: str,
    content: Content,
    *,
    mode: Optional[int],
    parents: bool,
    exclusive: bool = False,
    lost_once: bool = False,
) -> WrittenFile:
    digest = base64.b64encode(await api.transport.call(content.digest)).decode()
    try:
        response = await api.request(
            "PUT",
            f"/remotes/{escape(sid)}/file/{escape_path(path)}",
            content=api.transport.stream(content.blocks),
            params={"mode": None if mode is None else f"{mode:04o}", "parents": "true" if parents else None},
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Length": str(content.size),
                "Content-Digest": f"sha-256=:{digest}:",
                **({"If-None-Match": "*"} if exclusive else {}),
            },
            keyed=True,
            renewed=lost_once or not exclusive,
            lost_once=lost_once,
            timeout=WRITE_SECONDS,
        )
    except WindlassError:
        # Its bytes are no longer those of the digest.
        await api.transport.call(content.check)
        raise
    written = api.read_json(response)
    return WrittenFile(written["path"], written["size"], written["digest"])


async def _send_pieces(
    api: Api, sid: str, path: str, content: Content, mode: Optional[int], parents: bool
) -> Optional[WrittenFile]:
    """In pieces, which stand in a folder beside the file until a command joins them; None where its host takes none."""
    digest = await api.transport.call(content.digest)
    folder: Optional[PieceFolder] = None
    try:
        folder = await make_folder(api, sid, f"/{path.lstrip('/')}", f".windlass-{uuid.uuid4().hex}-once", parents)
        names = await _Sender(api, sid, folder, content).send()
        if not await join_pieces(api, sid, folder, names, content.size, digest.hex(), mode):
            raise WindlassError(f"The pieces of {path} have changed on the host.", code="changed")
    except WindlassError as error:
        # Where no answer comes, it would only be waited for.
        if folder and not isinstance(error, Unreachable):
            await remove_folder(api, sid, folder)
        if error.code in NO_PIECES:
            return None
        raise
    return WrittenFile(path, content.size, base64.b64encode(digest).decode())


class _Sender:
    """Sends the pieces of a file one after the other, each until it is through.

    Where none comes through between two cuts of the link, they get smaller.
    """

    def __init__(self, api: Api, sid: str, folder: PieceFolder, content: Content) -> None:
        self._api = api
        self._sid = sid
        self._folder = folder
        self._content = content
        self._least = max(LEAST_BYTES, -(-content.size // MAX_PIECES))
        self._length = max(self._least, min(PIECE_BYTES, -(-content.size // 2)))

    async def send(self) -> List[str]:
        """The names of the pieces, in their order."""
        names: List[str] = []
        losses = Losses(self._api)
        patience = self._api.patience()
        at = 0
        while at < self._content.size:
            piece = self._content.part(at, self._length)
            name = f"{at}-{piece.size}"
            begun = time.monotonic()
            try:
                await self._put_piece(name, piece)
            except Unreachable as failure:
                await losses.add(begun)
                is_smaller = losses.are_enough and self._length > self._least
                if is_smaller:
                    losses.reset()
                    self._length = max(self._least, -(-piece.size // 2))
                await _pause(self._api, patience, failure, renew=is_smaller)
            else:
                names.append(name)
                at += piece.size
                losses.reset()
                patience.renew()
        return names

    async def _put_piece(self, name: str, piece: Content) -> None:
        """Nothing is written over, nor through a link that another account has put there."""
        path = f"{self._folder.path}/{name}"
        try:
            await _put(self._api, self._sid, path, piece, mode=0o600, parents=False, exclusive=True, lost_once=True)
        except WindlassError as error:
            # It came through before; the digest of the whole tells.
            if error.code != "precondition_failed":
                raise


async def _pause(api: Api, patience: Patience, failure: Unreachable, *, renew: bool) -> None:
    """Before it is tried again; raises where that is in vain."""
    if renew:
        patience.renew()
    if not api.was_reached:
        patience.shorten(FIRST_CONTACT_SECONDS)
    seconds = patience.pause()
    if seconds is None or (failure.__cause__ and is_certain(failure.__cause__)):
        raise failure
    await api.transport.sleep(seconds)
