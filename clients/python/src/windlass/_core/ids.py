from __future__ import annotations

from typing import Protocol, Union

from ..records import Artifact, Job, Model, Project


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


#: An id, or the record that has it.
ProjectLike = Union[str, Project]
ModelLike = Union[str, Model]
#: The name of an artifact, or its record.
ArtifactLike = Union[str, Artifact]


def project_id(project: ProjectLike) -> str:
    return project if isinstance(project, str) else project.id


def model_id(model: ModelLike) -> str:
    return model if isinstance(model, str) else model.id


def artifact_name(artifact: ArtifactLike) -> str:
    return artifact if isinstance(artifact, str) else artifact.aid
