"""A client that other processes have inherited, as those of `multiprocessing` do on Linux."""

from __future__ import annotations

import multiprocessing
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, Iterator, List, Tuple

import httpx
import pytest

import windlass
from windlass import Client

from .http_server import serve


@contextmanager
def server() -> Iterator[Tuple[str, List[int]]]:
    """Keeps connections open; its address, and the client's port of each request."""
    ports: List[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: Any) -> None:
            pass

    with serve(Handler) as url:
        yield url, ports


def in_child(work: Callable[[], object]) -> int:
    """The exit status of a process that is forked from this one to do it."""
    process = multiprocessing.get_context("fork").Process(target=work)
    with warnings.catch_warnings():
        # Python warns of any fork beside threads, such as the server's.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join(timeout=30)
    assert process.exitcode is not None
    return process.exitcode


def test_a_forked_process_has_connections_of_its_own() -> None:
    with server() as (url, ports), Client(url, token="t") as client:

        def ask_twice() -> None:
            for _ in range(2):
                client.request("GET", "/jobs")

        client.request("GET", "/jobs")
        assert in_child(ask_twice) == 0
        client.request("GET", "/jobs")
    # On one that both have, each would be given the answers of the other.
    parent, child, again, last = ports
    assert (parent, child) == (last, again)
    assert parent != child


def test_a_forked_process_makes_no_other_client_of_given_settings() -> None:
    with server() as (url, ports), httpx.Client() as http, Client(url, token="t", http=http) as client:

        def ask() -> None:
            with pytest.raises(windlass.WindlassError) as raised:
                client.request("GET", "/jobs")
            assert raised.value.code == "forked"

        client.request("GET", "/jobs")
        assert in_child(ask) == 0
        client.request("GET", "/jobs")
    assert len(ports) == 2
