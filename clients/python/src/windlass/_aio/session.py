from __future__ import annotations

from types import TracebackType
from typing import Mapping, Optional, Type

from .._core import login, sessions
from .._core.api import Api
from ..records import SessionInfo
from .run import AsyncRun


class AsyncSession:
    """See `Session`."""

    def __init__(self, api: Api, sid: str, *, banner: Optional[str] = None) -> None:
        self._api = api
        self.sid = sid
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
        await login.close_session(self._api, self.sid)

    async def info(self) -> SessionInfo:
        return await sessions.get_session(self._api, self.sid)

    async def run(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
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

    async def log_in(
        self,
        *,
        password: Optional[str] = None,
        private_key: Optional[login.PrivateKey] = None,
        passphrase: Optional[str] = None,
        certificate: Optional[str] = None,
        answer: Optional[login.Answer] = None,
    ) -> None:
        body = login.to_credential(password, private_key, passphrase, certificate)
        await login.log_in(self._api, f"/remotes/{self.sid}/login", body, answer)
