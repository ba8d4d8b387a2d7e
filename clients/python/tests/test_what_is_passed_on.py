"""What one call returns is taken by another; what is sent then, against a server of this process."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib.util import find_spec
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from windlass import Artifact, Client, Job, Model, Project, WindlassError

from .http_server import serve

TIME = "2026-01-01T00:00:00Z"
PROJECT = {"id": "p1", "name": "Weather", "description": "", "role": "writer", "created": TIME, "updated": TIME}
MODEL = {**PROJECT, "id": "m1", "project": "p1", "model-type": "data"}
ARTIFACT = {"aid": "days", "type": "table", "input": False, "size": 9, "updated": TIME}
ANSWERS: Dict[str, Any] = {
    "GET /api/projects": {"items": [PROJECT]},
    "GET /api/projects/p1/models": {"items": [MODEL]},
    "POST /api/projects/p1/models": {"id": "m2"},
    "GET /api/models/m1": {"artifacts": [ARTIFACT]},
    "GET /api/jobs": {"items": []},
    "POST /api/remotes/s1/videos": {"job": "j1"},
    "POST /api/remotes/s1/batch": {"id": "j1"},
    "POST /api/remotes/launch": {"id": "j1"},
    "POST /api/projects": {"id": "p2"},
    "POST /api/uploads": {"id": "u1"},
}

Requests = List[Tuple[str, Any]]


@contextmanager
def server() -> Iterator[Tuple[Client, Requests]]:
    """A client of it, and what it was asked."""
    asked: Requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"null"))

        def _answer(self, body: Any) -> None:
            asked.append((self.path, body))
            found = ANSWERS.get(f"{self.command} {self.path.partition('?')[0]}")
            content = json.dumps(found or {"code": "not_found", "detail": "No.", "status": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    with serve(Handler) as url, Client(url, token="t") as client:
        yield client, asked


@pytest.mark.parametrize("frames", ["/data/*.png", "/data/f%03d.png"])
def test_one_text_with_a_place_for_numbers_is_a_pattern(frames: str) -> None:
    with server() as (client, asked):
        assert client.session("s1").video(frames).job == "j1"
        assert client.session("s1").video(pattern=frames).job == "j1"
    given = {"content-type": "video/mp4", "pattern": frames}
    assert asked == [("/api/remotes/s1/videos", given)] * 2


def test_one_other_text_is_the_only_frame() -> None:
    with server() as (client, asked):
        client.session("s1").video("/data/f.png")
        client.session("s1").video(["/data/f*.png"])
    assert [body["images"] for _, body in asked] == [["/data/f.png"], ["/data/f*.png"]]


def test_frames_are_paths_and_what_is_chosen_of_them() -> None:
    folder = PurePosixPath("/data/50%damping")
    with server() as (client, asked):
        session = client.session("s1")
        session.video(folder / "f%d.png", first=1, last=9, step=2, on_bad_frame="skip", codec="av1")
        session.video([folder / "f.png"], background="#ffffff")
        session.video(folder / "f.png")
        video = session.video(["/f.png"], "video/webm")
        with pytest.raises(ValueError, match=r"video/webm, not \.mp4"):
            video.save("out.mp4")
    mp4 = {"content-type": "video/mp4"}
    frame = "/data/50%damping/f.png"
    chosen = {"first": 1, "last": 9, "step": 2, "on-bad-frame": "skip", "codec": "av1"}
    assert [body for _, body in asked][:3] == [
        {**mp4, **chosen, "pattern": "/data/50%damping/f%d.png"},
        {**mp4, "background": "#ffffff", "images": [frame]},
        {**mp4, "images": [frame]},
    ]
    assert len(asked) == 4


def test_paths_on_the_host_are_texts_or_paths() -> None:
    with server() as (client, asked):
        session = client.session("s1")
        session.run("true", cwd=PurePosixPath("/data"))
        # As those of Windows are written there.
        session.batch("true", cwd=PureWindowsPath("/data/runs"))
        with pytest.raises(WindlassError):
            session.browse(PurePosixPath("/data"))
        with pytest.raises(WindlassError):
            session.read_file(PurePosixPath("/data/a"))
    assert [body["cwd"] for _, body in asked[:2]] == ["/data", "/data/runs"]
    assert [path for path, _ in asked[2:]] == ["/api/remotes/s1/browse/data", "/api/remotes/s1/file/data/a"]


def test_values_of_numpy_are_those_of_json() -> None:
    numpy = pytest.importorskip("numpy")
    with server() as (client, asked):
        client.session("s1").video("/f%d.png", first=numpy.int64(3), fps=numpy.float32(2.5))
        client.request("POST", "/projects", {"list": numpy.array([1, 2])})
    assert (asked[0][1]["first"], asked[0][1]["fps"], asked[1][1]) == (3, 2.5, {"list": [1, 2]})


def test_what_json_has_no_value_for_is_refused() -> None:
    with server() as (client, asked), pytest.raises(WindlassError, match=r"\{1, 2\} is no value of JSON") as raised:
        client.request("POST", "/projects", {"list": {1, 2}})
    assert (raised.value.code, asked) == ("invalid_input", [])


def test_a_part_is_of_whole_numbers() -> None:
    with server() as (client, asked):
        read = client.session("s1").read_file
        for wrong in ({"start": 2.5}, {"length": 2.5}, {"start": float("nan")}):
            with pytest.raises(TypeError, match="integer"):
                read("/f", **wrong)  # type: ignore[call-overload]
        for negative in ({"start": -3}, {"length": -1}):
            with pytest.raises(ValueError, match="at least 0"):
                read("/f", **negative)
    assert asked == []


def test_a_negative_limit_is_refused() -> None:
    with server() as (client, asked):
        with pytest.raises(ValueError, match="limit is -1"):
            list(client.jobs(limit=-1))
        if find_spec("pandas"):
            with pytest.raises(ValueError, match="limit is -1"):
                client.table("m1", "days").to_pandas(limit=-1)
    assert asked == []


def test_a_pattern_is_given_once() -> None:
    with server() as (client, asked), pytest.raises(ValueError, match="pattern"):
        client.session("s1").video("/data/*.png", pattern="/data/*.png")
    assert asked == []


def test_projects_models_and_artifacts_are_passed_on() -> None:
    with server() as (client, asked):
        [project] = client.projects()
        [model] = client.models(project)
        [artifact] = client.artifacts(model)
        assert [type(found) for found in (project, model, artifact)] == [Project, Model, Artifact]
        assert client.create_model(project, "another") == "m2"
        table = client.table(model, artifact)
        assert (table.model, table.aid) == ("m1", "days")
        found: List[Job] = list(client.jobs(project=project, model=model))
        assert found == []
        client.session("s1").video(["/f.png"], project=project, key="k")
        # It takes no parts.
        with pytest.raises(WindlassError):
            client.upload(io.BytesIO(b"a"), model, artifact)
    paths = [path for path, _ in asked]
    assert paths[:4] == [
        "/api/projects",
        "/api/projects/p1/models",
        "/api/models/m1",
        "/api/projects/p1/models",
    ]
    assert paths[4] == "/api/jobs?project=p1&model=m1"
    assert asked[5][1]["project"] == "p1"
    assert (asked[6][1]["mid"], asked[6][1]["aids"]) == ("m1", ["days"])
