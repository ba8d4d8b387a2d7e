from __future__ import annotations

import base64
import io
import os
import re
import sys
from contextlib import contextmanager
from html import escape as escape_html
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Tuple, Union

from ..errors import WindlassError
from ..records import Job, VideoStatus
from .api import Api, escape
from .download import download
from .host_paths import HostPath, path_text
from .jobs import get_job, start_job, wait_for_job
from .links import make_link
from .save import check_target, save

#: A notebook's file keeps what is shown in it, at every save: larger videos are linked.
SHOWN_BYTES = 4 << 20
LINK_SECONDS = 86_400
SUFFIXES = {".mp4": "video/mp4", ".webm": "video/webm"}


def choose_frames(
    images: Union[HostPath, Sequence[HostPath], None], pattern: Optional[HostPath]
) -> Tuple[Optional[Sequence[str]], Optional[str]]:
    """The list of frames, or the pattern: one path is no list of its letters."""
    given = None if pattern is None else path_text(pattern)
    if images is None:
        return None, given
    if not isinstance(images, (str, os.PathLike)):
        return [path_text(image) for image in images], given
    path = path_text(images)
    # A number is in the name of the file: its folder may be called `50%damping`.
    if "*" not in path and not re.search(r"%0?\d{0,2}d[^/]*$", path):
        return [path], given
    if given is not None:
        raise ValueError("Give one pattern.")
    return None, path


def check_suffix(path: HostPath, media_type: Optional[str]) -> None:
    """Refuses the suffix of another kind of video, which players would believe."""
    suffix = Path(path).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if kind is not None and media_type is not None and kind != media_type:
        raise ValueError(f"The video is {media_type}, not {suffix}: make it with media_type={kind!r}.")


async def start_video(
    api: Api, sid: str, images: Optional[Sequence[str]], media_type: str, options: Mapping[str, Any]
) -> str:
    body = {"content-type": media_type, **options}
    if images is not None:
        body["images"] = list(images)
    return await start_job(api, f"/remotes/{escape(sid)}/videos", body)


async def get_status(api: Api, job: str) -> VideoStatus:
    return to_status(_require_video(await get_job(api, job)))


def to_status(job: Job) -> VideoStatus:
    """Of the job itself: its session may have ended, or another program may have started it."""
    if job.error is not None or job.state == "cancelled":
        return VideoStatus(False, False, f"failed: {job.error.detail if job.error else job.state}", job.progress)
    if job.ended:
        return VideoStatus(True, True, "ready", 1)
    return VideoStatus(True, False, job.message or job.state, job.progress or 0)


async def wait_for_video(
    api: Api, job: str, *, timeout: Optional[float] = None, watch: Callable[[Job], object] = lambda _: None
) -> Job:
    """The record of the job, once the video is ready."""
    return await wait_for_job(api, job, timeout=timeout, check=True, watch=lambda found: watch(_require_video(found)))


def _require_video(job: Job) -> Job:
    if job.kind != "video":
        failure = WindlassError(f"Job {job.id} is a {job.kind}, not a video.", code="no_video")
        failure.job = job.id
        raise failure
    return job


async def fetch_video(api: Api, job: str) -> bytes:
    await wait_for_video(api, job)
    return await _fetch_ready(api, job)


async def _fetch_ready(api: Api, job: str) -> bytes:
    content = io.BytesIO()
    await download(api, _result_path(job), content.write)
    return content.getvalue()


async def save_video(api: Api, job: str, path: HostPath, media_type: Optional[str]) -> Path:
    check_suffix(path, media_type)
    check_target(path)
    check_suffix(path, (await wait_for_video(api, job)).result["type"])
    return await save(path, lambda sink: download(api, _result_path(job), sink))


def _result_path(job: str) -> str:
    return f"/jobs/{escape(job)}/result"


async def render(api: Api, job: str) -> str:
    """HTML that holds the video itself, once it is ready: a notebook's page has no login at the service.

    A large one is behind a link, which ends after a day, as the video does.
    """
    with _telling() as tell:
        # What is ready is not waited for, and a wait would be silent until the next progress.
        found = _require_video(await get_job(api, job))
        if not found.ended:
            tell(found)
        result = (await wait_for_video(api, job, watch=tell)).result
    if result["bytes"] > SHOWN_BYTES:
        link = await make_link(api, f"/api{_result_path(job)}", LINK_SECONDS)
        name = result["type"].replace("/", ".")
        return _play(link) + say(f'A link for a day: client.video("{job}").save("{name}") keeps the video.')
    content = base64.b64encode(await _fetch_ready(api, job)).decode()
    return _play(f"data:{result['type']};base64,{content}")


@contextmanager
def _telling() -> Iterator[Callable[[Job], object]]:
    """Tells in one line of the notebook how far a video is; nothing where its first record is its last."""
    told = ""

    def tell(job: Job) -> None:
        nonlocal told
        if job.ended and not told:
            return
        status = to_status(job)
        text = f"windlass: video {job.id}: {status.progress or 0:.0%}, {status.message}"
        # Spaces hide the rest of a longer one.
        print(f"\r{text:<{len(told)}}", end="", file=sys.stderr, flush=True)
        told = text

    try:
        yield tell
    finally:
        if told:
            print(file=sys.stderr)


def _play(source: str) -> str:
    return f'<video controls style="max-width: 100%" src="{escape_html(source)}"></video>'


def say(text: str) -> str:
    return f"<p>{escape_html(text)}</p>"
