"""What the client has a host do with the pieces of a file."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path
from typing import Optional

import pytest

import windlass
from windlass import Client
from windlass._core.host_scripts import join_pieces, make_folder
from windlass._core.transport import drive

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
