"""Against a real service, which `test/clients/python.test.ts` starts and tells of in the environment."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import pytest

import windlass


@dataclass(frozen=True)
class Service:
    url: str
    #: The same through a proxy whose links `control()` cuts.
    proxied: str
    #: Of the environment, which goes by itself to `url` alone.
    token: str
    user: str
    password: str
    host: str
    account: str
    key: Path
    #: The account's home on the host, which is this machine.
    home: Path
    _control: str

    def control(self, name: str) -> Any:
        """Asks whoever started the service for something, such as `kill-api`."""
        request = urllib.request.Request(f"{self._control}/{name}", method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def open(self, client: windlass.Client) -> windlass.Session:
        return client.open(self.host, self.account, private_key=self.key)


@pytest.fixture(scope="session")
def service() -> Service:
    found = os.environ
    return Service(
        url=found["WINDLASS_URL"],
        proxied=found["WINDLASS_TEST_PROXY"],
        token=found["WINDLASS_TOKEN"],
        user=found["WINDLASS_TEST_USER"],
        password=found["WINDLASS_TEST_PASSWORD"],
        host="host",
        account=found["WINDLASS_TEST_ACCOUNT"],
        key=Path(found["WINDLASS_TEST_KEY"]),
        home=Path(found["WINDLASS_TEST_HOME"]),
        _control=found["WINDLASS_TEST_CONTROL"],
    )


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[windlass.Client]:
    """By the address and the token in the environment."""
    with windlass.Client() as client:
        yield client


@pytest.fixture(scope="session")
def session(service: Service, client: windlass.Client) -> Iterator[windlass.Session]:
    with service.open(client) as session:
        yield session


@pytest.fixture
def proxied(service: Service) -> Iterator[windlass.Client]:
    """A client whose links can be cut."""
    service.control("heal")
    with windlass.Client(service.proxied, token=service.token) as client:
        yield client
    service.control("heal")
