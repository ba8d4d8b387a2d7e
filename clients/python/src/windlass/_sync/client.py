from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Iterator, List, Mapping, Optional, Type

import httpx

from .._core import jobs, links, login, projects, sessions
from .._core.api import Api
from .._core.ids import (
    ArtifactLike,
    JobLike,
    ModelLike,
    ProjectLike,
    artifact_name,
    job_id,
    model_id,
    project_id,
)
from .._core.local_files import Source
from .._core.profile import read_access
from .._core.transport import SyncTransport, drive, drive_all
from .._core.upload import PART_BYTES, Sending, Wanted, upload_file
from ..records import Artifact, Job, Model, Project, SessionInfo, Upload, UploadProgress
from .run import Run
from .session import Session
from .table import Table
from .video import Video


class Client:
    """A user of a Windlass service. Its methods may be called from several threads, and in forked processes.

    `url` and `token` default to `WINDLASS_URL` and `WINDLASS_TOKEN`, which goes to no other service than the one of
    `WINDLASS_URL`, and to none without it; `user` and `password` log in instead of a token. What is safe to repeat is
    repeated until `patience` seconds have passed without a success. `http` is an `httpx.Client` of your own, for a
    proxy or a certificate authority, which closes with this client.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        user: Optional[str] = None,
        password: Optional[str] = None,
        patience: float = 120.0,
        http: Optional[httpx.Client] = None,
    ) -> None:
        address, authorization = read_access(url, token, user, password)
        transport = SyncTransport(http)
        self._api = Api(transport, url=address, authorization=authorization, patience=patience)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._api.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes its connections. Sessions and jobs go on."""
        drive(self._api.transport.shut())

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """Any operation of the API by its path without `/api`; the JSON of its answer, or the bytes of another one."""
        return drive(self._api.content(method, path, body=body, params=params or None))

    def open(
        self,
        host: str,
        username: Optional[str] = None,
        *,
        password: Optional[str] = None,
        private_key: Optional[login.PrivateKey] = None,
        passphrase: Optional[str] = None,
        certificate: Optional[str] = None,
        jump: Optional[login.Jump] = None,
        agent: Optional[bool] = None,
        env: Optional[Mapping[str, str]] = None,
        startup: Optional[str] = None,
        name: Optional[str] = None,
        answer: Optional[login.Answer] = None,
    ) -> Session:
        """Logs in to a host of the service, as `username` (the name of the local account).

        `private_key` is the text of a key, or its file; `jump` is for the host's jump host, where that takes another
        login. `env` is for all commands. With `startup="each"` each command reads the account's start-up files, as over
        plain ssh, and so sees aliases and functions that these do not export. `answer` is called for each thing that
        the host asks, such as a one-time code, with a `Prompt`; without it the terminal or the notebook is asked.
        """
        credential = login.to_credential(password, private_key, passphrase, certificate, jump)
        body = login.to_login(host, username, credential, agent=agent, env=env, startup=startup, name=name)
        sid, banner = drive(login.log_in(self._api, "/remotes", body, answer))
        return Session(self._api, sid, banner=banner)

    def session(self, sid: str) -> Session:
        """A session that is open, by its id; nothing is sent."""
        return Session(self._api, sid)

    def sessions(self) -> List[SessionInfo]:
        """Your open sessions."""
        return drive(sessions.list_sessions(self._api))

    def follow(self, job: JobLike) -> Run:
        """A job that was started before, whose lines can be iterated from the first one on."""
        return Run(self._api, job_id(job))

    def video(self, job: JobLike) -> Video:
        """A video that was started before, by its job; nothing is sent. The service keeps videos for 24 hours."""
        return Video(self._api, job_id(job))

    def wait(self, job: JobLike, timeout: Optional[float] = None, *, check: bool = False) -> Job:
        """Waits for a job's end; its record, in whatever state.

        With `check` it raises `JobFailed` unless the job has succeeded. Raises `WaitTimeout` after `timeout` seconds.
        """
        return drive(jobs.wait_for_job(self._api, job_id(job), timeout=timeout, check=check))

    def job(self, job: JobLike) -> Job:
        """A job's record as it is now."""
        return drive(jobs.get_job(self._api, job_id(job)))

    def jobs(self, *, limit: Optional[int] = None, **filters: Any) -> Iterator[Job]:
        """Your jobs, the latest first: `limit` of them, or all, in pages as they are asked for.

        Filters are those of `GET /jobs`: `state` and `kind` (one or a list), `host`, `session`, `project`, `model`,
        `name`, `label`, `since` and `until` (a `datetime` or ISO 8601), and `owner` for administrators.
        """
        return drive_all(jobs.list_jobs(self._api, limit, filters))

    def cancel(self, job: JobLike) -> bool:
        """Asks for a job's end: True, or False where it had ended."""
        return drive(jobs.cancel_job(self._api, job_id(job)))

    def output(self, job: JobLike, stream: str = "stdout", offset: int = 0) -> bytes:
        """The bytes that a command has printed so far, from `offset` on; `stream` is `stdout` or `stderr`."""
        return drive(jobs.fetch_output(self._api, job_id(job), stream, offset))

    def create_project(self, name: str, description: Optional[str] = None) -> str:
        """Makes a project, whose administrator you are; its id."""
        return drive(projects.create_project(self._api, name, description))

    def create_model(self, project: ProjectLike, name: str, model_type: str = "data") -> str:
        """Makes a model in a project; its id. `model_type` is any word of your own."""
        return drive(projects.create_model(self._api, project_id(project), name, model_type))

    def projects(self) -> List[Project]:
        """The projects that you are in."""
        return drive(projects.list_projects(self._api))

    def models(self, project: ProjectLike) -> List[Model]:
        """The models of a project."""
        return drive(projects.list_models(self._api, project_id(project)))

    def artifacts(self, model: ModelLike) -> List[Artifact]:
        """What a model holds: its parameters, files, tables and arrays, by name."""
        return drive(projects.list_artifacts(self._api, model_id(model)))

    def upload(
        self,
        file: Source,
        model: ModelLike,
        aid: Optional[ArtifactLike] = None,
        *,
        parser: Optional[str] = None,
        is_input: bool = False,
        part_size: int = PART_BYTES,
        parallel: int = 4,
        progress: Optional[Callable[[UploadProgress], object]] = None,
        resume: Optional[str] = None,
        wait: bool = True,
        **options: Any,
    ) -> Upload:
        """Uploads a file into a model, as the artifact `aid` (the file's name), and waits until it is parsed.

        `file` is a path, or a file that is open for bytes. `parser` is that of its name (`.csv`, `.parquet`, `.h5`, …,
        each also with `.gz` or `.zst`), else `blob`, which keeps it as it is. It is sent in parts of `part_size` bytes,
        `parallel` at the same time, each with its digest; a lost part is sent again. `progress` is called as parts
        arrive, from one thread at a time. `options` are the parser's, such as `delimiter=";"` of `csv`. An error of the
        way there has the id of the upload as `upload`: `resume` goes on with it and sends what is missing. `JobFailed`
        says why a file could not be parsed.
        """
        name = None if aid is None else artifact_name(aid)
        wanted = Wanted(model_id(model), name, parser, is_input, options)
        sending = Sending(part_size, parallel, progress, resume, wait)
        return drive(upload_file(self._api, file, wanted, sending))

    def link(self, path: str, seconds: int = 3_600) -> str:
        """An address by which whoever has it may GET one path, such as `/api/jobs/(id)/result`, for a day at most."""
        return drive(links.make_link(self._api, path, seconds))

    def table(self, model: ModelLike, aid: ArtifactLike) -> Table:
        """A table of a model; nothing is sent."""
        return Table(self._api, model_id(model), artifact_name(aid))
