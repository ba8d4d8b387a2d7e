from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional

if TYPE_CHECKING:
    from .records import Job


class WindlassError(Exception):
    """What the service, a job or the way there answered instead of a result.

    `status` is the HTTP status, None where there is none. `code` is a stable word that programs can compare, as
    `docs/errors.md` of the service lists them. `detail` says what happened, `hint` what to do about it, in words of
    this client. `request_id` is what the service's log has it under. `fields` names each wrong field of a request.
    `job` is the id of the job that it is about, `upload` that of the upload that `Client.upload(resume=…)` goes on
    with; None where there is none.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: Optional[int] = None,
        code: str = "error",
        hint: Optional[str] = None,
        request_id: Optional[str] = None,
        fields: Optional[List[Dict[str, Any]]] = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.hint = hint
        self.request_id = request_id
        self.fields = fields or []
        self.job: Optional[str] = None
        self.upload: Optional[str] = None

    def __str__(self) -> str:
        parts = [self.detail, self.hint, f"[{self.code}]"]
        return " ".join(part for part in parts if part)


class Unreachable(WindlassError):
    """The service could not be reached, or the connection broke, and repeating was not possible or did not help."""


class WaitTimeout(WindlassError, TimeoutError):
    """A job that was waited for has not ended in time; it goes on."""


class JobFailed(WindlassError):
    """A job that was waited for has failed or was cancelled; `code`, `detail` and `hint` are those of its error."""

    #: The job as it ended. Set by whoever raises.
    record: Job
