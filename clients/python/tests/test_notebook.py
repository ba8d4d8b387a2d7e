from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from windlass import Client, OutputEvent, Session, StateEvent
from windlass.records import Event

from .conftest import Service

pytest.importorskip("IPython")


@contextmanager
def cell(folder: Path, text: str, token: str = "") -> Iterator[subprocess.Popen[str]]:
    """Runs a cell in a real IPython."""
    file = folder / "cell.ipy"
    file.write_text(text)
    command = [sys.executable, "-m", "IPython", "--colors=NoColor", "--ext=windlass", str(file)]
    env = {**os.environ, "IPYTHONDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    if token:
        env["WINDLASS_TOKEN"] = token
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_cell_prints_live_in_the_session_that_is_open(service: Service, session: Session, tmp_path: Path) -> None:
    text = f"""%%windlass {service.host} --user {service.account} --cwd {service.home}
echo "first of $(pwd)"
until test -e go; do sleep 0.02; done; rm go
echo last; echo wrong >&2
"""
    with cell(tmp_path, text) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == f"first of {service.home}\n"
        session.run("touch go").wait()
        assert process.stdout.read() == "last\n"
        assert process.stderr.read() == "wrong\n"
        assert process.wait(60) == 0


class Printed(io.StringIO):
    """What is printed, and how much of it was seen at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: List[int] = []

    def flush(self) -> None:
        self.seen.append(self.tell())


def test_why_a_command_waits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from windlass._magic import show

    events: List[Event] = [
        StateEvent("running", None),
        OutputEvent("stdout", 0, b"one\nt"),
        StateEvent("running", None, "waiting: there is no connection to the host"),
        StateEvent("running", None),
        StateEvent("running", None, "waiting: there is no connection to the host"),
        OutputEvent("stdout", 5, b"wo\n"),
        StateEvent("succeeded", None),
    ]
    show(iter(events))
    printed = capsys.readouterr()
    assert printed.out == "one\ntwo\n"
    assert printed.err == "windlass: waiting: there is no connection to the host\n"


def test_output_is_shown_before_its_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from windlass._magic import show

    out, err = Printed(), Printed()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    shown: List[Tuple[str, str]] = []

    def give() -> Iterator[OutputEvent]:
        for stream, data in (
            ("stdout", b"\r1 of 2"),
            ("stderr", b"Go \xc3"),
            ("stdout", b"\r2 of 2"),
            ("stderr", b"\xbcber? "),
            ("stdout", b"\r\n\xc3"),
        ):
            yield OutputEvent(stream, 0, data)
            shown.append((out.getvalue(), err.getvalue()))

    show(give())
    assert shown == [
        ("\r1 of 2", ""),
        ("\r1 of 2", "Go "),
        ("\r1 of 2\r2 of 2", "Go "),
        ("\r1 of 2\r2 of 2", "Go \xfcber? "),
        ("\r1 of 2\r2 of 2\r\n", "Go \xfcber? "),
    ]
    assert out.getvalue() == "\r1 of 2\r2 of 2\r\n\ufffd"


def test_what_was_shown_is_not_fetched_again(
    service: Service, session: Session, proxied: Client, tmp_path: Path
) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell(ipython_dir=str(tmp_path))
    shell.user_ns.update(mine=proxied)
    shell.run_cell("%load_ext windlass")
    before = service.control("bytes")["down"]
    cell = f"%%windlass {service.host} --user {service.account} --client mine\nseq -f %0999.0f 2000\n"
    with capture_output() as captured:
        assert shell.run_cell(cell).success
    assert len(captured.stdout) == 2_000_000
    assert 2_000_000 < service.control("bytes")["down"] - before < 3_000_000


def test_many_lines_are_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    from windlass._magic import show

    printed = Printed()
    monkeypatch.setattr("sys.stdout", printed)
    show(OutputEvent("stdout", 0, f"{n}\n".encode()) for n in range(20_000))
    assert printed.getvalue() == "".join(f"{n}\n" for n in range(20_000))
    assert printed.seen[-1] == len(printed.getvalue())
    assert len(printed.seen) < 100


def test_a_line_before_a_pause_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from windlass._magic import show

    printed = Printed()
    monkeypatch.setattr("sys.stdout", printed)

    def print_and_pause() -> Iterator[OutputEvent]:
        yield OutputEvent("stdout", 0, b"first\n")
        yield OutputEvent("stdout", 6, b"second\n")
        until = time.monotonic() + 30
        while len("first\nsecond\n") not in printed.seen and time.monotonic() < until:
            time.sleep(0.01)
        yield OutputEvent("stdout", 13, b"third\n")

    show(print_and_pause())
    assert len("first\nsecond\n") in printed.seen


def test_a_notebook_that_flushes_itself_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from windlass._magic import show

    class Kernel(Printed):
        #: As `ipykernel.iostream.OutStream` has it.
        flush_interval = 0.2

    printed = Kernel()
    monkeypatch.setattr("sys.stdout", printed)
    show(iter([OutputEvent("stdout", 0, b"a line\n")]))
    assert (printed.getvalue(), printed.seen) == ("a line\n", [])


def test_a_cell_that_fails_says_so(service: Service, session: Session, tmp_path: Path) -> None:
    line = f"%%windlass {service.host} --user {service.account}"
    with cell(tmp_path, f"{line}\necho before; exit 3\n") as process:
        output, errors = process.communicate(timeout=60)
        assert "before\n" in output
        assert "CalledProcessError" in output + errors and "3" in output + errors
    with cell(tmp_path, f"{line} --no-raise-error\nexit 3\n") as process:
        assert process.communicate(timeout=60) == ("", "")


def test_it_opens_a_session_where_none_is_open(service: Service, tmp_path: Path) -> None:
    line = f"%%windlass {service.host} --user {service.account}"
    with newcomer(service) as (client, token):
        with cell(tmp_path, f"{line} --key {service.key}\necho in\n", token) as process:
            assert process.communicate(timeout=60) == ("in\n", "")
        (opened,) = client.sessions()
        with cell(tmp_path, f"{line}\necho again\n", token) as process:
            assert process.communicate(timeout=60) == ("again\n", "")
        assert [one.sid for one in client.sessions()] == [opened.sid]


def test_a_cell_takes_the_account_that_is_logged_in(service: Service, tmp_path: Path) -> None:
    with newcomer(service) as (client, token), service.open(client):
        with cell(tmp_path, f"%%windlass {service.host}\necho as $(id -un)\n", token) as process:
            assert process.communicate(timeout=60) == (f"as {service.account}\n", "")


def test_words_of_a_cells_line_are_quoted_as_in_a_shell(service: Service, session: Session, tmp_path: Path) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    folder = service.home / "two words"
    folder.mkdir()
    shell = InteractiveShell(ipython_dir=str(tmp_path))
    shell.run_cell("%load_ext windlass")
    for written in (f'"{folder}"', f"'{folder}'", str(folder).replace(" ", "\\ ")):
        line = f"%%windlass --user {service.account} --cwd {written} -- {service.host}"
        with capture_output() as captured:
            assert shell.run_cell(f"{line}\npwd\n").success
        assert captured.stdout == f"{folder}\n"
    with capture_output():
        refused = shell.run_cell(f"%%windlass {service.host} --cwd 'two\ntrue\n")
    assert "quotation" in str(refused.error_in_exec)


def test_of_two_accounts_a_cell_takes_neither() -> None:
    from argparse import Namespace

    from IPython.core.error import UsageError

    from windlass._magic import find_session

    class Both:
        def sessions(self) -> List[Namespace]:
            return [Namespace(hostname="lab", username=name, state="open", sid=name) for name in ("root", "ada")]

        def session(self, sid: str) -> Namespace:
            return Namespace(sid=sid)

    both: Any = Both()
    with pytest.raises(UsageError, match="as ada and as root: give --user ada"):
        find_session(both, Namespace(host="lab", user=None, key=None))
    assert find_session(both, Namespace(host="lab", user="ada", key=None)).sid == "ada"


def test_where_nobody_can_be_asked_it_says_what_to_give(service: Service, tmp_path: Path) -> None:
    with newcomer(service) as (_client, token):
        with cell(tmp_path, f"%%windlass {service.host} --user ada\ntrue\n", token) as process:
            output, errors = process.communicate(timeout=60)
            assert f"UsageError: No session is open on {service.host} as ada: give --key FILE." in output + errors


def test_nobody_is_asked_for_the_password_of_a_host_that_is_not_there(service: Service, tmp_path: Path) -> None:
    with cell(tmp_path, "%%windlass no-such-host --user ada\ntrue\n") as process:
        output, errors = process.communicate(timeout=60)
        assert "Password" not in output + errors
        assert "UsageError: There is no host no-such-host." in output + errors


@contextmanager
def newcomer(service: Service) -> Iterator[Tuple[Client, str]]:
    """A user of the service who has no session yet, and a token."""
    name, password = f"newcomer-{time.time_ns()}", "a long password"
    with Client(service.url, user=service.user, password=service.password) as administrator:
        administrator.request("POST", "/users", {"username": name, "password": password})
        with Client(service.url, user=name, password=password) as client:
            yield client, client.request("POST", "/users/-/tokens", {"name": "notebook", "scope": "write"})["token"]
        administrator.request("DELETE", f"/users/{name}")


def test_interrupting_a_cell_cancels_its_command(service: Service, tmp_path: Path) -> None:
    line = f"%%windlass {service.host} --user {service.account}"
    with newcomer(service) as (client, token), service.open(client) as session:
        with cell(tmp_path, f"{line}\necho begun; sleep 600\n", token) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        (job,) = client.jobs(session=session.sid, kind="command")
        assert client.wait(job, timeout=30).state == "cancelled"


def test_a_cell_takes_the_token_of_a_later_login(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    with newcomer(service) as (client, token), service.open(client):
        shell = InteractiveShell(ipython_dir=str(tmp_path))
        shell.run_cell("%load_ext windlass")

        def run(token: str) -> bool:
            monkeypatch.setenv("WINDLASS_TOKEN", token)
            with capture_output():
                return bool(shell.run_cell(f"%%windlass {service.host} --user {service.account}\ntrue\n").success)

        assert run(token)
        (known,) = client.request("GET", "/users/-/tokens")["items"]
        client.request("DELETE", f"/users/-/tokens/{known['id']}")
        assert not run(token)
        later = client.request("POST", "/users/-/tokens", {"name": "later", "scope": "write"})["token"]
        assert run(later)


def test_a_client_of_a_variable(service: Service, tmp_path: Path) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    with newcomer(service) as (client, _token), service.open(client) as session:
        shell = InteractiveShell(ipython_dir=str(tmp_path))
        shell.user_ns.update(mine=client, other=1)
        shell.run_cell("%load_ext windlass")
        with capture_output() as captured:
            done = shell.run_cell(f"%%windlass {service.host} --user {service.account} --client mine\necho mine\n")
        assert (captured.stdout, done.success) == ("mine\n", True)
        with capture_output():
            refused = shell.run_cell(f"%%windlass {service.host} --client other\necho\n")
        assert not refused.success and "other" in str(refused.error_in_exec)
        assert [job.label for job in client.jobs(session=session.sid, kind="command")] == ["echo mine"]
