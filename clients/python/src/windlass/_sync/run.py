from __future__ import annotations

from typing import Iterator, Optional

from .._core import events, jobs
from .._core.api import Api
from .._core.lines import assemble
from .._core.transport import drive, drive_all
from ..records import Event, Line, Result


class Run:
    """A command that runs as a job. Iterating it gives its lines as they come, each time from the first one on."""

    def __init__(self, api: Api, job: str) -> None:
        self._api = api
        #: The id of its job.
        self.job = job

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job}>"

    def __iter__(self) -> Iterator[Line]:
        """The lines of both streams until the end of the job, across lost connections: none is missing, none comes
        twice.
        """
        return assemble(drive_all(events.follow_events(self._api, self.job)))

    def events(self) -> Iterator[Event]:
        """States, progress, and the bytes of the output as they come."""
        return drive_all(events.follow_events(self._api, self.job))

    def cancel(self) -> bool:
        """Has the command stopped on its host: True, or False where the job had ended."""
        return drive(jobs.cancel_job(self._api, self.job))

    def wait(self, timeout: Optional[float] = None) -> Result:
        """Waits for the end, whatever the exit status is. The result has the first 10 MiB of each stream.

        Raises `JobFailed` where the command did not reach its own end, and `WaitTimeout` after `timeout` seconds.
        """
        return drive(jobs.wait_for_result(self._api, self.job, timeout=timeout))
