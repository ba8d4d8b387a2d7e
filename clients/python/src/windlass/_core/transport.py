"""How the core reaches the service, with an event loop or without one.

The core is coroutines that await nothing but a `Transport`. That of `AsyncClient` awaits the event loop. The methods
of `SyncTransport` block, and return without ever suspending: a coroutine that awaits only these runs to its end at
the first `send(None)`, which `drive()` does. So `Client` needs no event loop, and can be used where one runs, as in
a notebook.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    ContextManager,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Optional,
    Protocol,
    Sequence,
    TypeVar,
    Union,
)

import anyio
import anyio.to_thread
import httpx

from ..errors import WindlassError

T = TypeVar("T")

#: Each job that is followed has a connection of its own as long as it runs: a request must not wait for the end of one.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


def open_http(make: Callable[..., T]) -> T:
    """An `httpx.Client` or an `httpx.AsyncClient` by the settings of the environment."""
    try:
        return make(limits=LIMITS)
    except OSError as cause:
        path = os.environ.get("SSL_CERT_FILE")
        if not path:
            raise
        raise WindlassError(
            f"SSL_CERT_FILE names {path}, which cannot be read: {cause}.",
            code="no_certificates",
            hint="Set it to a file with the certificate of your authority, or unset it.",
        ) from cause


#: Of a request.
Body = Union[bytes, Iterable[bytes], AsyncIterable[bytes]]


class Lock(Protocol):
    def hold(self) -> Any:
        """An asynchronous context manager."""


class Transport(Protocol):
    def build(self, method: str, url: str, **options: Any) -> httpx.Request: ...

    def stream(self, blocks: Callable[[], Iterator[bytes]]) -> Body:
        """The body of a request, whose bytes are read as they are sent, anew each time that it is."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Returns when the headers have arrived. Whoever calls reads the body, or closes.

        A GET is redirected where a video is delivered by the object store; httpx takes no credentials there.
        """

    async def read(self, response: httpx.Response) -> bytes: ...

    def chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]: ...

    async def close(self, response: httpx.Response) -> None: ...

    async def sleep(self, seconds: float) -> None: ...

    async def call(self, work: Callable[[], T]) -> T:
        """Does work that blocks, such as reading a file."""

    async def together(self, work: Sequence[Callable[[], Coroutine[Any, Any, None]]], stop: Callable[[], None]) -> None:
        """Does all at the same time. None of it raises; `stop` is called when whoever waits is interrupted."""

    def lock(self) -> Lock: ...

    def shield(self) -> ContextManager[object]:
        """What is awaited in it is done to its end, also where the task is being cancelled."""

    async def shut(self) -> None: ...


class SyncLock:
    def __init__(self) -> None:
        self._lock = threading.Lock()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        with self._lock:
            yield


class SyncBody:
    def __init__(self, blocks: Callable[[], Iterator[bytes]]) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[bytes]:
        return self._blocks()


class SyncTransport:
    def __init__(self, given: Optional[httpx.Client]) -> None:
        self._given = given
        self._http = given or open_http(httpx.Client)
        #: The process that has its connections, once there are any.
        self._process: Optional[int] = None

    def build(self, method: str, url: str, **options: Any) -> httpx.Request:
        return self._http.build_request(method, url, **options)

    def stream(self, blocks: Callable[[], Iterator[bytes]]) -> Body:
        return SyncBody(blocks)

    async def send(self, request: httpx.Request) -> httpx.Response:
        self._leave_inherited()
        return self._http.send(request, stream=True, follow_redirects=request.method == "GET")

    def _leave_inherited(self) -> None:
        """A process that was forked has the connections of the other one: each would read the other's answers."""
        if self._process in (None, os.getpid()):
            self._process = os.getpid()
            return
        if self._given is not None:
            raise WindlassError(
                "The httpx.Client of this Client is in use by the process that this one was forked from.",
                code="forked",
                hint="Make a Client in each process.",
            )
        # Not closed: that would wait for a lock which another thread held at the fork.
        self._inherited = self._http
        self._http = open_http(httpx.Client)
        self._process = os.getpid()

    async def read(self, response: httpx.Response) -> bytes:
        return response.read()

    async def chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        for chunk in response.iter_bytes():
            yield chunk

    async def close(self, response: httpx.Response) -> None:
        response.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, work: Callable[[], T]) -> T:
        return work()

    async def together(self, work: Sequence[Callable[[], Coroutine[Any, Any, None]]], stop: Callable[[], None]) -> None:
        with ThreadPoolExecutor(len(work), thread_name_prefix="windlass") as pool:
            try:
                for ended in [pool.submit(_begin, one) for one in work]:
                    ended.result()
            except BaseException:
                # The pool waits for its threads.
                stop()
                raise

    def lock(self) -> Lock:
        return SyncLock()

    def shield(self) -> ContextManager[object]:
        return nullcontext()

    async def shut(self) -> None:
        self._http.close()


class AsyncLock:
    def __init__(self) -> None:
        self._lock = anyio.Lock()

    def hold(self) -> anyio.Lock:
        return self._lock


class AsyncBody:
    def __init__(self, blocks: Callable[[], Iterator[bytes]]) -> None:
        self._blocks = blocks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        blocks = self._blocks()
        while block := await anyio.to_thread.run_sync(lambda: next(blocks, b"")):
            yield block


class AsyncTransport:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def build(self, method: str, url: str, **options: Any) -> httpx.Request:
        return self._http.build_request(method, url, **options)

    def stream(self, blocks: Callable[[], Iterator[bytes]]) -> Body:
        return AsyncBody(blocks)

    async def send(self, request: httpx.Request) -> httpx.Response:
        return await self._http.send(request, stream=True, follow_redirects=request.method == "GET")

    async def read(self, response: httpx.Response) -> bytes:
        return await response.aread()

    async def chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        async for chunk in response.aiter_bytes():
            yield chunk

    async def close(self, response: httpx.Response) -> None:
        # Also where the task is being cancelled: else the connection would stay in use.
        with self.shield():
            await response.aclose()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def call(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work)

    async def together(self, work: Sequence[Callable[[], Coroutine[Any, Any, None]]], stop: Callable[[], None]) -> None:
        # A group that is cancelled cancels its tasks.
        async with anyio.create_task_group() as group:
            for one in work:
                group.start_soon(one)

    def lock(self) -> Lock:
        return AsyncLock()

    def shield(self) -> ContextManager[object]:
        return anyio.CancelScope(shield=True)

    async def shut(self) -> None:
        await self._http.aclose()


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that awaits nothing but a SyncTransport."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("Something was awaited that needs an event loop: use AsyncClient for that.")


def drive_all(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterates an asynchronous generator that awaits nothing but a SyncTransport."""
    try:
        while True:
            try:
                item = drive(_next(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        drive(items.aclose())


def _begin(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return drive(work())


async def _next(items: AsyncGenerator[T, None]) -> T:
    return await items.__anext__()
