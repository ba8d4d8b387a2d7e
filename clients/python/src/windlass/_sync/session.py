from __future__ import annotations

from types import TracebackType
from typing import Mapping, Optional, Type

from .._core import login, sessions
from .._core.api import Api
from .._core.transport import drive
from ..records import SessionInfo
from .run import Run


class Session:
    """A remote session: an account on a host. As a context manager it ends with its block, and its jobs with it."""

    def __init__(self, api: Api, sid: str, *, banner: Optional[str] = None) -> None:
        self._api = api
        self.sid = sid
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
        drive(login.close_session(self._api, self.sid))

    def info(self) -> SessionInfo:
        """Its record as it is now."""
        return drive(sessions.get_session(self._api, self.sid))

    def run(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        name: Optional[str] = None,
    ) -> Run:
        """Starts a command by the account's own shell; returns when the service has accepted it.

        `cwd` is a folder on the host (the home), `env` are variables, `stdin` is text for its standard input (empty),
        `timeout` are seconds after which the job fails as `time_limit`, and `name` is what the job is called.
        """
        return Run(
            self._api,
            drive(
                sessions.start_command(
                    self._api, self.sid, command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, name=name
                )
            ),
        )

    def log_in(
        self,
        *,
        password: Optional[str] = None,
        private_key: Optional[login.PrivateKey] = None,
        passphrase: Optional[str] = None,
        certificate: Optional[str] = None,
        answer: Optional[login.Answer] = None,
    ) -> None:
        """Logs in again, where `state` is `reconnect`: the connection was lost, and the host asks for one-time codes."""
        body = login.to_credential(password, private_key, passphrase, certificate)
        drive(login.log_in(self._api, f"/remotes/{self.sid}/login", body, answer))
