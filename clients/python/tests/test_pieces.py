"""What the client has a host do with the pieces of a file."""

from __future__ import annotations

import os
import uuid

import pytest

import windlass
from windlass import Client
from windlass._core.host_scripts import make_folder
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
