"""What is decoded of bytes that are cut anywhere, and what is waited for between two attempts."""

from __future__ import annotations

import pickle
import random
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import List, Tuple

import httpx
import pytest

import windlass
from windlass import Line
from windlass._core.lines import LineAssembler
from windlass._core.patience import Patience, read_retry_after
from windlass._core.sse import EventDecoder


def cut(data: bytes, seed: int) -> List[bytes]:
    choose = random.Random(seed)
    places = sorted(choose.sample(range(len(data) + 1), 12))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)])]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("seed", range(40))
def test_events_that_are_cut_anywhere(end: str, seed: int) -> None:
    stream = end.join(
        [
            *(": a comment", "event: output", "id: 14-0", 'data: {"text": "grüß 𝄞"}', ""),
            *("event:end", "id: 14-0-end", "data:{}", "", "data: a", "data", "data:  b", ""),
            *("event: nothing", "", "unknown: x", "data: last", "", "data: without its end"),
        ]
    )
    decoder = EventDecoder()
    found: List[Tuple[str, str, str]] = []
    for chunk in cut(stream.encode(), seed):
        found += [(one.event, one.id, one.data) for one in decoder.feed(chunk)]
    assert found == [
        ("output", "14-0", '{"text": "grüß 𝄞"}'),
        ("end", "14-0-end", "{}"),
        ("message", "14-0-end", "a\n\n b"),
        ("message", "14-0-end", "last"),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_lines_that_are_cut_anywhere(seed: int) -> None:
    assembler = LineAssembler()
    lines: List[Line] = []
    for chunk in cut("grüß\r\n\n𝄞 zwei\rdrei\nohne Ende".encode(), seed):
        lines += assembler.feed("stdout", chunk)
        lines += assembler.feed("stderr", b"")
    lines += assembler.finish()
    assert lines == [Line("stdout", text) for text in ("grüß", "", "𝄞 zwei\rdrei", "ohne Ende")]


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = datetime.now(timezone.utc) + timedelta(seconds=30)
    cases = {"7": 7, "soon": None, "": None, "Mon, 01 Jan 2001 00:00:00 GMT": 0}
    for text, seconds in cases.items():
        assert read_retry_after(httpx.Response(503, headers={"Retry-After": text})) == seconds
    found = read_retry_after(httpx.Response(503, headers={"Retry-After": format_datetime(soon, usegmt=True)}))
    assert found is not None and 25 < found <= 30


def test_patience() -> None:
    patience = Patience(100)
    pauses = [patience.pause() or 0 for _ in range(8)]
    assert all(0.5 <= pause / limit <= 1 for pause, limit in zip(pauses, (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15)))
    assert patience.pause(httpx.Response(429, headers={"Retry-After": "60"})) == 60
    # Longer than anybody waits.
    assert patience.pause(httpx.Response(429, headers={"Retry-After": "101"})) is None
    assert Patience(0).pause() is None
    patience.shorten(1)
    patience.shorten(1)
    assert patience.pause() is None
    patience.renew()
    assert patience.pause() is not None


def test_errors_can_be_sent_to_another_process() -> None:
    error = windlass.WindlassError("It broke.", status=409, code="conflict", hint="Mend it.", request_id="r")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.request_id) == ("It broke. Mend it. [conflict]", 409, "r")
