from __future__ import annotations

from typing import Protocol, Union

from ..records import Job


class HasJob(Protocol):
    """What stands for a job, such as a `Run`, a `Result` or a `Video`."""

    @property
    def job(self) -> str: ...


#: A job's id, its record, or what stands for it.
JobLike = Union[str, Job, HasJob]


def job_id(job: JobLike) -> str:
    if isinstance(job, str):
        return job
    return job.id if isinstance(job, Job) else job.job
