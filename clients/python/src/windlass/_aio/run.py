from __future__ import annotations

from typing import AsyncGenerator, Optional

from .._core import events, jobs
from .._core.api import Api
from ..records import Event, Line, Result


class AsyncRun:
    """See `Run`."""

    def __init__(self, api: Api, job: str) -> None:
        self._api = api
        #: The id of its job.
        self.job = job

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job}>"

    def __aiter__(self) -> AsyncGenerator[Line, None]:
        return events.follow_lines(self._api, self.job)

    def events(self) -> AsyncGenerator[Event, None]:
        return events.follow_events(self._api, self.job)

    async def cancel(self) -> bool:
        return await jobs.cancel_job(self._api, self.job)

    async def wait(self, timeout: Optional[float] = None) -> Result:
        return await jobs.wait_for_result(self._api, self.job, timeout=timeout)
