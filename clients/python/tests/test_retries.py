"""What is sent again, and when: against a server that answers as it is told, as a proxy before the service does."""

from __future__ import annotations

import json
import ssl
import time
import traceback
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import httpx
import pytest

import windlass
from windlass import Client

from .http_server import serve

Answer = Tuple[int, Dict[str, str], bytes]
JOB = json.dumps({"id": "j1"}).encode()
#: The connection ends without an answer.
LOST: Answer = (0, {}, b"")


class Seen(NamedTuple):
    method: str
    path: str
    headers: Dict[str, str]
    at: float


@contextmanager
def server(*answers: Answer, always: Optional[Answer] = None) -> Iterator[Tuple[str, List[Seen]]]:
    """Answers each request by the next of these, and then by `always`; its address, and what it has seen."""
    seen: List[Seen] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append(Seen(self.command, self.path, dict(self.headers.items()), time.monotonic()))
            status, headers, body = left.pop(0) if left or always is None else always
            if status == 0:
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *args: Any) -> None:
            pass

    with serve(Handler) as url:
        yield url, seen
    assert left == []


def problem(status: int, code: str, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"X-Request-Id": "r1", **names}, json.dumps({"code": code, "detail": "It waits."}).encode()


def test_a_limit_is_waited_for_as_long_as_it_says() -> None:
    with server(problem(429, "too_many_requests", Retry_After="1"), (200, {}, b"{}")) as (url, seen):
        with Client(url, token="t") as client:
            # Not accepted, whatever it is.
            assert client.request("POST", "/projects", {"name": "x"}) == {}
    assert 1 <= seen[1].at - seen[0].at < 2


def test_nobody_waits_longer_than_the_patience() -> None:
    with server(problem(429, "too_many_requests", Retry_After="60")) as (url, _seen):
        with Client(url, token="t", patience=5) as client, pytest.raises(windlass.WindlassError) as raised:
            client.request("GET", "/jobs")
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (429, "too_many_requests", "r1")


def test_what_starts_work_is_repeated_under_its_key() -> None:
    away = problem(503, "unavailable", Retry_After="0")
    proxies: List[Answer] = [(502, {}, b"<html>Bad gateway</html>"), (522, {}, b"<html>Timed out</html>")]
    with server(away, *proxies, (202, {}, JOB)) as (url, seen):
        with Client(url, token="t") as client:
            assert client.session("s1").run("true").job == "j1"
    assert {(one.method, one.path) for one in seen} == {("POST", "/api/remotes/launch")}
    keys = {one.headers["Idempotency-Key"] for one in seen}
    assert len(keys) == 1 and "" not in keys


def test_a_repeated_request_finds_the_end_of_its_first_job() -> None:
    ended = problem(409, "cancelled", Location="/api/jobs/j2")
    with server(problem(503, "unavailable"), ended) as (url, _seen), Client(url, token="t") as client:
        assert client.session("s1").run("true").job == "j2"


def test_an_answer_that_is_no_json_is_its_bytes() -> None:
    answers: List[Answer] = [
        (200, {"Content-Type": "text/csv; charset=utf-8"}, b"a,b\r\n1,2\r\n"),
        (200, {"Content-Type": "application/json; charset=utf-8"}, b'{"a": 1}'),
        (200, {"Content-Type": "text/html"}, b"<p>Log in"),
    ]
    with server(*answers) as (url, _seen), Client(url, token="t") as client:
        assert client.request("GET", "/models/m/files/x.csv") == b"a,b\r\n1,2\r\n"
        assert client.request("GET", "/models/m") == {"a": 1}
        with pytest.raises(windlass.WindlassError) as raised:
            client.request("GET", "/models/m/files/x.csv")
    assert raised.value.code == "not_the_service"


@pytest.mark.parametrize("follow", [lambda run: list(run), lambda run: run.wait()], ids=["lines", "wait"])
def test_who_loses_the_service_keeps_the_job(follow: Callable[[windlass.Run], object]) -> None:
    with server(always=problem(503, "unavailable")) as (url, _seen), Client(url, token="t", patience=0.5) as client:
        with pytest.raises(windlass.WindlassError) as answered:
            follow(client.follow("01m"))
    assert answered.value.job == "01m"
    with server(always=LOST) as (url, _seen), Client(url, token="t", patience=0.5) as client:
        with pytest.raises(windlass.Unreachable) as raised:
            follow(client.follow("01m"))
    assert raised.value.job == "01m"
    assert 'client.follow("01m")' in str(raised.value)
    said = "".join(traceback.format_exception(raised.type, raised.value, raised.tb))
    assert said.count("Traceback") == 1 and "httpcore" not in said


@pytest.mark.parametrize("follow", [lambda run: list(run), lambda run: run.wait()], ids=["lines", "wait"])
def test_whose_token_is_revoked_keeps_the_job(follow: Callable[[windlass.Run], object]) -> None:
    with server(problem(401, "unauthorized")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match=r'client\.follow\("01m"\)') as raised:
            follow(client.follow("01m"))
    assert (raised.value.code, raised.value.job) == ("unauthorized", "01m")
    with server(problem(404, "not_found")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError) as raised:
            follow(client.follow("01m"))
    assert (raised.value.code, raised.value.job) == ("not_found", None)


def test_who_loses_the_output_of_a_command_that_has_ended_keeps_the_job() -> None:
    ended = {"id": "01m", "kind": "command", "state": "succeeded", "created": "2026-01-01T00:00:00Z"}
    answers: List[Answer] = [(200, {}, json.dumps(ended).encode()), problem(401, "unauthorized")]
    with server(*answers) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError) as raised:
            client.follow("01m").wait()
    assert (raised.value.code, raised.value.job) == ("unauthorized", "01m")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("answer", [problem(503, "unavailable"), LOST], ids=["unavailable", "unreachable"])
def test_a_write_without_a_key_is_sent_once(method: str, answer: Answer) -> None:
    """Somebody else's may have come between: a second one would take it back."""
    with server(answer) as (url, seen), Client(url, token="t", patience=1) as client:
        with pytest.raises(windlass.WindlassError) as raised:
            client.request(method, "/models/m/parameters/a", {"value": 1})
    assert raised.value.code == ("unavailable" if answer[0] else "unreachable")
    assert len(seen) == 1


def test_what_changes_nothing_a_second_time_is_repeated() -> None:
    with server(LOST, problem(503, "unavailable"), (202, {}, JOB)) as (url, seen), Client(url, token="t") as client:
        assert client.cancel("j1")
    assert len(seen) == 3
    with server(LOST, (204, {}, b"")) as (url, seen), Client(url, token="t") as client:
        client.session("s1").close()
    assert len(seen) == 2


CANCELLED = problem(409, "cancelled")
OPENED: Answer = (201, {}, b'{"sid": "s1"}')


def test_a_login_that_somebody_has_cancelled_is_not_begun_anew() -> None:
    limit = problem(429, "too_many_requests", Retry_After="0")
    for answers in ((limit, CANCELLED), (LOST, CANCELLED, CANCELLED)):
        with server(*answers) as (url, seen), Client(url, token="t", patience=3) as client:
            with pytest.raises(windlass.WindlassError, match="cancelled"):
                client.open("host", "ada", password="x")
        assert len(seen) == len(answers)
    with server(LOST, CANCELLED, OPENED) as (url, seen), Client(url, token="t") as client:
        assert client.open("host", "ada", password="x").sid == "s1"
    keys = [one.headers["Idempotency-Key"] for one in seen]
    assert keys[0] == keys[1] != keys[2]


def test_a_wait_asks_no_more_often_where_a_proxy_changes_tags() -> None:
    """The service then has a new state for every question, and holds none of them."""
    running = json.dumps(
        {"id": "j1", "kind": "command", "state": "running", "created": "2026-01-01T00:00:00Z"}
    ).encode()
    for always in ((200, {"ETag": '"1-gzip"'}, running), (200, {}, running), (304, {}, b"")):
        with server((200, {}, running), always=always) as (url, seen), Client(url, token="t") as client:
            with pytest.raises(windlass.WaitTimeout) as raised:
                client.wait("j1", timeout=1)
        assert isinstance(raised.value, TimeoutError) and raised.value.job == "j1"
        assert len(seen) < 10


def test_an_answer_that_is_not_the_services() -> None:
    with server((404, {}, b"<html>Nothing here</html>")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError) as raised:
            client.request("GET", "/jobs")
    assert (raised.value.status, raised.value.code) == (404, "http_404")


def test_a_redirect_to_the_object_store_takes_no_credentials() -> None:
    ready = {"id": "v1", "kind": "video", "state": "succeeded", "created": "2026-01-01T00:00:00Z"}
    with server((200, {"ETag": '"e"'}, b"the video")) as (store, stored):
        record: Answer = (200, {}, json.dumps(ready).encode())
        with server(record, (302, {"Location": f"{store}/bucket/v1?signed"}, b"")) as (url, seen):
            with Client(url, token="t") as client:
                video = client.video("v1")
                assert video.fetch() == b"the video"
    assert seen[1].headers["Authorization"] == "Bearer t"
    assert "Authorization" not in stored[0].headers


def test_an_orderly_end_of_a_stream_is_none_of_the_job() -> None:
    """As a service that is replaced by another one ends it: what follows comes from there."""

    def events(*frames: str) -> Answer:
        return 200, {"Content-Type": "text/event-stream"}, "".join(f"{one}\n\n" for one in frames).encode()

    def output(at: str, offset: int, text: str) -> str:
        data = json.dumps({"stream": "stdout", "offset": offset, "text": text})
        return f"event: output\nid: {at}\ndata: {data}"

    first = events('event: state\nid: 0-0\ndata: {"state": "running"}', output("3-0", 0, "a\nb"))
    # It overlaps what was sent, and has an event of a later version.
    second = events("event: later\nid: 3-0\ndata: {}", output("6-0", 2, "b c\n"), "event: end\nid: 6-0-end\ndata: {}")
    with server(first, problem(503, "unavailable"), second) as (url, seen), Client(url, token="t") as client:
        assert [line.text for line in client.follow("j1")] == ["a", "b c"]
    assert [one.headers.get("Last-Event-ID") for one in seen] == [None, "3-0", "3-0"]
    with server(first, (204, {}, b"")) as (url, _seen), Client(url, token="t") as client:
        assert [line.text for line in client.follow("j1")] == ["a", "b"]


def test_the_rest_of_the_end_of_an_output_is_asked_for_by_its_place() -> None:
    """The job prints on: what is counted from the end is elsewhere by then."""
    cut: Answer = (200, {"Output-Offset": "90", "Content-Length": "10"}, b"abcd")
    rest: Answer = (200, {"Output-Offset": "94"}, b"efghijkl")
    with server(problem(503, "unavailable"), cut, rest) as (url, seen), Client(url, token="t") as client:
        assert client.output("j1", offset=-10) == b"abcdefghijkl"
    assert [one.path.partition("offset=")[2] for one in seen] == ["-10", "-10", "94"]


def test_a_video_is_saved_under_the_longest_name(tmp_path: Path) -> None:
    record: Dict[str, Any] = {"id": "v1", "kind": "video", "state": "succeeded", "created": "2026-01-01T00:00:00Z"}
    record["result"] = {"type": "video/mp4", "bytes": 9}
    ready: Answer = (200, {}, json.dumps(record).encode())
    whole: Answer = (200, {}, b"the video")
    with server(ready, whole, ready, whole) as (url, _seen), Client(url, token="t") as client:
        for name in ("v" * 251 + ".mp4", "\N{CJK UNIFIED IDEOGRAPH-6771}" * 85):
            assert client.video("v1").save(tmp_path / name).read_bytes() == b"the video"
            (tmp_path / name).unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_redirect_of_a_write_is_no_success() -> None:
    with server((308, {"Location": "https://elsewhere/"}, b"")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match="https://elsewhere/") as raised:
            client.cancel("j1")
    assert raised.value.code == "not_the_service"


def test_what_is_not_the_service_is_named() -> None:
    page = (200, {"Content-Type": "text/html"}, b"<title>Log in</title>")
    with server(page, page) as (url, seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match="is not Windlass") as followed:
            list(client.follow("j1"))
        with pytest.raises(windlass.WindlassError, match="is not Windlass"):
            client.job("j1")
        assert followed.value.code == "not_the_service"
        assert len(seen) == 2


PAGE: Answer = (200, {"Content-Type": "text/html; charset=utf-8"}, b"<title>Log in</title>")


@pytest.mark.parametrize(
    "work",
    [
        lambda client: client.wait("j1"),
        lambda client: client.cancel("j1"),
        lambda client: client.output("j1"),
        lambda client: client.session("s1").run("true"),
        lambda client: client.session("s1").read_file("/tmp/a"),
        lambda client: client.session("s1").write_file("/tmp/a", b"a"),
        lambda client: client.open("host", "ada", password="x"),
        lambda client: client.upload(__file__, "m1", resume="u1"),
        lambda client: client.table("m1", "a").rows(),
    ],
)
def test_the_page_of_a_proxy_is_no_answer(work: Callable[[Client], object]) -> None:
    """Neither the bytes of a file, nor what was asked for done."""
    with server(PAGE) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match="is not Windlass"):
            work(client)


@pytest.mark.parametrize("timeout", [0, 0.3, 1.3])
def test_a_wait_ends_when_its_time_is_over(timeout: float) -> None:
    running = {"id": "j1", "kind": "command", "state": "running", "created": "2026-01-01T00:00:00Z"}

    class Holding(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # As the service does.
            time.sleep(float(self.headers.get("Prefer", "wait=0").partition("=")[2]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(running).encode())

        def log_message(self, *args: Any) -> None:
            pass

    with serve(Holding) as url, Client(url, token="t") as client:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            client.wait("j1", timeout=timeout)
        assert timeout <= time.monotonic() - begun < timeout + 0.5


def test_a_job_that_has_ended_is_told_however_short_the_time() -> None:
    ended = {"id": "j1", "kind": "command", "state": "succeeded", "created": "2026-01-01T00:00:00Z"}
    with server((200, {}, json.dumps(ended).encode())) as (url, _seen), Client(url, token="t") as client:
        assert client.wait("j1", timeout=0).state == "succeeded"


def test_no_answer_is_waited_for_longer_than_the_wait_for_a_job() -> None:
    running = {"id": "j1", "kind": "command", "state": "running", "created": "2026-01-01T00:00:00Z"}
    begun = time.monotonic()
    away: Answer = (502, {}, b"<html>Bad gateway</html>")
    with server((200, {}, json.dumps(running).encode()), always=away) as (url, _seen):
        with Client(url, token="t") as client, pytest.raises(TimeoutError, match=r"within 0\.5 s: 502 Bad Gateway"):
            client.wait("j1", timeout=0.5)
    assert time.monotonic() - begun < 15


def test_a_token_with_a_line_break_is_that_token() -> None:
    with server((200, {}, b"{}")) as (url, seen), Client(url, token="wdl_a\n") as client:
        client.request("GET", "/jobs")
    assert seen[0].headers["Authorization"] == "Bearer wdl_a"
    with pytest.raises(windlass.WindlassError) as raised:
        Client("http://127.0.0.1:9", token="sécret")
    assert raised.value.code == "no_token" and "sécret" not in str(raised.value)


@pytest.mark.parametrize("url", ["http://", "http://[::1", "ftp://windlass.example.org", "windlass.example.org"])
def test_what_is_no_address_is_told_at_once(url: str) -> None:
    with pytest.raises(windlass.WindlassError, match="is no address"):
        Client(url, token="t")


@pytest.mark.parametrize("job", ["", ".", ".."])
def test_no_other_path_is_asked_for_than_that_of_an_id(job: str) -> None:
    with Client("http://127.0.0.1:9", token="t") as client:
        for ask in (lambda: client.job(job), lambda: client.follow(job).wait(), lambda: list(client.follow(job))):
            with pytest.raises(windlass.WindlassError, match="is no id") as raised:
                ask()
            assert raised.value.code == "no_id"


def test_what_a_proxy_answers_is_told_as_such() -> None:
    with server((404, {"Content-Type": "text/html"}, b"<html>")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match=r"^404 Not Found\. A program before the service said so, "):
            client.request("GET", "/jobs")
    with server((404, {}, JOB)) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match=r"^404 Not Found\. A program"):
            client.request("GET", "/jobs")
    with server((404, {"X-Service-Message": "There is none."}, b"")) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError, match=r"^There is none\. \[http_404\]$"):
            client.request("GET", "/jobs")


def test_a_certificate_that_is_refused_is_told_at_once() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused") from ssl.SSLCertVerificationError("unable to get local issuer certificate")

    with httpx.Client(transport=httpx.MockTransport(refuse)) as http:
        client = Client("https://windlass.test", token="t", http=http)
        before = time.monotonic()
        with pytest.raises(windlass.Unreachable, match="set SSL_CERT_FILE"):
            client.request("GET", "/jobs")
        assert time.monotonic() - before < 1

        for ask in (lambda: client.output("j"), lambda: list(client.follow("j"))):
            before = time.monotonic()
            with pytest.raises(windlass.Unreachable, match="set SSL_CERT_FILE"):
                ask()
            assert time.monotonic() - before < 1


def test_a_port_of_http_is_told_as_such_at_once() -> None:
    with server() as (url, _seen), Client(url.replace("http:", "https:"), token="t") as client:
        for ask in (lambda: client.job("j"), lambda: list(client.follow("j"))):
            before = time.monotonic()
            with pytest.raises(windlass.Unreachable, match="speaks no TLS: is it http://"):
                ask()
            assert time.monotonic() - before < 2


def test_a_proxy_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://ada:secret@127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "localhost")
    with Client("http://windlass.test", token="t", patience=0) as client:
        with pytest.raises(windlass.Unreachable, match=r"names the proxy 127\.0\.0\.1:9: is it running\?") as raised:
            client.job("j")
    assert "secret" not in str(raised.value)
    with Client("http://localhost:9", token="t", patience=0) as client:
        with pytest.raises(windlass.Unreachable, match="Is this its address"):
            client.job("j")


@pytest.mark.parametrize("kind", [windlass.Client, windlass.AsyncClient])
def test_a_file_of_certificates_that_is_not_there_is_named(
    kind: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in (tmp_path / "none.pem", tmp_path):
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        with pytest.raises(windlass.WindlassError, match=f"SSL_CERT_FILE names {path}, which cannot be read") as raised:
            kind("https://windlass.test", token="t")
        assert raised.value.code == "no_certificates"


@pytest.mark.parametrize(
    "answer",
    [(302, {"Location": "/api/jobs"}, b""), (200, {"Content-Encoding": "gzip"}, b"no gzip")],
    ids=["addresses that lead to each other", "a broken encoding"],
)
def test_what_no_service_sends_is_not_the_service(answer: Tuple[int, Dict[str, str], bytes]) -> None:
    with server(always=answer) as (url, _seen), Client(url, token="t") as client:
        with pytest.raises(windlass.WindlassError) as raised:
            client.request("GET", "/jobs")
    assert raised.value.code == "not_the_service"
