from __future__ import annotations

import asyncio
import base64
import json
import re
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any, Callable, Dict, List

import httpx
import pytest

import windlass
from windlass import Client, Session
from windlass._core.save import save

from .conftest import Service
from .test_retries import Answer, server


@pytest.fixture(scope="module")
def frames(session: Session) -> List[str]:
    draw = "mkdir -p frames && cd frames && ffmpeg -y -v error -f lavfi -i testsrc=duration=1:size=160x120 %03d.png"
    session.run(draw).wait().check_returncode()
    folder = session.run("cd frames && pwd").wait().output.strip()
    names = sorted(entry.name for entry in session.browse(folder))
    assert len(names) == 25
    assert session.read_file(f"{folder}/{names[0]}")[:4] == b"\x89PNG"
    return [f"{folder}/{name}" for name in names]


def test_frames_in_the_home(session: Session, frames: List[str]) -> None:
    names = [frame.rpartition("/frames/")[2] for frame in frames]
    some = session.video([f"frames/{name}" for name in names[:5]]).wait()
    every = session.video(pattern="~/frames/%03d.png").wait()
    assert len(some.fetch()) < len(every.fetch())


def test_what_is_chosen_of_the_frames(session: Session, frames: List[str], tmp_path: Path) -> None:
    folder = PurePosixPath(frames[0]).parent
    options: Dict[str, Any] = dict(on_bad_frame="skip", codec="vp9", background="#ffffff", label="name")
    some = session.video(folder / "%03d.png", "video/webm", first=2, last=9, step=2, **options)
    with pytest.raises(ValueError, match=r"video/webm, not \.mp4"):
        some.save(tmp_path / "some.mp4")
    assert some.save(tmp_path / "some.webm").read_bytes()[:4] == b"\x1aE\xdf\xa3"
    each = session.video([folder / "001.png", frames[1], folder / "none.png"], on_bad_frame="skip").wait()
    assert each.fetch()[4:8] == b"ftyp"


def test_a_notebook_shows_the_video(session: Session, frames: List[str], tmp_path: Path) -> None:
    video = session.video(frames, fps=25, width=80, label="frame")
    # As a notebook does with the last value of a cell: it waits for it.
    html = video._repr_html_()
    found = re.fullmatch(r'<video controls [^>]*src="data:video/mp4;base64,([^"]+)"></video>', html)
    assert found
    content = base64.b64decode(found.group(1))
    assert content[4:8] == b"ftyp"
    status = video.status()
    assert (status.ok, status.ready, status.progress) == (True, True, 1)
    assert video.fetch() == content
    path = video.save(tmp_path / "out.mp4")
    assert path.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == ["out.mp4"]
    # A file that is replaced keeps its permissions, and a link stays one.
    path.write_bytes(b"before")
    path.chmod(0o600)
    link = tmp_path / "link.mp4"
    link.symlink_to("out.mp4")
    assert video.save(link) == link
    assert link.is_symlink()
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_private_is_never_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"before")
    path.chmod(0o600)
    modes: List[int] = []
    chmod = Path.chmod

    def watch(partial: Path, mode: int) -> None:
        modes.append(partial.stat().st_mode & 0o777)
        chmod(partial, mode)

    async def fetch(write: Callable[[bytes], object]) -> None:
        write(b"new")

    monkeypatch.setattr(Path, "chmod", watch)
    asyncio.run(save(path, fetch))
    assert (modes, path.read_bytes()) == ([0o600], b"new")


def test_a_video_is_had_again_by_its_job(client: Client, session: Session, frames: List[str], tmp_path: Path) -> None:
    made = session.video(frames, "video/webm", name="had again").wait()
    record = next(client.jobs(name="had again"))
    assert record.id == made.job
    for job in (made.job, record):
        video = client.video(job)
        assert video.status().ready
        assert video.fetch() == made.fetch()
        with pytest.raises(ValueError, match=r"video/webm, not \.mp4"):
            video.save(tmp_path / "again.mp4")
        assert "data:video/webm" in video._repr_html_()
    with pytest.raises(windlass.WindlassError, match=f'a video.*client.video."{made.job}"') as raised:
        client.follow(made.job).wait()
    assert raised.value.code == "no_command"
    with pytest.raises(windlass.WindlassError, match="not a video") as raised:
        client.video(session.run("true")).wait()
    assert raised.value.code == "no_video"


def test_a_video_outlives_its_session(service: Service, client: Client, frames: List[str]) -> None:
    with service.open(client) as session:
        video = session.video(frames).wait()
    assert video.status().ready
    assert client.video(video).fetch()[4:8] == b"ftyp"


def test_what_cannot_be_written_is_told_before_the_wait(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    # Nothing answers there: whatever is asked first fails otherwise.
    with Client("http://127.0.0.1:9", token="none") as client:
        for path, kind in (
            ("missing/run.mp4", FileNotFoundError),
            ("file/run.mp4", NotADirectoryError),
            (".", IsADirectoryError),
        ):
            with pytest.raises(kind) as raised:
                client.video("job").save(tmp_path / path)
            assert raised.value.filename == str(tmp_path / path)


def test_a_download_that_is_cut_goes_on(service: Service, proxied: Client, session: Session, frames: List[str]) -> None:
    video = session.video(frames, "video/webm", quality=1).wait()
    whole = video.fetch()
    follower = proxied.video(video).wait()
    service.control(f"cut-after?direction=down&bytes={len(whole) // 2}")
    assert follower.fetch() == whole


def test_a_video_that_fails(session: Session, frames: List[str]) -> None:
    video = session.video([*frames, "/nonexistent.png"])
    with pytest.raises(windlass.JobFailed) as raised:
        video.wait()
    assert raised.value.code == "bad_frames"
    assert "bad_frames" in video._repr_html_()
    with pytest.raises(windlass.WindlassError) as refused:
        session.video(frames, "video/avi")
    assert refused.value.code == "unsupported_video_type"


def test_a_notebook_tells_how_far_a_video_is(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"id": "v1", "kind": "video", "created": "2026-01-01T00:00:00Z"}
    result = {"type": "video/mp4", "bytes": 5 << 20}
    records: List[Dict[str, Any]] = [
        {"state": "queued"},
        {"state": "running", "progress": 0.4, "message": "encoding: frame 100 of 250"},
        {"state": "running", "progress": 0.99, "message": "storing the video"},
        {"state": "succeeded", "progress": 1, "result": result},
    ]
    answers: List[Answer] = [(200, {}, json.dumps({**known, **record}).encode()) for record in records]
    link: Answer = (200, {}, b'{"url": "http://service/v1?token=t"}')
    ready = (answers[-1], answers[-1], link)
    with server(*answers, link, *ready) as (url, _seen), Client(url, token="t") as client:
        html = client.video("v1")._repr_html_()
        told = capsys.readouterr()
        # What is ready is not waited for.
        assert client.video("v1")._repr_html_() == html
        assert capsys.readouterr() == ("", "")
    # More than a notebook's file should hold.
    assert 'src="http://service/v1?token=t"' in html
    assert unescape(html).endswith('<p>A link for a day: client.video("v1").save("video.mp4") keeps the video.</p>')
    assert told.out == ""
    assert [line.rstrip() for line in told.err.split("\r")] == [
        "",
        "windlass: video v1: 0%, queued",
        "windlass: video v1: 40%, encoding: frame 100 of 250",
        "windlass: video v1: 99%, storing the video",
        "windlass: video v1: 100%, ready",
    ]


def test_large_ones_are_linked(session: Session, frames: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass._core.video.SHOWN_BYTES", 100)
    video = session.video(frames)
    found = re.search(r'src="([^"]+)"', video._repr_html_())
    assert found
    # With no other credential.
    assert httpx.get(unescape(found.group(1))).content == video.fetch()


def test_a_batch_job_where_there_is_no_batch_system(session: Session) -> None:
    with pytest.raises(windlass.WindlassError) as raised:
        session.batch("hostname", nodes=1, memory=1 << 30, time=60, options=["--gres=gpu:1"]).wait()
    # The second where the machine has its programs, which reach no cluster.
    assert raised.value.code in ("batch_unavailable", "batch_refused")
