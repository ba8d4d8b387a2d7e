from __future__ import annotations

import inspect
import io
import os
import threading
import time
import uuid
from pathlib import Path
from typing import Any, AsyncIterator, List

import anyio
import pytest

import windlass
from windlass import AsyncClient, AsyncSession, Line, UploadProgress

from .conftest import Service
from .test_lost_links import PRINTS, cutting, expect_whole

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
async def proxied(service: Service, anyio_backend: str) -> AsyncIterator[AsyncClient]:
    service.control("heal")
    async with AsyncClient(service.proxied, token=service.token) as client:
        yield client


@pytest.fixture
async def session(service: Service, proxied: AsyncClient) -> AsyncIterator[AsyncSession]:
    async with await proxied.open(service.host, service.account, private_key=service.key) as session:
        yield session


async def test_a_command(session: AsyncSession, proxied: AsyncClient) -> None:
    run = await session.run("echo out; echo err >&2; exit 3", name="async")
    lines = [line async for line in run]
    assert sorted(lines, key=lambda line: line.stream) == [Line("stderr", "err"), Line("stdout", "out")]
    result = await run.wait()
    assert (result.returncode, result.output, result.errors) == (3, "out\n", "err\n")
    assert [job.id async for job in proxied.jobs(session=session.sid, name="async")] == [run.job]
    assert (await session.info()).state == "open"
    assert session.sid in [one.sid for one in await proxied.sessions()]


async def test_a_file_is_written_from_a_file(session: AsyncSession, service: Service, tmp_path: Path) -> None:
    here = tmp_path / "here.bin"
    here.write_bytes(bytes(range(256)) * 12_000)
    target = service.home / f"written-{uuid.uuid4()}.bin"
    await session.write_file(str(target), here)
    assert target.read_bytes() == here.read_bytes()


async def test_commands_at_the_same_time(session: AsyncSession) -> None:
    outputs: List[str] = []

    async def run(number: int) -> None:
        outputs.append((await (await session.run(f"sleep 0.5; echo {number}")).wait()).output)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(run, number)
    assert sorted(outputs) == ["0\n", "1\n", "2\n", "3\n"]


@pytest.mark.long
async def test_no_line_is_missing_or_doubled(service: Service, session: AsyncSession) -> None:
    run = await session.run(PRINTS)
    lines: List[Line] = []
    killer = threading.Thread(target=service.control, args=["kill-api"])
    with cutting(service) as cuts:
        async for line in run:
            lines.append(line)
            if len(lines) == 4_000:
                killer.start()
    killer.join()
    expect_whole(lines)
    assert len(cuts) >= 2


async def test_a_task_that_is_cancelled_stops_following(session: AsyncSession) -> None:
    run = await session.run("echo begun; sleep 600")
    with anyio.move_on_after(60) as scope:
        async for line in run:
            assert line.text == "begun"
            scope.cancel()
    assert scope.cancelled_caught
    assert await run.cancel()
    with pytest.raises(windlass.JobFailed):
        await run.wait()


async def test_an_upload_is_resumed(service: Service, proxied: AsyncClient, tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    project = await proxied.create_project(f"async {time.time_ns()}")
    model = await proxied.create_model(project, "files")

    def break_off(told: UploadProgress) -> None:
        if told.sent == 400_000:
            service.control("refuse")

    async with AsyncClient(service.proxied, token=service.token, patience=0.5) as impatient:
        try:
            with pytest.raises(windlass.Unreachable) as raised:
                await impatient.upload(io.BytesIO(data), model, "a", part_size=100_000, progress=break_off)
        finally:
            service.control("heal")
    upload = await proxied.upload(io.BytesIO(data), model, "a", part_size=100_000, resume=raised.value.upload)
    assert upload.id == raised.value.upload
    assert (await proxied.job(upload)).state == "succeeded"


async def test_a_table(proxied: AsyncClient) -> None:
    model = await proxied.create_model(await proxied.create_project(f"async {time.time_ns()}"), "tables")
    upload = await proxied.upload(io.BytesIO(b"a,b\n1,x\n2,y\n"), model, "t", parser="csv")
    table = proxied.table(upload.model, upload.aid)
    assert (await table.info()).rows == 2
    assert (await table.rows(sort=["-a"])).rows == [[2, "y"], [1, "x"]]
    pytest.importorskip("pandas")
    assert (await table.to_pandas(where=["a:eq:2"])).to_dict("list") == {"a": [2], "b": ["y"]}
    assert (await table.series("a", "a", points=1))["max"].tolist() == [2]
    assert (await table.groupby("b", "sum:a")).to_dict("list") == {"b": ["x", "y"], "sum:a": [1, 2]}
    assert (await table.histogram("b"))["count"].tolist() == [1, 1]


async def test_a_video(session: AsyncSession) -> None:
    folder = "mkdir -p async && cd async && "
    draw = f"{folder}ffmpeg -y -v error -f lavfi -i testsrc=duration=0.2:size=64x48 %d.png"
    await (await session.run(draw)).wait()
    frames = sorted(f"~/async/{entry.name}" for entry in await session.browse("async"))
    video = await session.video(frames)
    assert "show()" in video._repr_html_()
    assert (await video.show())._repr_html_().startswith("<video ")
    assert (await video.fetch())[4:8] == b"ftyp"


@pytest.mark.parametrize("name", ["Client", "Session", "Run", "Table", "Video"])
async def test_both_clients_have_the_same_methods(name: str) -> None:
    sync, mirrored = getattr(windlass, name), getattr(windlass, f"Async{name}")
    for method, function in inspect.getmembers(sync, inspect.isfunction):
        if method.startswith("__"):
            continue
        ours, theirs = inspect.signature(function), inspect.signature(getattr(mirrored, method))
        assert list(ours.parameters.values()) == list(theirs.parameters.values()), method
        # Of a Client the docstring tells what a method does.
        assert function.__doc__ or method.startswith("_"), method
    theirs_alone = {method for method in vars(mirrored) if not hasattr(sync, method)}
    assert theirs_alone <= {"__aenter__", "__aexit__", "__aiter__", "show"}
