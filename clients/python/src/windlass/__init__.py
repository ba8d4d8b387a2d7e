"""A client of Windlass: runs commands on remote hosts, and follows, uploads and reads what they make."""

from __future__ import annotations

from typing import Any

from ._aio.client import AsyncClient
from ._aio.run import AsyncRun
from ._aio.session import AsyncSession
from ._aio.table import AsyncTable
from ._aio.video import AsyncVideo
from ._core.login import Jump
from ._sync.client import Client
from ._sync.run import Run
from ._sync.session import Session
from ._sync.table import Table
from ._sync.video import Video
from ._version import __version__
from .errors import JobFailed, Unreachable, WaitTimeout, WindlassError
from .records import (
    Artifact,
    BatchJob,
    Column,
    Entry,
    Event,
    Job,
    JobError,
    Line,
    Model,
    OddValues,
    OutputEvent,
    ProgressEvent,
    Project,
    Prompt,
    Result,
    Rows,
    SessionInfo,
    StateEvent,
    TableInfo,
    Upload,
    UploadProgress,
    VideoStatus,
    WrittenFile,
)

__all__ = [
    "Artifact",
    "AsyncClient",
    "AsyncRun",
    "AsyncSession",
    "AsyncTable",
    "AsyncVideo",
    "BatchJob",
    "Client",
    "Column",
    "Entry",
    "Event",
    "Job",
    "JobError",
    "JobFailed",
    "Jump",
    "Line",
    "Model",
    "OddValues",
    "OutputEvent",
    "ProgressEvent",
    "Project",
    "Prompt",
    "Result",
    "Rows",
    "Run",
    "Session",
    "SessionInfo",
    "StateEvent",
    "Table",
    "TableInfo",
    "Unreachable",
    "Upload",
    "UploadProgress",
    "Video",
    "VideoStatus",
    "WaitTimeout",
    "WindlassError",
    "WrittenFile",
    "__version__",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext windlass` brings the cell magic `%%windlass HOST`."""
    from ._magic import WindlassMagics

    shell.register_magics(WindlassMagics)
