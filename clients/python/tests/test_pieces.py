"""What the client has a host do with the pieces of a file."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import uuid
from pathlib import Path
from typing import Dict, List, Optional

import pytest

import windlass
from windlass import Client
from windlass._core.content import Content
from windlass._core.host_scripts import PieceFolder, join_pieces, make_folder, remove_folder
from windlass._core.local_files import Original
from windlass._core.transport import drive
from windlass._core.write_file import _Sender

from .conftest import Service


def test_a_file_that_a_link_names_in_another_encoding_gets_none(service: Service, client: Client) -> None:
    folder = service.home / uuid.uuid4().hex
    real = os.fsencode(folder) + b"/M\xfcller"
    os.makedirs(real)
    (folder / "link").symlink_to(os.fsdecode(real + b"/file"))
    with service.open(client) as session:
        for target in (folder / "link", folder / "M\ufffdller" / "file"):
            with pytest.raises(windlass.WindlassError) as raised:
                drive(make_folder(session._api, session.sid, str(target), ".windlass-a-b", True))
            assert raised.value.code == "invalid_input"
    assert os.listdir(real) == []
    assert len(os.listdir(folder)) == 2


@pytest.mark.parametrize(("asked", "kept", "otherwise"), [(None, 0o640, 0o600), (0o660, 0o660, 0o660)])
def test_a_file_keeps_its_group_or_the_group_its_rights(
    service: Service, client: Client, tmp_path: Path, asked: Optional[int], kept: int, otherwise: int
) -> None:
    groups = [4242] if os.getuid() == 0 else [one for one in os.getgroups() if one != os.getgid()]
    if not groups:
        pytest.skip("needs root, or an account with a second group")
    target = service.home / uuid.uuid4().hex
    programs = tmp_path / "chgrp"
    programs.write_text("#!/bin/sh\nexit 1\n")
    programs.chmod(0o755)
    for path, group, mode in (
        (os.environ["PATH"], groups[0], kept),
        (f"{tmp_path}:{os.environ['PATH']}", os.getgid(), otherwise),
    ):
        target.write_text("before")
        os.chown(target, -1, groups[0])
        target.chmod(0o640)
        with client.open(service.host, service.account, private_key=service.key, env={"PATH": path}) as session:
            name = f".windlass-{uuid.uuid4().hex}-b"
            folder = drive(make_folder(session._api, session.sid, str(target), name, True))
            Path(folder.path, "0-5").write_text("after")
            digest = hashlib.sha256(b"after").hexdigest()
            assert drive(join_pieces(session._api, session.sid, folder, ["0-5"], 5, digest, asked))
        found = target.stat()
        assert (target.read_text(), found.st_gid, found.st_mode & 0o777) == ("after", group, mode)


def test_pieces_are_joined_only_in_a_folder_of_the_account_alone(service: Service, client: Client) -> None:
    around = service.home / uuid.uuid4().hex
    around.mkdir()
    around.chmod(0o777)
    digest = hashlib.sha256(b"after").hexdigest()
    with service.open(client) as session:

        def make() -> PieceFolder:
            name = f".windlass-{uuid.uuid4().hex}-once"
            folder = drive(make_folder(session._api, session.sid, str(around / "file"), name, False))
            Path(folder.path, "0-5").write_text("after")
            return folder

        def refuse(folder: PieceFolder) -> None:
            with pytest.raises(windlass.WindlassError) as raised:
                drive(join_pieces(session._api, session.sid, folder, ["0-5"], 5, digest))
            assert raised.value.code == "not_written"
            drive(remove_folder(session._api, session.sid, folder))

        linked = make()
        assert Path(linked.path).stat().st_mode & 0o777 == 0o700
        away = Path(linked.path).rename(around / "away")
        Path(linked.path).symlink_to(away)
        refuse(linked)
        assert os.listdir(away) == ["0-5"]
        opened = make()
        Path(opened.path).chmod(0o770)
        (Path(opened.path) / "notes").write_text("notes")
        refuse(opened)
        assert sorted(os.listdir(opened.path)) == ["0-5", "notes"]
        assert not (around / "file").exists()


def test_where_modes_are_not_kept_no_folder_stays(
    service: Service, client: Client, proxied: Client, tmp_path: Path
) -> None:
    folder = service.home / uuid.uuid4().hex
    folder.mkdir()
    programs = tmp_path / "ls"
    # As on a share whose modes are those of its mount.
    programs.write_text("#!/bin/sh\necho 'drwxrwxrwx 2 0 0 .'\n")
    programs.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with client.open(service.host, service.account, private_key=service.key, env={"PATH": path}) as session:
        with pytest.raises(windlass.WindlassError, match="alone"):
            drive(make_folder(session._api, session.sid, str(folder / "file"), ".windlass-a-b", True))
        assert os.listdir(folder) == []
        # A file whose link is cut goes as one then.
        data = os.urandom(4 << 20)
        service.control(f"throttle?direction=up&bytes={2 << 20}")
        cutter = threading.Thread(target=cut_twice, args=[service])
        cutter.start()
        file = str(folder / "file")
        assert proxied.session(session.sid).write_file(file, io.BytesIO(data)).size == len(data)
        cutter.join()
    assert os.listdir(folder) == ["file"]
    assert Path(file).read_bytes() == data


def cut_twice(service: Service) -> None:
    for _ in range(2):
        up = service.control("bytes")["up"]
        service.control(f"cut-after?direction=up&bytes={1 << 20}")
        while service.control("bytes")["up"] < up + (1 << 20):
            pass


def test_a_piece_goes_through_no_link(service: Service, client: Client) -> None:
    around = service.home / uuid.uuid4().hex
    around.mkdir()
    notes = around / "notes"
    nowhere = around / "nowhere"
    notes.write_text("notes")
    data = os.urandom(300_000)
    with service.open(client) as session:
        name = f".windlass-{uuid.uuid4().hex}-once"
        folder = drive(make_folder(session._api, session.sid, str(around / "file"), name, False))
        file = io.BytesIO(data)
        content = Content(file, len(data), start=0, original=Original(file, len(data)))
        for target in (notes, nowhere):
            link = Path(folder.path, "0-262144")
            link.symlink_to(target)
            names = drive(_Sender(session._api, session.sid, folder, content).send())
            assert names == ["0-262144", "262144-37856"]
            link.unlink()
        assert notes.read_text() == "notes"
        assert not nowhere.exists()


def test_only_old_folders_of_pieces_go(service: Service, client: Client) -> None:
    around = service.home / uuid.uuid4().hex
    words = uuid.uuid4().hex
    kept = {".windlass-notes-2025": ["0-4"], f".windlass-{words}-mine": ["0-4", "notes"]}
    gone: Dict[str, List[str]] = {f".windlass-{words}-once": ["0-4", "whole"], f".windlass-{words}-empty": []}
    for name, files in {**kept, **gone}.items():
        (around / name).mkdir(parents=True)
        for file in files:
            (around / name / file).write_text("text")
        os.utime(around / name, (0, 0))
    with service.open(client) as session:
        name = f".windlass-{uuid.uuid4().hex}-once"
        drive(make_folder(session._api, session.sid, str(around / "file"), name, False))
    assert set(os.listdir(around)) == {*kept, name}
    assert {one: sorted(os.listdir(around / one)) for one in kept} == kept
