from __future__ import annotations

import itertools
import threading
import time
from contextlib import contextmanager
from typing import Iterator, List

import pytest

import windlass
from windlass import Client

from .conftest import Service

pytestmark = pytest.mark.long

LINES = 12_000
#: A line each, of both streams, with a character of several bytes.
PRINTS = f"""
for i in $(seq {LINES}); do
  echo é $i
  if [ $((i % 100)) = 0 ]; then echo ü $i >&2; sleep 0.01; fi
done
"""


def expect_whole(lines: List[windlass.Line]) -> None:
    assert [line.text for line in lines if line.stream == "stdout"] == [f"é {n}" for n in range(1, LINES + 1)]
    assert [line.text for line in lines if line.stream == "stderr"] == [f"ü {n}" for n in range(100, LINES + 1, 100)]


def test_no_line_is_missing_or_doubled_when_links_are_cut(service: Service, proxied: Client) -> None:
    with service.open(proxied) as session:
        run = session.run(PRINTS)
        with cutting(service) as cuts:
            expect_whole(list(run))
    assert len(cuts) >= 5


@contextmanager
def cutting(service: Service) -> Iterator[List[int]]:
    """Cuts each link after some thousand bytes, in the middle of an event or of a character; yields the list of the
    cuts.
    """
    ended = threading.Event()
    cuts: List[int] = []

    def cut_again_and_again() -> None:
        for count in itertools.count(2_001, 457):
            known = service.control("connections")["total"]
            service.control(f"cut-after?direction=down&bytes={count}")
            while service.control("connections")["total"] == known:
                if ended.wait(0.02):
                    return
            cuts.append(count)

    thread = threading.Thread(target=cut_again_and_again)
    thread.start()
    try:
        yield cuts
    finally:
        ended.set()
        thread.join()


def test_a_silent_link_is_given_up(service: Service, proxied: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass._core.events.SILENT_SECONDS", 1.0)
    with service.open(proxied) as session:
        lines = iter(session.run("echo first; sleep 3; echo second"))
        assert next(lines).text == "first"
        service.control("forget")
        assert [line.text for line in lines] == ["second"]


def test_no_line_is_missing_or_doubled_when_the_api_is_killed(service: Service, proxied: Client) -> None:
    with service.open(proxied) as session:
        run = session.run(PRINTS)
        lines = []
        killers = []
        for n, line in enumerate(run):
            lines.append(line)
            if n in (1_000, 7_000):
                killers.append(threading.Thread(target=service.control, args=["kill-api"]))
                killers[-1].start()
        for killer in killers:
            killer.join()
        expect_whole(lines)
        assert run.wait().returncode == 0


def test_waiting_survives_too(service: Service, proxied: Client) -> None:
    with service.open(proxied) as session:
        run = session.run("sleep 2; seq 300000")
        killer = threading.Thread(target=service.control, args=["kill-api"])
        killer.start()
        service.control("cut-after?direction=down&bytes=500000")
        assert run.wait().output == "".join(f"{n}\n" for n in range(1, 300_001))
        killer.join()


def test_a_request_whose_answer_is_lost_runs_once(service: Service, proxied: Client) -> None:
    with service.open(proxied) as session:
        for n in range(5):
            # The status line comes, the rest does not.
            service.control("cut-after?direction=down&bytes=20")
            run = session.run(f"echo {n} >> ran-once")
            assert run.wait().returncode == 0
        assert session.run("cat ran-once; rm ran-once").wait().output == "0\n1\n2\n3\n4\n"


def test_a_login_whose_answer_is_lost_is_begun_again(service: Service, proxied: Client) -> None:
    before = len(proxied.sessions())
    service.control("cut-after?direction=down&bytes=20")
    with service.open(proxied) as session:
        assert session.run("echo in").wait().output == "in\n"
        assert len(proxied.sessions()) - before == 1


def test_a_login_that_the_service_cancels_with_its_link_is_begun_again(service: Service, proxied: Client) -> None:
    def cut_when_sent(up: int) -> None:
        while service.control("bytes")["up"] < up + 700:
            pass
        service.control("cut")

    # A login may have ended before the cut comes.
    for _ in range(10):
        before = len(proxied.sessions())
        cutter = threading.Thread(target=cut_when_sent, args=[service.control("bytes")["up"]])
        cutter.start()
        with service.open(proxied) as session:
            cutter.join()
            assert session.run("echo in").wait().output == "in\n"
            assert len(proxied.sessions()) - before == 1
        ends = [job.state for job in proxied.jobs(kind="connect", limit=2)]
        if ends == ["succeeded", "cancelled"]:
            return
    pytest.fail("No login was cancelled.")


def test_what_is_not_safe_to_repeat_is_not(service: Service, proxied: Client) -> None:
    name = f"once {time.time_ns()}"
    assert proxied.request("GET", "/users/-")
    service.control("cut-after?direction=down&bytes=20")
    with pytest.raises(windlass.Unreachable):
        proxied.request("POST", "/projects", {"name": name})
    names = [one["name"] for one in proxied.request("GET", "/projects", limit=1000)["items"]]
    assert names.count(name) == 1


def test_patience_ends(service: Service) -> None:
    with Client(service.proxied, token=service.token, patience=1) as client:
        assert client.request("GET", "/users/-")
        service.control("refuse")
        try:
            with pytest.raises(windlass.Unreachable):
                client.request("GET", "/users/-")
        finally:
            service.control("heal")
