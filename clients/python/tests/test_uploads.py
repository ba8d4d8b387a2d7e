from __future__ import annotations

import hashlib
import io
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Dict, List

import pytest

import windlass
from windlass import Client, UploadProgress, WindlassError
from windlass._core.transport import drive

from .conftest import Service

PART = 100_000


def make_model(client: Client) -> str:
    return client.create_model(client.create_project(f"uploads {time.time_ns()}"), "files")


def make_file(folder: Path, size: int) -> Path:
    path = folder / "run.dat"
    path.write_bytes(random.Random(size).randbytes(size))
    return path


def fetch(client: Client, model: str, aid: str) -> bytes:
    from windlass._core.download import download

    found = io.BytesIO()
    drive(download(client._api, f"/models/{model}/files/{aid}", found.write))
    return found.getvalue()


def test_a_file_arrives_as_it_is(client: Client, tmp_path: Path) -> None:
    path = make_file(tmp_path, 12 * PART + 1)
    told: List[UploadProgress] = []
    model = make_model(client)
    upload = client.upload(path, model, part_size=PART, progress=told.append)
    assert (upload.model, upload.aid) == (model, "run.dat")
    assert client.job(upload).state == "succeeded"
    assert hashlib.sha256(fetch(client, model, "run.dat")).digest() == hashlib.sha256(path.read_bytes()).digest()
    assert [one.sent for one in told] == sorted(one.sent for one in told)
    assert (len(told), told[-1].sent, told[-1].total) == (13, 12 * PART + 1, 12 * PART + 1)


@pytest.mark.parametrize("size", [5 * PART, 2 * PART, PART + 1, 6 * PART])
def test_of_two_states_of_a_file_nothing_is_made(client: Client, tmp_path: Path, size: int) -> None:
    path = make_file(tmp_path, 5 * PART)
    model = make_model(client)

    def change(told: UploadProgress) -> None:
        if told.sent == PART:
            with path.open("r+b") as file:
                file.write(b"x" * size)
                file.truncate()

    with pytest.raises(windlass.WindlassError, match="has changed while it was sent") as raised:
        client.upload(path, model, part_size=PART, parallel=1, progress=change)
    assert raised.value.code == "changed"
    # With parts of the other state nothing is made of it either.
    with pytest.raises(windlass.WindlassError) as refused:
        client.upload(path, model, resume=raised.value.upload)
    assert refused.value.code == "other_files"


def test_bytes_that_get_fewer_meanwhile(client: Client) -> None:
    data = io.BytesIO(b"a" * 5 * PART)
    with pytest.raises(windlass.WindlassError, match="has changed while it was sent"):
        client.upload(
            data,
            make_model(client),
            "some",
            part_size=PART,
            parallel=1,
            progress=lambda told: data.truncate(2 * PART) and None,
        )


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1])
def test_files_of_any_length(client: Client, size: int) -> None:
    data = os.urandom(size)
    model = make_model(client)
    client.upload(io.BytesIO(data), model, "some/name", part_size=PART)
    assert fetch(client, model, "some%2Fname") == data


def test_a_pipe_whose_length_nobody_knows(client: Client) -> None:
    read, write = os.pipe()
    os.write(write, b"a" * 3_000)
    os.close(write)
    told: List[UploadProgress] = []
    model = make_model(client)
    with open(read, "rb") as file:
        with pytest.raises(ValueError, match="aid"):
            client.upload(file, model)
        client.upload(file, model, "piped", part_size=1_000, progress=told.append)
    assert fetch(client, model, "piped") == b"a" * 3_000
    assert told[-1].total is None


def test_a_part_whose_link_is_cut_is_sent_again(service: Service, proxied: Client, tmp_path: Path) -> None:
    path = make_file(tmp_path, 40 * PART)
    model = make_model(proxied)

    def cut(told: UploadProgress) -> None:
        if told.sent % (8 * PART) == 0:
            service.control(f"cut-after?direction=up&bytes={PART // 3}")

    proxied.upload(path, model, part_size=PART, progress=cut)
    assert fetch(proxied, model, "run.dat") == path.read_bytes()


def test_what_gives_no_bytes_begins_no_upload(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    # Where nobody is, so that it is seen before the service is asked.
    with Client("http://127.0.0.1:1", token="none") as nobody, path.open() as text:
        with tempfile.NamedTemporaryFile("w+") as temporary:
            for source, hint in [
                (text, "'rb'"),
                (io.StringIO("a\n1\n"), "'rb'"),
                (temporary, "'rb'"),
                (b"a\n1\n", "BytesIO"),
            ]:
                with pytest.raises(WindlassError, match=hint):
                    nobody.upload(source, "model", "a")  # type: ignore[arg-type]


def test_an_upload_that_broke_is_resumed(service: Service, client: Client, tmp_path: Path) -> None:
    path = make_file(tmp_path, 30 * PART)
    model = make_model(client)
    service.control("heal")
    with Client(service.proxied, token=service.token, patience=0.5) as proxied:

        def break_off(told: UploadProgress) -> None:
            if told.sent == 10 * PART:
                service.control("refuse")

        try:
            with pytest.raises(windlass.Unreachable) as raised:
                proxied.upload(path, model, part_size=PART, parallel=1, progress=break_off)
        finally:
            service.control("heal")
    uid = raised.value.upload
    assert uid is not None
    before = client.request("GET", f"/uploads/{uid}")
    assert (before["state"], len(before["parts"])) == ("open", 10)
    # Sent again is only what is missing, whatever size is asked for now.
    up = service.control("bytes")["up"]
    with Client(service.proxied, token=service.token) as proxied:
        upload = proxied.upload(path, model, resume=uid)
    assert 20 * PART < service.control("bytes")["up"] - up < 20.5 * PART
    assert upload.id == uid
    assert fetch(client, model, "run.dat") == path.read_bytes()
    # Once more finds it done, under another name of the file, too.
    renamed = path.rename(tmp_path / "renamed.dat")
    again = client.upload(renamed, model, resume=uid)
    assert (again.job, again.model, again.aid) == (upload.job, model, "run.dat")
    for others in (("m1", None), (model, "other.dat")):
        with pytest.raises(ValueError, match=f"^Upload {uid} makes run.dat in model {model}"):
            client.upload(renamed, *others, resume=uid)
    path = renamed
    data = path.read_bytes()
    for other, said in (data[1:], "bytes were sent, and this one has"), (b"x" + data[1:], "and not the same ones"):
        with pytest.raises(windlass.WindlassError, match=said) as refused:
            client.upload(io.BytesIO(other), model, "run.dat", resume=uid)
        assert refused.value.code == "other_files"


def test_an_open_upload_is_resumed_with_no_other_file(client: Client) -> None:
    data = bytes(range(20))
    model = make_model(client)
    uid = begin_upload(client, model, data, {0: 4, 1: 4, 3: 4})
    before = client.request("GET", f"/uploads/{uid}")["parts"]
    for other, said in (
        (b"other bytes, as many.", "its bytes 0 to 4 are not those that were sent"),
        (data[:6] + b"x" + data[7:], "its bytes 4 to 8 are not those that were sent"),
        (data[:6], "8 bytes or more were sent, and this one has 6"),
    ):
        with pytest.raises(WindlassError, match=said) as refused:
            client.upload(io.BytesIO(other), model, "odd", resume=uid)
        assert refused.value.code == "other_files"
    assert client.request("GET", f"/uploads/{uid}")["parts"] == before
    client.upload(io.BytesIO(data), model, "odd", resume=uid)
    assert fetch(client, model, "odd") == data


def begin_upload(client: Client, model: str, data: bytes, lengths: Dict[int, int]) -> str:
    """An upload that has parts of these lengths, by their numbers."""
    body = {"mid": model, "aids": ["odd"], "parser": "blob", "input": True}
    uid = str(client.request("POST", "/uploads", body=body)["id"])
    begin = 0
    for number, length in lengths.items():
        content = data[begin : begin + length]
        headers = {"Content-Type": "application/octet-stream"}
        drive(client._api.request("PUT", f"/uploads/{uid}/files/0/parts/{number}", content=content, headers=headers))
        begin += length
    return uid


@pytest.mark.parametrize(
    "lengths",
    [
        {0: 4, 1: 4, 2: 2, 3: 2},  # made smaller by another client
        {0: 4, 1: 4, 3: 2, 4: 2},
        {0: 4, 2: 4, 4: 4},
        {9: 1},
        {0: 3},
    ],
)
def test_an_upload_whose_parts_differ_in_size_is_resumed(client: Client, lengths: Dict[int, int]) -> None:
    data = bytes(range(20))
    model = make_model(client)
    uid = begin_upload(client, model, data, lengths)
    upload = client.upload(io.BytesIO(data), model, "odd", part_size=8, resume=uid)
    assert fetch(client, model, "odd") == data
    assert upload.id == uid


def test_parts_get_smaller_where_the_link_is_cut_before_one_is_through(
    service: Service, client: Client, tmp_path: Path
) -> None:
    path = make_file(tmp_path, 5 << 20)
    model = make_model(client)
    told: List[int] = []
    service.control("heal")
    service.control(f"throttle?direction=up&bytes={2 << 20}")
    service.control(f"cut-after?direction=up&bytes={3 << 19}")
    try:
        with Client(service.proxied, token=service.token) as proxied:
            upload = proxied.upload(path, model, progress=lambda progress: told.append(progress.sent))
    finally:
        service.control("heal")
    assert fetch(client, model, "run.dat") == path.read_bytes()
    assert told == sorted(told)
    parts = client.request("GET", f"/uploads/{upload.id}")["parts"]
    assert parts == [] or len(parts) > 3


def test_a_file_that_cannot_be_parsed(client: Client) -> None:
    with pytest.raises(windlass.JobFailed) as raised:
        client.upload(io.BytesIO(b"a,b\n1,2\n3\n"), make_model(client), "bad", parser="csv")
    error = raised.value
    assert error.code == "parse_failed" and error.upload
    assert error.record.error is not None
    assert error.record.error.data["errors"][0]["row"] == 3


def test_what_the_service_refuses(client: Client, tmp_path: Path) -> None:
    with pytest.raises(windlass.WindlassError) as raised:
        client.upload(io.BytesIO(b""), make_model(client), "x", parser="unknown")
    assert (raised.value.status, raised.value.upload) == (400, None)
    with pytest.raises(FileNotFoundError):
        client.upload(tmp_path / "missing", "model")
