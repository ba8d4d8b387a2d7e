from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, Union, overload

from .._core import sessions, video
from .._core.api import Api
from .._core.content import Data
from .._core.host_paths import HostPath, HostPaths
from .._core.ids import ProjectLike, project_id
from .._core.login import Answer, Jump, PrivateKey, close_session, log_in, to_credential
from .._core.write_file import write_file
from ..records import Entry, SessionInfo, WrittenFile
from .run import AsyncRun
from .video import AsyncVideo


class AsyncSession:
    """See `Session`."""

    def __init__(self, api: Api, sid: str, *, banner: Optional[str] = None) -> None:
        self._api = api
        self.sid = sid
        self._paths = HostPaths(api, sid)
        #: What the host showed at the login, if anything.
        self.banner = banner

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sid}>"

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await close_session(self._api, self.sid)

    async def info(self) -> SessionInfo:
        return await sessions.get_session(self._api, self.sid)

    async def run(
        self,
        command: str,
        *,
        cwd: Optional[HostPath] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        name: Optional[str] = None,
    ) -> AsyncRun:
        return AsyncRun(
            self._api,
            await sessions.start_command(
                self._api, self.sid, command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, name=name
            ),
        )

    async def login(
        self,
        *,
        password: Optional[str] = None,
        private_key: Optional[PrivateKey] = None,
        passphrase: Optional[str] = None,
        certificate: Optional[str] = None,
        jump: Optional[Jump] = None,
        answer: Optional[Answer] = None,
    ) -> None:
        body = to_credential(password, private_key, passphrase, certificate, jump)
        await log_in(self._api, f"/remotes/{self.sid}/login", body, answer)

    async def video(
        self,
        images: Union[HostPath, Sequence[HostPath], None] = None,
        media_type: str = "video/mp4",
        *,
        pattern: Optional[HostPath] = None,
        first: Optional[int] = None,
        last: Optional[int] = None,
        step: Optional[int] = None,
        fps: Optional[float] = None,
        width: Optional[int] = None,
        quality: Optional[float] = None,
        codec: Optional[str] = None,
        background: Optional[str] = None,
        encode: Optional[str] = None,
        label: Optional[str] = None,
        on_bad_frame: Optional[str] = None,
        project: Optional[ProjectLike] = None,
        key: Optional[str] = None,
        name: Optional[str] = None,
        **options: Any,
    ) -> AsyncVideo:
        options.update(fps=fps, width=width, quality=quality, encode=encode, label=label, codec=codec)
        options.update(background=background, first=first, last=last, step=step)
        if on_bad_frame is not None:
            options["on-bad-frame"] = on_bad_frame
        options.update(project=None if project is None else project_id(project), key=key, name=name)
        paths, pattern = video.choose_frames(images, pattern)
        if paths is not None:
            paths = [await self._paths.resolve(path) for path in paths]
        if pattern is not None:
            options["pattern"] = await self._paths.resolve(pattern)
        job = await video.start_video(self._api, self.sid, paths, media_type, options)
        return AsyncVideo(self._api, job, media_type)

    async def batch(
        self,
        command: Optional[str] = None,
        *,
        script: Optional[str] = None,
        cwd: Optional[HostPath] = None,
        env: Optional[Mapping[str, str]] = None,
        nodes: Optional[int] = None,
        tasks: Optional[int] = None,
        cpus: Optional[int] = None,
        memory: Optional[int] = None,
        time: Optional[int] = None,
        queue: Optional[str] = None,
        account: Optional[str] = None,
        options: Optional[Sequence[str]] = None,
        name: Optional[str] = None,
    ) -> AsyncRun:
        request: Dict[str, Any] = dict(command=command, script=script, env=env, nodes=nodes, tasks=tasks, cpus=cpus)
        request.update(memory=memory, time=time, queue=queue, account=account, options=options, name=name)
        return AsyncRun(self._api, await sessions.start_batch(self._api, self.sid, cwd, request))

    async def browse(self, path: HostPath) -> List[Entry]:
        return await sessions.list_folder(self._api, self.sid, await self._paths.resolve(path))

    @overload
    async def read_file(self, path: HostPath, *, start: int = 0, length: Optional[int] = None) -> bytes: ...

    @overload
    async def read_file(
        self, path: HostPath, to: Union[str, os.PathLike[str]], *, start: int = 0, length: Optional[int] = None
    ) -> Path: ...

    async def read_file(
        self,
        path: HostPath,
        to: Union[str, os.PathLike[str], None] = None,
        *,
        start: int = 0,
        length: Optional[int] = None,
    ) -> Union[bytes, Path]:
        found = await self._paths.resolve(path)
        if to is None:
            return await sessions.read_file(self._api, self.sid, found, start, length)
        return await sessions.save_file(self._api, self.sid, found, to, start, length)

    async def write_file(
        self,
        path: HostPath,
        data: Data,
        *,
        mode: Optional[int] = None,
        parents: bool = False,
        exclusive: bool = False,
    ) -> WrittenFile:
        found = await self._paths.resolve(path)
        return await write_file(self._api, self.sid, found, data, mode=mode, parents=parents, exclusive=exclusive)
