from __future__ import annotations

import math
import time
from datetime import datetime, timezone
from typing import Any, AsyncGenerator, Callable, Dict, Mapping, Optional, Tuple

from ..errors import JobFailed, Unreachable, WaitTimeout, WindlassError
from ..records import Job, Model, Project, Result
from .api import ANSWER_SECONDS, Api, escape, find_job, is_passing
from .download import download
from .patience import Patience
from .whole_number import whole_number

#: Seconds that the service is asked to hold a poll: less than proxies do.
POLL_SECONDS = 25
#: An answer that comes sooner was not held.
HELD_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 5.0
#: An answer that is held until the time is over may come so much later.
LATE_SECONDS = 5
#: Of each stream of a result, as POST /remotes/launch gives.
RESULT_BYTES = 10 << 20
#: The most jobs of a page.
PAGE_JOBS = 1_000


async def get_job(api: Api, job: str) -> Job:
    return Job.from_json(await api.json("GET", f"/jobs/{escape(job)}"))


async def wait_for_job(
    api: Api,
    job: str,
    *,
    timeout: Optional[float] = None,
    check: bool = False,
    watch: Optional[Callable[[Job], object]] = None,
) -> Job:
    """The job when it has ended, in whatever state; with `check` it raises `JobFailed` unless it has succeeded.

    `watch` is called with each record that comes, and may raise.
    """
    until = None if timeout is None else time.monotonic() + timeout
    tag = ""
    known = b""
    # A proxy that takes away or changes tags or preferences has every question answered at once.
    pauses = Patience(math.inf)
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        # An answer is held for whole seconds: what is less is waited for here.
        seconds = POLL_SECONDS if left is None else min(POLL_SECONDS, int(left))
        headers = {
            **({"Prefer": f"wait={seconds}"} if seconds else {}),
            **({"If-None-Match": tag} if tag else {}),
        }
        within = None if left is None else left + LATE_SECONDS
        begun = time.monotonic()
        try:
            response = await api.request(
                "GET", f"/jobs/{escape(job)}", headers=headers, timeout=ANSWER_SECONDS + seconds, within=within
            )
        except WindlassError as error:
            # What was never reached is told as such, and so is what the client has no patience with.
            is_over = within is not None and within <= api.patience_seconds and api.was_reached
            if not (is_over and (isinstance(error, Unreachable) or is_passing(error.status or 0))):
                raise name_job(error, job) from None
            raise _to_timeout(job, timeout, f": {error.detail}") from error
        is_new = response.status_code != 304 and response.content != known
        if is_new:
            known = response.content
            found = Job.from_json(api.read_json(response))
            if watch is not None:
                watch(found)
            if found.ended:
                if check and found.state != "succeeded":
                    raise to_failure(found)
                return found
        if response.status_code != 304:
            tag = response.headers.get("ETag", "")
        if left == 0:
            raise _to_timeout(job, timeout, ".")
        if is_new or time.monotonic() - begun > HELD_SECONDS:
            pauses.renew()
        else:
            longest = LONGEST_PAUSE_SECONDS if left is None else min(LONGEST_PAUSE_SECONDS, left)
            await api.transport.sleep(min(longest, pauses.pause() or 0))


def _to_timeout(job: str, timeout: Optional[float], end: str) -> WindlassError:
    return name_job(WaitTimeout(f"Job {job} has not ended within {timeout} s{end}", code="wait_timeout"), job)


def name_job(failure: WindlassError, job: str) -> WindlassError:
    """A failure to follow a job, with how whoever waited comes back to it. A job that is not there does not go on."""
    if failure.status == 404:
        return failure
    failure.job = job
    failure.hint = " ".join(part for part in (failure.hint, f'The job goes on: client.follow("{job}").') if part)
    return failure


def to_failure(job: Job) -> JobFailed:
    error = job.error
    failure = JobFailed(
        error.detail if error else f"Job {job.id} was {job.state}.",
        code=error.code if error else job.state,
        hint=error.hint if error else None,
    )
    failure.job = job.id
    failure.record = job
    return failure


async def wait_for_result(api: Api, job: str, *, timeout: Optional[float] = None) -> Result:
    """How the command of a job ended, and what it printed; raises `JobFailed` where it did not reach its own end."""
    ended = await wait_for_job(api, job, timeout=timeout, check=True, watch=_require_output)
    try:
        output, more_output = await _fetch_begin(api, job, "stdout")
        errors, more_errors = await _fetch_begin(api, job, "stderr")
    except WindlassError as error:
        error.job = job
        raise
    return to_result(ended, output, errors, more_output or more_errors)


def _require_output(job: Job) -> None:
    """The result of another job would be an empty one."""
    if job.kind in ("command", "batch"):
        return
    use = "video" if job.kind == "video" else "wait"
    failure = WindlassError(
        f"Job {job.id} is a {job.kind}, which prints nothing.",
        code="no_command",
        hint=f'Use client.{use}("{job.id}").',
    )
    failure.job = job.id
    raise failure


def to_result(ended: Job, output: bytes = b"", errors: bytes = b"", truncated: bool = False) -> Result:
    code = ended.result.get("returncode", 0) if isinstance(ended.result, dict) else 0
    texts = output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")
    return Result(code, *texts, ended.id, ended.label or "", truncated)


class _Enough(Exception):
    """Ends a download."""


async def _fetch_begin(api: Api, job: str, stream: str) -> Tuple[bytes, bool]:
    """What a result has of a stream, and whether there is more."""
    output = bytearray()

    def take(chunk: bytes) -> None:
        output.extend(chunk)
        if len(output) > RESULT_BYTES:
            raise _Enough

    try:
        await download(api, f"/jobs/{escape(job)}/output", take, params={"stream": stream}, offset_parameter="offset")
    except _Enough:
        pass
    return bytes(output[:RESULT_BYTES]), len(output) > RESULT_BYTES


async def fetch_output(api: Api, job: str, stream: str = "stdout", offset: int = 0) -> bytes:
    """What is stored of a stream from an offset on."""
    output = bytearray()
    await download(
        api,
        f"/jobs/{escape(job)}/output",
        output.extend,
        params={"stream": stream},
        offset_parameter="offset",
        first_offset=offset,
    )
    return bytes(output)


async def cancel_job(api: Api, job: str) -> bool:
    """True where its end was asked for, False where it had ended."""
    try:
        await api.request("DELETE", f"/jobs/{escape(job)}", safe=True)
    except WindlassError as error:
        if error.code == "conflict":
            return False
        raise
    return True


async def list_jobs(api: Api, limit: Optional[int], filters: Mapping[str, Any]) -> AsyncGenerator[Job, None]:
    limit = None if limit is None else whole_number("limit", limit)
    given = {name: _to_text(value) for name, value in filters.items()}
    given["limit"] = None if limit is None else min(limit, PAGE_JOBS)
    left = limit
    items = list_all(api, "/jobs", given)
    try:
        while left is None or left > 0:
            try:
                item = await items.__anext__()
            except StopAsyncIteration:
                return
            yield Job.from_json(item)
            left = None if left is None else left - 1
    finally:
        await items.aclose()


def _to_text(value: Any) -> Any:
    if isinstance(value, (Project, Model)):
        return value.id
    if not isinstance(value, datetime):
        return value
    # A time without a zone is that of the machine here.
    return value.astimezone(timezone.utc).isoformat()


async def list_all(
    api: Api, path: str, filters: Mapping[str, Any], items: str = "items"
) -> AsyncGenerator[Dict[str, Any], None]:
    """The items of all pages of a list, by the name that they have there."""
    after: Optional[str] = None
    while True:
        page = await api.json("GET", path, params={**filters, "after": after})
        for item in page[items]:
            yield item
        after = page.get("next")
        if after is None:
            return


async def start_job(api: Api, path: str, body: Mapping[str, Any]) -> str:
    """POST of what starts a job, once, without waiting for its end; the job's id."""
    headers = {"Prefer": "respond-async"}
    try:
        given = {name: value for name, value in body.items() if value is not None}
        response = await api.request("POST", path, body=given, headers=headers, keyed=True)
    except WindlassError as error:
        # A repeated request is answered by the end of the job that the first one started.
        if error.job is None:
            raise
        return error.job
    answer = api.read_json(response)
    # The answers of a video and of a command that has ended name it beside themselves.
    return find_job(response) or str(answer.get("job") or answer["id"])
