from __future__ import annotations

import asyncio
from subprocess import CalledProcessError
from typing import List

import pytest

import windlass
from windlass import Client, Line, Session


def test_lines_come_as_they_are_printed(session: Session) -> None:
    run = session.run(
        "read word; echo first $word; until test -e go; do sleep 0.02; done; rm go; echo second", stdin="w\n"
    )
    lines = iter(run)
    assert next(lines) == Line("stdout", "first w")
    # Only a line that came before the end lets it go on.
    session.run("touch go").wait()
    assert list(lines) == [Line("stdout", "second")]


def test_both_streams_and_the_exit_status(session: Session) -> None:
    run = session.run("echo out; echo err >&2; printf 'no end'; exit 3", name="streams")
    assert sorted((line.stream, line.text) for line in run) == [
        ("stderr", "err"),
        ("stdout", "no end"),
        ("stdout", "out"),
    ]
    result = run.wait()
    assert (result.returncode, result.output, result.errors) == (3, "out\nno end", "err\n")
    assert result.job == run.job
    with pytest.raises(CalledProcessError) as raised:
        result.check_returncode()
    assert (raised.value.returncode, raised.value.stderr) == (3, "err\n")


def test_options(session: Session) -> None:
    run = session.run('pwd; echo "$GREETING"; cat', cwd="/usr", env={"GREETING": "grüß"}, stdin="in\nput")
    assert run.wait().output == "/usr\ngrüß\nin\nput"


def test_output_that_is_no_text(session: Session, client: Client) -> None:
    run = session.run(r"printf 'a\377b\303\251\r\nc'")
    assert list(run) == [Line("stdout", "a\ufffdbé"), Line("stdout", "c")]
    assert client.output(run) == b"a\xffb\xc3\xa9\r\nc"
    assert client.output(run.job, offset=3) == b"\xc3\xa9\r\nc"


def test_wait_for_a_long_one_without_reading_it(session: Session) -> None:
    result = session.run("sleep 1; seq 200000").wait()
    assert result.output == "".join(f"{n}\n" for n in range(1, 200_001))


def test_a_result_has_the_first_10_mib_of_each_stream(session: Session, client: Client) -> None:
    run = session.run("head -c 11000000 /dev/zero | tr '\\0' a; echo err >&2")
    result = run.wait()
    assert (len(result.output), result.errors, result.truncated) == (10 << 20, "err\n", True)
    assert len(client.output(run)) == 11_000_000
    assert not session.run("head -c 10485760 /dev/zero").wait().truncated


def test_a_time_out_of_waiting_ends_nothing(session: Session, client: Client) -> None:
    run = session.run("sleep 2; echo done")
    with pytest.raises(TimeoutError) as raised:
        run.wait(timeout=0.2)
    assert isinstance(raised.value, windlass.WaitTimeout)
    assert isinstance(raised.value, windlass.WindlassError)
    assert (raised.value.code, raised.value.job) == ("wait_timeout", run.job)
    assert str(raised.value).startswith(f"Job {run.job} has not ended within 0.2 s. ")
    assert run.wait(timeout=30).output == "done\n"


def test_cancel(session: Session, client: Client) -> None:
    run = session.run("echo begun; sleep 600")
    lines = iter(run)
    assert next(lines).text == "begun"
    assert run.cancel() is True
    assert list(lines) == []
    with pytest.raises(windlass.JobFailed) as raised:
        run.wait()
    assert raised.value.code == "cancelled"
    assert (raised.value.record.state, raised.value.job) == ("cancelled", run.job)
    assert client.cancel(run) is False
    assert client.wait(run).state == "cancelled"


def test_a_command_that_does_not_reach_its_end(session: Session) -> None:
    with pytest.raises(windlass.JobFailed) as raised:
        session.run("sleep 600", timeout=0.5).wait()
    assert raised.value.code == "time_limit"
    assert raised.value.record.state == "failed"


def test_where_an_event_loop_runs(session: Session) -> None:
    """As in a notebook."""

    async def cell() -> List[str]:
        return [next(iter(session.run("seq 3"))).text, *(line.text for line in session.run("seq 2"))]

    assert asyncio.run(cell()) == ["1", "1", "2"]


def test_events(session: Session) -> None:
    events = list(session.run("echo hello").events())
    output = b"".join(event.data for event in events if isinstance(event, windlass.OutputEvent))
    assert output == b"hello\n"
    states = [event.state for event in events if isinstance(event, windlass.StateEvent)]
    assert states[-1] == "succeeded" and len(states) == len(set(states))


def test_jobs_and_their_filters(session: Session, client: Client) -> None:
    runs = [session.run("true", name="filtered") for _ in range(3)]
    for run in runs:
        run.wait()
    found = list(client.jobs(name="filtered", session=session.sid, state=["succeeded", "failed"]))
    assert [job.id for job in found] == [run.job for run in reversed(runs)]
    assert [job.id for job in client.jobs(name="filtered", session=session.sid, limit=2)] == [
        job.id for job in found[:2]
    ]
    latest = found[0]
    assert (latest.kind, latest.label, latest.host, latest.session) == ("command", "true", "host", session.sid)
    assert latest.created.tzinfo is not None
    assert [job.id for job in client.jobs(name="filtered", session=session.sid, until=found[1].created)] == [
        runs[0].job
    ]
    assert client.job(runs[0]).ended


def test_a_job_of_before_is_followed(session: Session, client: Client) -> None:
    run = session.run("seq 3")
    run.wait()
    assert [line.text for line in client.follow(run.job)] == ["1", "2", "3"]
    assert client.follow(client.job(run)).wait().output == "1\n2\n3\n"
