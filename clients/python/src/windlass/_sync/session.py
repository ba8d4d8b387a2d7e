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
from .._core.transport import drive
from .._core.write_file import write_file
from ..records import Entry, SessionInfo, WrittenFile
from .run import Run
from .video import Video


class Session:
    """A remote session: an account on a host. As a context manager it ends with its block, and its jobs with it."""

    def __init__(self, api: Api, sid: str, *, banner: Optional[str] = None) -> None:
        self._api = api
        self.sid = sid
        self._paths = HostPaths(api, sid)
        #: What the host showed at the login, if anything.
        self.banner = banner

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sid}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it and cancels its jobs."""
        drive(close_session(self._api, self.sid))

    def info(self) -> SessionInfo:
        """Its record as it is now."""
        return drive(sessions.get_session(self._api, self.sid))

    def run(
        self,
        command: str,
        *,
        cwd: Optional[HostPath] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        name: Optional[str] = None,
    ) -> Run:
        """Starts a command by the account's own shell; returns when the service has accepted it.

        `cwd` is a folder on the host (the home), `env` are variables, `stdin` is text for its standard input
        (empty), `timeout` are seconds after which the job fails as `time_limit`, and `name` is what the job is
        called.
        """
        return Run(
            self._api,
            drive(
                sessions.start_command(
                    self._api, self.sid, command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, name=name
                )
            ),
        )

    def login(
        self,
        *,
        password: Optional[str] = None,
        private_key: Optional[PrivateKey] = None,
        passphrase: Optional[str] = None,
        certificate: Optional[str] = None,
        jump: Optional[Jump] = None,
        answer: Optional[Answer] = None,
    ) -> None:
        """Logs in again where `state` is `reconnect`: a host that asks for one-time codes has lost the connection."""
        body = to_credential(password, private_key, passphrase, certificate, jump)
        drive(log_in(self._api, f"/remotes/{self.sid}/login", body, answer))

    def video(
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
    ) -> Video:
        """Starts making a video of frames on the host, whose paths `images` are, in order.

        `pattern` chooses them instead: a path with one number, such as `%05d`, or with `*`. One text as `images` is
        that where it holds `%` or `*`, else the only frame.

        `media_type` is `video/mp4` or `video/webm`. With `project` and `key` it is stored in that project's cache
        when it is ready. `first`, `last` and `step` are numbers of a pattern, with `*` positions from 0: without `last`
        it ends at a gap. With `on_bad_frame="skip"` frames that cannot be used are left out. `options` are others that
        the service knows.
        """
        options.update(fps=fps, width=width, quality=quality, encode=encode, label=label, codec=codec)
        options.update(background=background, first=first, last=last, step=step)
        if on_bad_frame is not None:
            options["on-bad-frame"] = on_bad_frame
        options.update(project=None if project is None else project_id(project), key=key, name=name)
        paths, pattern = video.choose_frames(images, pattern)
        if paths is not None:
            paths = [drive(self._paths.resolve(path)) for path in paths]
        if pattern is not None:
            options["pattern"] = drive(self._paths.resolve(pattern))
        job = drive(video.start_video(self._api, self.sid, paths, media_type, options))
        return Video(self._api, job, media_type)

    def batch(
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
    ) -> Run:
        """Submits a job to the batch system of the host: a `command`, or a `script` with its own first line.

        `cpus` are those of each task, `memory` is bytes on each node, `time` seconds, `options` are further ones of
        the batch system, such as `--gres=gpu:1`. `Client.job()` has what the batch system says of it.
        """
        request: Dict[str, Any] = dict(command=command, script=script, env=env, nodes=nodes, tasks=tasks, cpus=cpus)
        request.update(memory=memory, time=time, queue=queue, account=account, options=options, name=name)
        return Run(self._api, drive(sessions.start_batch(self._api, self.sid, cwd, request)))

    def browse(self, path: HostPath) -> List[Entry]:
        """The entries of a folder on the host; a relative path, or `~/…`, is in the home, here and below."""
        return drive(sessions.list_folder(self._api, self.sid, drive(self._paths.resolve(path))))

    @overload
    def read_file(self, path: HostPath, *, start: int = 0, length: Optional[int] = None) -> bytes: ...

    @overload
    def read_file(
        self, path: HostPath, to: Union[str, os.PathLike[str]], *, start: int = 0, length: Optional[int] = None
    ) -> Path: ...

    def read_file(
        self,
        path: HostPath,
        to: Union[str, os.PathLike[str], None] = None,
        *,
        start: int = 0,
        length: Optional[int] = None,
    ) -> Union[bytes, Path]:
        """A file on the host: its bytes, or the path of the file here that it is written `to`, whole or not at all.

        `start` and `length` choose bytes of it.
        """
        found = drive(self._paths.resolve(path))
        if to is None:
            return drive(sessions.read_file(self._api, self.sid, found, start, length))
        return drive(sessions.save_file(self._api, self.sid, found, to, start, length))

    def write_file(
        self,
        path: HostPath,
        data: Data,
        *,
        mode: Optional[int] = None,
        parents: bool = False,
        exclusive: bool = False,
    ) -> WrittenFile:
        """Writes a file on the host, which is there whole then, or as before.

        `data` is text, bytes, a file here by its `pathlib.Path`, or one that is open for reading bytes; a file is read
        as it is sent, and where it changes meanwhile, that is `changed`.

        `mode` are its permissions, such as `0o644` (those of the file that is replaced). `parents` makes the folders
        that are missing. With `exclusive` a file that is there is `precondition_failed`. Over a link that is cut before
        all of it is through, it is sent in pieces, which a command on the host joins; with `exclusive` it is not.
        """
        found = drive(self._paths.resolve(path))
        return drive(write_file(self._api, self.sid, found, data, mode=mode, parents=parents, exclusive=exclusive))
