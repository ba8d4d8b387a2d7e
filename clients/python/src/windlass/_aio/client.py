from __future__ import annotations

from types import TracebackType
from typing import Any, AsyncGenerator, Callable, List, Mapping, Optional, Type

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
from .._core.transport import AsyncTransport, open_http
from .._core.upload import PART_BYTES, Sending, Wanted, upload_file
from ..records import Artifact, Job, Model, Project, SessionInfo, Upload, UploadProgress
from .run import AsyncRun
from .session import AsyncSession
from .table import AsyncTable
from .video import AsyncVideo


class AsyncClient:
    """See `Client`. `http` is an `httpx.AsyncClient` here."""

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        user: Optional[str] = None,
        password: Optional[str] = None,
        patience: float = 120.0,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        address, authorization = read_access(url, token, user, password)
        transport = AsyncTransport(http or open_http(httpx.AsyncClient))
        self._api = Api(transport, url=address, authorization=authorization, patience=patience)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._api.url}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._api.transport.shut()

    async def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        return await self._api.content(method, path, body=body, params=params or None)

    async def open(
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
    ) -> AsyncSession:
        credential = login.to_credential(password, private_key, passphrase, certificate, jump)
        body = login.to_login(host, username, credential, agent=agent, env=env, startup=startup, name=name)
        sid, banner = await login.log_in(self._api, "/remotes", body, answer)
        return AsyncSession(self._api, sid, banner=banner)

    def session(self, sid: str) -> AsyncSession:
        return AsyncSession(self._api, sid)

    async def sessions(self) -> List[SessionInfo]:
        return await sessions.list_sessions(self._api)

    def follow(self, job: JobLike) -> AsyncRun:
        return AsyncRun(self._api, job_id(job))

    def video(self, job: JobLike) -> AsyncVideo:
        return AsyncVideo(self._api, job_id(job))

    async def wait(self, job: JobLike, timeout: Optional[float] = None, *, check: bool = False) -> Job:
        return await jobs.wait_for_job(self._api, job_id(job), timeout=timeout, check=check)

    async def job(self, job: JobLike) -> Job:
        return await jobs.get_job(self._api, job_id(job))

    def jobs(self, *, limit: Optional[int] = None, **filters: Any) -> AsyncGenerator[Job, None]:
        return jobs.list_jobs(self._api, limit, filters)

    async def cancel(self, job: JobLike) -> bool:
        return await jobs.cancel_job(self._api, job_id(job))

    async def output(self, job: JobLike, stream: str = "stdout", offset: int = 0) -> bytes:
        return await jobs.fetch_output(self._api, job_id(job), stream, offset)

    async def create_project(self, name: str, description: Optional[str] = None) -> str:
        return await projects.create_project(self._api, name, description)

    async def create_model(self, project: ProjectLike, name: str, model_type: str = "data") -> str:
        return await projects.create_model(self._api, project_id(project), name, model_type)

    async def projects(self) -> List[Project]:
        return await projects.list_projects(self._api)

    async def models(self, project: ProjectLike) -> List[Model]:
        return await projects.list_models(self._api, project_id(project))

    async def artifacts(self, model: ModelLike) -> List[Artifact]:
        return await projects.list_artifacts(self._api, model_id(model))

    async def upload(
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
        name = None if aid is None else artifact_name(aid)
        wanted = Wanted(model_id(model), name, parser, is_input, options)
        sending = Sending(part_size, parallel, progress, resume, wait)
        return await upload_file(self._api, file, wanted, sending)

    async def link(self, path: str, seconds: int = 3_600) -> str:
        return await links.make_link(self._api, path, seconds)

    def table(self, model: ModelLike, aid: ArtifactLike) -> AsyncTable:
        return AsyncTable(self._api, model_id(model), artifact_name(aid))
