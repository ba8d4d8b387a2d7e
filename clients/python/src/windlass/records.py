"""What the service answers, as immutable records. Members that this version does not know are passed over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from subprocess import CalledProcessError
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ._core.hints import own_hint

#: The states after which a job does not change.
ENDED = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class Line:
    """A line that a command printed, without its end. `stream` is `stdout` or `stderr`; bytes that are no UTF-8 are
    replaced.
    """

    stream: str
    text: str


@dataclass(frozen=True)
class Result:
    """How a command ended: its exit status (128 + n after signal n), what it printed as text, and the id of its job.

    `output` and `errors` are the first 10 MiB of each. Where they are `truncated`, `Client.output()` has all, and a
    loop over the run its lines.
    """

    returncode: int
    output: str
    errors: str
    job: str
    #: The command, where it is known.
    command: str = ""
    truncated: bool = False

    def check_returncode(self) -> Result:
        """Raises `subprocess.CalledProcessError` where the exit status is not 0."""
        if self.returncode != 0:
            raise CalledProcessError(self.returncode, self.command, self.output, self.errors)
        return self


@dataclass(frozen=True)
class JobError:
    """Why a job failed. `data` has all members, those of the code included, as the service gives them."""

    code: str
    detail: str
    hint: Optional[str]
    data: Mapping[str, Any]

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> JobError:
        return cls(data.get("code", "error"), data.get("detail", ""), own_hint(data.get("hint")), data)


@dataclass(frozen=True)
class BatchJob:
    """What the batch system of a host says of a job, in its own words; None is unknown."""

    engine: str
    id: Optional[str]
    state: Optional[str]
    reason: Optional[str]
    nodes: Optional[str]

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> BatchJob:
        return cls(*(data.get(name) for name in ("engine", "id", "state", "reason", "nodes")))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Job:
    """A job's record. Of other people's jobs a server administrator sees some members only; the others are None."""

    id: str
    kind: str
    #: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    state: str
    label: Optional[str]
    name: Optional[str]
    #: From 0 to 1.
    progress: Optional[float]
    message: Optional[str]
    host: Optional[str]
    session: Optional[str]
    project: Optional[str]
    model: Optional[str]
    upload: Optional[str]
    owner: Optional[str]
    worker: Optional[str]
    created: datetime
    started: Optional[datetime]
    finished: Optional[datetime]
    result: Any
    error: Optional[JobError]
    retry_of: Optional[str]
    batch: Optional[BatchJob]

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Job:
        error, batch = data.get("error"), data.get("batch")
        return cls(
            id=data["id"],
            kind=data["kind"],
            state=data["state"],
            label=data.get("label"),
            name=data.get("name"),
            progress=data.get("progress"),
            message=data.get("message"),
            host=data.get("host"),
            session=data.get("session"),
            project=data.get("project"),
            model=data.get("model"),
            upload=data.get("upload"),
            owner=data.get("owner"),
            worker=data.get("worker"),
            created=read_time(data["created"]),
            started=read_optional_time(data.get("started")),
            finished=read_optional_time(data.get("finished")),
            result=data.get("result"),
            error=JobError.from_json(error) if error else None,
            retry_of=data.get("retryOf"),
            batch=BatchJob.from_json(batch) if batch else None,
        )


@dataclass(frozen=True)
class SessionInfo:
    """A remote session's record. `engines` are the batch systems of its host, None where that is not known yet."""

    sid: str
    hostname: str
    username: str
    agent: bool
    #: When start-up files are read: `once` a connection, or by `each` command.
    startup: str
    #: The names of its variables.
    env: List[str]
    #: `open`, `challenge` or `reconnect`.
    state: str
    engines: Optional[List[str]]
    created: datetime
    accessed: datetime
    expires: datetime

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> SessionInfo:
        return cls(
            sid=data["sid"],
            hostname=data["hostname"],
            username=data["username"],
            agent=data["agent"],
            startup=data.get("startup", "once"),
            env=data.get("env", []),
            state=data.get("state", "open"),
            engines=data.get("engines"),
            created=read_time(data["created"]),
            accessed=read_time(data["accessed"]),
            expires=read_time(data["expires"]),
        )


@dataclass(frozen=True)
class Prompt:
    """What a host asks at a login, such as a one-time code. Where `echo` is False the answer is not to be shown."""

    text: str
    echo: bool
    instruction: str


@dataclass(frozen=True)
class StateEvent:
    """The state that a job has now, and why it waits, if it does and has no progress."""

    state: str
    error: Optional[JobError]
    message: Optional[str] = None


@dataclass(frozen=True)
class ProgressEvent:
    """How far a job is, from 0 to 1."""

    progress: float
    message: Optional[str]


@dataclass(frozen=True)
class OutputEvent:
    """Bytes that a command printed, where in its stream they begin, and when they were stored (to the second)."""

    stream: str
    offset: int
    data: bytes
    time: Optional[datetime] = None


Event = Union[StateEvent, ProgressEvent, OutputEvent]


@dataclass(frozen=True)
class UploadProgress:
    """So many bytes of a file are stored. `total` is None where the file's length is not known before its end."""

    upload: str
    sent: int
    total: Optional[int]


@dataclass(frozen=True)
class Project:
    """A project that you are in. `role` is `administrator`, `writer` or `reader`."""

    id: str
    name: str
    description: str
    role: str
    created: datetime
    updated: datetime

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Project:
        return cls(data["id"], data["name"], data["description"], data["role"], *_read_times(data))


@dataclass(frozen=True)
class Model:
    """A model of a project. `type` is the word that its maker gave."""

    id: str
    project: str
    type: str
    name: str
    description: str
    created: datetime
    updated: datetime

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Model:
        named = data["id"], data["project"], data["model-type"], data["name"], data["description"]
        return cls(*named, *_read_times(data))


def _read_times(data: Dict[str, Any]) -> Tuple[datetime, datetime]:
    return read_time(data["created"]), read_time(data["updated"])


@dataclass(frozen=True)
class Artifact:
    """What a model holds. `type` is `parameter`, `file`, `table` or `array`, `size` are its bytes."""

    aid: str
    type: str
    input: bool
    size: int
    updated: datetime

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Artifact:
        return cls(data["aid"], data["type"], data["input"], data["size"], read_time(data["updated"]))


@dataclass(frozen=True)
class Upload:
    """A file that was sent: its upload, the model and the artifact that it becomes, and the job that parses it.

    `artifacts` are the names of the first 1,000 that were made of it, such as those of a workbook's sheets; None where
    that was not waited for.
    """

    id: str
    model: str
    aid: str
    job: str
    artifacts: Optional[List[str]] = None


@dataclass(frozen=True)
class OddValues:
    """Why a column of a CSV file is text: nearly all values are of `type`, and so many `others` are not.

    The first of these is `first_value`, in row `first_row`, from 0.
    """

    type: str
    others: int
    first_row: int
    first_value: str

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> OddValues:
        return cls(data["type"], data["others"], data["first"]["row"], data["first"]["value"])


@dataclass(frozen=True)
class Column:
    """A column of a table. `type` is `boolean`, `integer`, `number`, `date`, `time`, `timestamp` or `text`."""

    name: str
    type: str
    #: The least and the greatest value; where `exact`, integers are texts, since some pass 2^53.
    min: Any
    max: Any
    nulls: int
    unit: Optional[str]
    exact: bool
    nearly: Optional[OddValues] = None

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Column:
        nearly = data.get("nearly")
        return cls(
            name=data["name"],
            type=data["type"],
            min=data.get("min"),
            max=data.get("max"),
            nulls=data["nulls"],
            unit=data.get("unit"),
            exact=data.get("exact", False),
            nearly=OddValues.from_json(nearly) if nearly else None,
        )


@dataclass(frozen=True)
class TableInfo:
    """What a table holds. `dialect` says how its file was read."""

    rows: int
    columns: List[Column]
    dialect: Optional[Mapping[str, Any]]

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> TableInfo:
        return cls(data["rows"], [Column.from_json(one) for one in data["columns"]], data.get("dialect"))


@dataclass(frozen=True)
class Rows:
    """A page of rows; `total` counts all that match."""

    offset: int
    total: int
    columns: List[str]
    rows: List[List[Any]]

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> Rows:
        return cls(data["offset"], data["total"], data["columns"], data["rows"])


@dataclass(frozen=True)
class VideoStatus:
    """How a video is getting on: it has failed where not `ok`, and can be fetched when `ready`."""

    ok: bool
    ready: bool
    message: str
    progress: Optional[float]


@dataclass(frozen=True)
class Entry:
    """Of a folder on a host. `type` is `d` for a folder, `f` for anything else; `size` is bytes."""

    name: str
    type: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written on a host: its bytes, and their SHA-256 in base64."""

    path: str
    size: int
    digest: str


def read_time(text: str) -> datetime:
    # Before 3.11 fromisoformat() does not know the Z.
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def read_optional_time(text: Optional[str]) -> Optional[datetime]:
    return None if text is None else read_time(text)
