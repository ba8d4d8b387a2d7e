from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import subprocess
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from pathlib import Path, PurePosixPath
from typing import Any, Callable, List, Optional

import pytest

import windlass
from windlass import Client, Session

from .conftest import Service
from .http_server import serve


def test_a_session_ends_with_its_block(service: Service, client: Client) -> None:
    with client.open(service.host, service.account, private_key=service.key.read_text()) as session:
        info = session.info()
        assert (info.sid, info.hostname, info.username, info.state) == (session.sid, "host", service.account, "open")
        assert session.sid in [one.sid for one in client.sessions()]
        assert client.session(session.sid).run("echo $HOME").wait().output == f"{service.home}\n"
    assert session.sid not in [one.sid for one in client.sessions()]
    with pytest.raises(windlass.WindlassError) as raised:
        session.run("true")
    assert (raised.value.status, raised.value.code) == (404, "session_not_found")
    session.close()


def test_a_login_says_how_commands_are_run(service: Service, client: Client) -> None:
    with client.open(
        service.host, service.account, private_key=service.key, env={"WORD": "mine"}, startup="each"
    ) as session:
        info = session.info()
        assert (info.startup, info.env) == ("each", ["WORD"])
        assert session.run("echo $WORD").wait().output == "mine\n"
        assert session.run("echo $WORD", env={"WORD": "own"}).wait().output == "own\n"


def test_a_login_on_jump_hosts_is_sent_and_not_shown(service: Service, client: Client) -> None:
    first = windlass.Jump("grace", private_key=service.key.read_text())
    jump = windlass.Jump("ada", "secret", jump=first)
    assert repr(jump) == "Jump(username='ada', jump=Jump(username='grace', jump=None))"
    with pytest.raises(windlass.WindlassError) as raised:
        client.open(service.host, service.account, private_key=service.key, jump=jump)
    # The host here has none.
    assert raised.value.fields[0]["field"] == "jump"


def test_user_and_password_instead_of_a_token(service: Service) -> None:
    with Client(service.url + "/", user=service.user, password=service.password) as client:
        assert client.request("GET", "/users/-")["username"] == service.user


def test_the_host_resolves_a_path(service: Service, session: Session) -> None:
    """Not the address of the request, which would name another file, or what is no file at all."""
    home = service.home / uuid.uuid4().hex
    (home / "there" / "sub").mkdir(parents=True)
    (home / "link").symlink_to(home / "there" / "sub")
    session.write_file(f"{home}/link/../odd #?%2F.txt", b"there")
    assert (home / "there" / "odd #?%2F.txt").read_bytes() == b"there"
    assert session.read_file(f"{home}/link/../odd #?%2F.txt") == b"there"
    assert sorted(one.name for one in session.browse(f"{home}/link/..")) == ["odd #?%2F.txt", "sub"]
    with pytest.raises(windlass.WindlassError) as raised:
        session.read_file("/../../../jobs")
    assert "/../../../jobs on the host" in raised.value.detail


def test_errors_say_what_is_wrong(service: Service, client: Client) -> None:
    with pytest.raises(windlass.WindlassError) as raised:
        client.open("nowhere", "nobody", password="x")
    error = raised.value
    assert (error.status, error.code) == (403, "host_not_allowed")
    assert error.detail.startswith("Host not allowed") and error.hint and error.request_id
    assert error.hint in str(error)
    with pytest.raises(windlass.WindlassError) as raised:
        client.request("POST", "/remotes/launch", {"sid": "x"})
    assert raised.value.fields[0]["field"] == "command"
    with Client(service.url, token="wrong") as stranger, pytest.raises(windlass.WindlassError) as raised:
        list(stranger.jobs())
    assert (raised.value.status, raised.value.code) == (401, "unauthorized")


def test_an_address_where_nothing_is() -> None:
    with Client("http://127.0.0.1:9", token="x", patience=0.5) as client:
        with pytest.raises(windlass.Unreachable) as raised:
            client.request("GET", "/users/-")
    assert raised.value.status is None
    assert raised.value.hint == "Is this its address, and is it running?"


def test_what_a_client_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDLASS_URL")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(windlass.WindlassError, match="WINDLASS_URL"):
        Client()
    with pytest.raises(windlass.WindlassError, match="http://"):
        Client("127.0.0.1:8080")
    with pytest.raises(ValueError):
        Client("http://127.0.0.1", token="x", user="y", password="z")
    with pytest.raises(ValueError):
        Client("http://127.0.0.1", user="y")


def test_files_of_the_host(session: Session, service: Service) -> None:
    folder = f"{service.home}/written files"
    written = session.write_file(f"{folder}/ä b.txt", "grüß\n", parents=True, mode=0o640)
    assert (written.path, written.size) == (f"{folder}/ä b.txt", 7)
    assert session.read_file(written.path) == session.read_file(PurePosixPath(written.path)) == "grüß\n".encode()
    (entry,) = session.browse(PurePosixPath(folder))
    assert (entry.name, entry.type, entry.size) == ("ä b.txt", "f", 7)
    assert abs((entry.modified - datetime.now(timezone.utc)).total_seconds()) < 600
    assert session.write_file(PurePosixPath(written.path), "grüß\n") == written
    assert session.run('stat -c %a "ä b.txt"', cwd=PurePosixPath(folder)).wait().output == "640\n"
    with pytest.raises(windlass.WindlassError) as raised:
        session.write_file(written.path, b"", exclusive=True)
    assert raised.value.code == "precondition_failed"
    with pytest.raises(windlass.WindlassError) as raised:
        session.read_file(f"{folder}/missing")
    assert raised.value.status == 404


def test_what_windlass_login_keeps(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = os.environ["WINDLASS_TOKEN"]
    for name in ("WINDLASS_URL", "WINDLASS_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    kept = tmp_path / "windlass" / "login.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps({"url": service.url, "token": token, "username": service.user}))
    with Client() as client:
        assert client.request("GET", "/users/-")["username"] == service.user
    # A token is sent to its own service alone.
    with Client(service.proxied) as other, pytest.raises(windlass.WindlassError) as raised:
        other.request("GET", "/users/-")
    assert raised.value.code == "unauthorized"
    monkeypatch.setenv("WINDLASS_URL", service.proxied)
    with Client() as other, pytest.raises(windlass.WindlassError):
        other.request("GET", "/users/-")


def test_the_token_of_the_environment_goes_to_its_service_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: List[Optional[str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: Any) -> None:
            pass

    def ask(url: Optional[str], token: Optional[str] = None) -> Optional[str]:
        with Client(url, token=token) as client:
            client.request("GET", "/users/-")
        return said.pop()

    monkeypatch.setenv("WINDLASS_TOKEN", "secret")
    with serve(Handler) as url:
        for its_own in (url, f"{url}/", url.replace("http:", "HTTP:")):
            monkeypatch.setenv("WINDLASS_URL", its_own)
            assert ask(None) == ask(url) == "Bearer secret"
        for other in ("https://a.example", f"{url}/path", "no address"):
            monkeypatch.setenv("WINDLASS_URL", other)
            assert ask(url) is None
            assert ask(url, token="other") == "Bearer other"
        kept = tmp_path / "windlass" / "login.json"
        kept.parent.mkdir()
        kept.write_text(json.dumps({"url": url, "token": "kept", "username": "ada"}))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for none in ("", None):
            monkeypatch.setenv("WINDLASS_URL", "") if none == "" else monkeypatch.delenv("WINDLASS_URL")
            for given in (url, None):
                with pytest.raises(windlass.WindlassError, match="WINDLASS_TOKEN is set without WINDLASS_URL"):
                    ask(given)
                assert ask(given, token="other") == "Bearer other"
        monkeypatch.delenv("WINDLASS_TOKEN")
        assert ask(None) == "Bearer kept"


def test_a_key_file_that_is_missing(service: Service, client: Client) -> None:
    with pytest.raises(FileNotFoundError):
        client.open(service.host, service.account, private_key=Path("/nonexistent/key"))


def test_relative_paths_are_in_the_home(service: Service, session: Session) -> None:
    folder = f"relative-{uuid.uuid4()}"
    written = session.write_file(f"{folder}/result.csv", "a\n1\n", parents=True)
    assert written.path == f"{service.home}/{folder}/result.csv"
    assert session.read_file(f"~/{folder}/result.csv") == b"a\n1\n"
    assert [entry.name for entry in session.browse(folder)] == ["result.csv"]
    assert folder in [entry.name for entry in session.browse("~")]
    with pytest.raises(ValueError, match="empty"):
        session.browse("")
    with pytest.raises(windlass.WindlassError, match="give an absolute path") as raised:
        session.browse("~nobody/study")
    assert raised.value.code == "invalid_input"
    session.run(f"rm -r {folder}").wait()


def test_relative_paths_of_an_account_without_a_home_are_refused_in_words_of_their_own(
    service: Service, client: Client
) -> None:
    with client.open(service.host, service.account, private_key=service.key, env={"HOME": "/nowhere"}) as session:
        with pytest.raises(windlass.WindlassError) as raised:
            session.browse("study")
        assert (raised.value.code, raised.value.hint) == ("not_found", "Give an absolute path.")
        assert session.browse(str(service.home))


def test_a_file_is_read_to_a_file_and_in_parts(session: Session, service: Service, tmp_path: Path) -> None:
    path = str(service.home / "numbers.bin")
    data = bytes(range(256)) * 4_000
    session.write_file(path, data)
    target = tmp_path / "here.bin"
    target.write_bytes(b"before")
    assert session.read_file(path, target) == target
    assert target.read_bytes() == data
    assert session.read_file(path, start=10, length=20) == data[10:30]
    assert session.read_file(path, to=target, start=1_000_000) == target
    assert target.read_bytes() == data[1_000_000:]
    assert session.read_file(path, length=0) == b""
    with pytest.raises(windlass.WindlassError):
        session.read_file(f"{path}.missing", target)
    # It is as before, and nothing is left beside it.
    assert target.read_bytes() == data[1_000_000:]
    assert list(tmp_path.iterdir()) == [target]


def test_a_part_of_a_file_whose_link_is_cut_is_asked_for_on(
    session: Session, service: Service, proxied: windlass.Client
) -> None:
    path = str(service.home / "cut.bin")
    data = bytes(range(256)) * 16_000
    session.write_file(path, data)
    service.control("cut-after?direction=down&bytes=2000000")
    part = proxied.session(session.sid).read_file(path, start=100, length=3_900_000)
    assert part == data[100:3_900_100]


def test_a_file_is_written_from_a_file(session: Session, service: Service, tmp_path: Path) -> None:
    path = str(service.home / "written.bin")
    data = bytes(range(256)) * 12_000
    here = tmp_path / "here.bin"
    here.write_bytes(data)
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    assert session.write_file(path, here) == windlass.WrittenFile(path, len(data), digest)
    assert Path(path).read_bytes() == data
    with here.open("rb") as file:
        file.seek(100)
        assert session.write_file(path, file).size == len(data) - 100
    assert Path(path).read_bytes() == data[100:]
    with subprocess.Popen(["printf", "from a pipe"], stdout=subprocess.PIPE) as pipe:
        assert pipe.stdout is not None
        session.write_file(path, pipe.stdout)
    assert Path(path).read_text() == "from a pipe"
    here.write_bytes(b"")
    assert session.write_file(path, here).size == 0
    with pytest.raises(windlass.WindlassError, match="rb"), here.open() as text:
        session.write_file(path, text)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        session.write_file(path, tmp_path / "missing")
    assert Path(path).read_bytes() == b""


def test_a_file_that_changes_while_it_is_written_changes_nothing(
    session: Session, service: Service, tmp_path: Path
) -> None:
    path = service.home / "unchanged.bin"
    path.write_bytes(b"before")

    class Growing(io.FileIO):
        """Its second reading has another first byte."""

        def read(self, size: Optional[int] = -1) -> bytes:
            with open(self.name, "r+b") as other:
                other.write(bytes([readings.append(1) or len(readings)]))  # type: ignore[func-returns-value]
            return super().read(-1 if size is None else size) or b""

    readings: List[int] = []
    here = tmp_path / "here.bin"
    here.write_bytes(b"x" * 1_000)
    with Growing(str(here)) as file, pytest.raises(windlass.WindlassError) as caught:
        session.write_file(str(path), file)
    assert caught.value.code == "changed"
    assert path.read_bytes() == b"before"


def test_hints_are_in_the_words_of_this_client(service: Service, client: Client, session: Session) -> None:
    def hint_of(work: Callable[[], object]) -> str:
        with pytest.raises(windlass.WindlassError) as raised:
            work()
        hint = raised.value.hint or ""
        assert hint and hint in str(raised.value)
        return hint

    folder = service.home / f"missing-{uuid.uuid4()}"
    assert hint_of(lambda: session.write_file(f"{folder}/a", b"")) == "Check the path, or give parents=True to make it."
    ended = client.session("01m8mwkawbyhm3sz7bse6e5we3")
    assert hint_of(lambda: ended.run("true")) == "Open a session with client.open(…)."
    hosts = hint_of(lambda: client.open("no-such-host"))
    assert hosts.startswith('client.request("GET", "/hosts") lists the hosts; ')
    frames = hint_of(lambda: session.video([f"{folder}/a.png"]).wait())
    assert frames.endswith('on_bad_frame="skip" leaves out those that are not.')
    # As the record of the job has it.
    failed = next(client.jobs(kind="video", state="failed", session=session.sid)).error
    assert failed is not None and failed.hint == frames
    pattern = hint_of(lambda: session.video(f"{service.home}/no-such-frames-*.png").wait())
    assert pattern == "Look at the directory with session.browse(path)."
    with Client(service.url, token="revoked") as other:
        assert hint_of(other.projects) == "Log in again: windlass login URL, or give another token."
