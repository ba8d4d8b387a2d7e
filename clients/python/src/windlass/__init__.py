"""A client of Windlass: runs commands on remote hosts, and follows, uploads and reads what they make."""

from __future__ import annotations

from ._aio.client import AsyncClient
from ._aio.run import AsyncRun
from ._aio.session import AsyncSession
from ._sync.client import Client
from ._sync.run import Run
from ._sync.session import Session
from ._version import __version__
from .errors import JobFailed, Unreachable, WindlassError
from .records import (
    BatchJob,
    Event,
    Job,
    JobError,
    Line,
    OutputEvent,
    ProgressEvent,
    Prompt,
    Result,
    SessionInfo,
    StateEvent,
)

__all__ = [
    "AsyncClient",
    "AsyncRun",
    "AsyncSession",
    "BatchJob",
    "Client",
    "Event",
    "Job",
    "JobError",
    "JobFailed",
    "Line",
    "OutputEvent",
    "ProgressEvent",
    "Prompt",
    "Result",
    "Run",
    "Session",
    "SessionInfo",
    "StateEvent",
    "Unreachable",
    "WindlassError",
    "__version__",
]
