from __future__ import annotations

import json
import re
import ssl
import uuid
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Dict, Mapping, NamedTuple, Optional
from urllib.parse import quote

import httpx

from .._version import __version__
from ..errors import Unreachable, WindlassError
from .hints import own_hint
from .patience import Patience
from .proxies import find_proxy
from .transport import Body, Transport

#: Seconds to connect, and without a byte of an answer that is due at once.
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
#: Seconds in which a service that never answered is tried: its address may be wrong.
FIRST_CONTACT_SECONDS = 10.0

#: Another one may take back what somebody has done after it.
_SAFE_METHODS = ("GET", "HEAD")
#: The request was not sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
#: Sent again where that is safe: too slow, too many, a proxy that reaches nobody, or a dependency that is down.
_PASSING = (408, 429, 502, 503, 504)
#: Statuses from here on are a proxy's alone, such as 522 of Cloudflare's, which did not reach the service.
_FIRST_OF_PROXIES = 520
_UNANSWERED = "Is this its address, and is it running?"
_NO_TLS = "What answers there speaks no TLS: is it http:// instead of https://?"
_UNTRUSTED = "If an authority of your own signed it, set SSL_CERT_FILE to a file with that authority's certificate."
_FOREIGN = "A program before the service said so, such as a proxy. Is this its address, and is the service running?"
_JOB_ADDRESS = re.compile(r"/jobs/([^/?#]+)$")


class _Call(NamedTuple):
    """A request, which may be sent several times."""

    method: str
    path: str
    body: Any = None
    content: Optional[Body] = None
    params: Optional[Mapping[str, Any]] = None
    headers: Mapping[str, str] = {}
    timeout: float = ANSWER_SECONDS


class Api:
    """Requests to a service, repeated where that is safe: see `request()`."""

    def __init__(self, transport: Transport, *, url: str, authorization: str, patience: float) -> None:
        self.transport = transport
        self.url = url
        self._authorization = authorization
        self.patience_seconds = patience
        self._was_reached = False

    @property
    def was_reached(self) -> bool:
        return self._was_reached

    def patience(self) -> Patience:
        return Patience(self.patience_seconds)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: Optional[Body] = None,
        params: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        keyed: bool = False,
        safe: bool = False,
        renewed: bool = False,
        lost_once: bool = False,
        timeout: float = ANSWER_SECONDS,
        within: Optional[float] = None,
    ) -> httpx.Response:
        """Returns the answer, read to its end; raises `WindlassError` for an error.

        GET and HEAD are repeated after passing failures, and so is what is `keyed`: it has an Idempotency-Key, under
        which the service does it once, or `safe`: a second time it changes nothing. What was certainly not accepted is
        always repeated. With `renewed` the service cancels the work of a client that is gone: such a request is begun
        again under a new key. With `lost_once` the caller repeats what had no answer. After `within` seconds nothing is
        repeated or waited for.
        """
        patience = self.patience()
        if within is not None:
            patience.shorten(within)
            timeout = min(timeout, within)
        repeatable = keyed or safe or method in _SAFE_METHODS
        sent = {**(headers or {}), **({"Idempotency-Key": str(uuid.uuid4())} if keyed else {})}
        call = _Call(method, path, body, content, params, sent, timeout)
        was_lost = False
        while True:
            response: Optional[httpx.Response] = None
            try:
                response = await self._send_once(call)
            except httpx.RequestError as cause:
                failure = self.explain(cause)
                if lost_once or not (repeatable or isinstance(cause, _NOT_SENT)) or is_certain(cause):
                    raise failure from cause
                if not self._was_reached:
                    patience.shorten(FIRST_CONTACT_SECONDS)
                was_lost = was_lost or not isinstance(cause, _NOT_SENT)
            else:
                if response.status_code < 400:
                    return self.require_service(response)
                failure = to_error(response)
                if renewed and was_lost and failure.code == "cancelled":
                    sent["Idempotency-Key"] = str(uuid.uuid4())
                    was_lost = False
                elif response.status_code == 429:
                    pass  # Refused before anything was done.
                elif repeatable and is_passing(response.status_code):
                    was_lost = True
                else:
                    raise failure
            seconds = patience.pause(response)
            if seconds is None:
                raise failure
            await self.transport.sleep(seconds)

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """The answer's JSON; None where it is empty."""
        response = await self.request(method, path, **options)
        return self.read_json(response) if response.content else None

    async def content(self, method: str, path: str, **options: Any) -> Any:
        """The answer's JSON, or the bytes of what says that it is something else; None where it is empty."""
        response = await self.request(method, path, **options)
        if not response.content:
            return None
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        is_json = kind in ("", "application/json") or kind.endswith("+json")
        return self.read_json(response) if is_json else response.content

    def read_json(self, response: httpx.Response) -> Any:
        try:
            return json.loads(response.content)
        except ValueError as cause:
            raise self.not_the_service() from cause

    def require_service(self, response: httpx.Response) -> httpx.Response:
        """Raises for a page, such as a proxy's login: none of the service's answers here is HTML, not even a file's.

        Likewise for a redirect that is not followed, such as that of a proxy to https: nothing was done.
        """
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise self.not_the_service()
        if 300 <= response.status_code < 400 and response.status_code != 304:
            raise self.not_the_service(response.headers.get("Location"))
        return response

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: Optional[Mapping[str, Any]] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: float = ANSWER_SECONDS,
    ) -> AsyncIterator[httpx.Response]:
        """GET of what may be long, once: the caller repeats it. The answer may be an error; its body is unread."""
        call = _Call("GET", path, params=params, headers=headers or {}, timeout=timeout)
        response = await self.transport.send(self._build(call))
        self._was_reached = True
        try:
            yield response
        finally:
            await self.transport.close(response)

    def explain(self, cause: httpx.RequestError) -> WindlassError:
        if isinstance(cause, _NO_SERVICE):
            foreign = self.not_the_service()
            foreign.__cause__ = cause
            return foreign
        what = "did not answer in time" if isinstance(cause, httpx.TimeoutException) else "cannot be reached"
        said = f": {cause}" if str(cause) else ""
        failure = Unreachable(
            f"The service at {self.url} {what}{said}.",
            code="unreachable",
            hint=self._advise(cause),
        )
        failure.__cause__ = cause
        return failure

    def _advise(self, cause: httpx.RequestError) -> Optional[str]:
        if is_certificate(cause):
            return _UNTRUSTED
        if speaks_no_tls(cause):
            return _NO_TLS
        proxy = find_proxy(self.url) if isinstance(cause, (*_NOT_SENT, httpx.ProxyError)) else None
        if proxy is not None:
            return f"The environment names the proxy {proxy}: is it running? NO_PROXY names what needs none."
        return None if self._was_reached else _UNANSWERED

    def not_the_service(self, elsewhere: Optional[str] = None) -> WindlassError:
        """Something else has answered, such as the login page of a proxy."""
        says = f" It says to ask {elsewhere} instead." if elsewhere else ""
        return WindlassError(
            f"What answers at {self.url} is not Windlass.{says}",
            code="not_the_service",
            hint="Is this its address, and does a proxy let programs through?",
        )

    async def _send_once(self, call: _Call) -> httpx.Response:
        response = await self.transport.send(self._build(call))
        self._was_reached = True
        try:
            await self.transport.read(response)
        finally:
            await self.transport.close(response)
        return response

    def _build(self, call: _Call) -> httpx.Request:
        headers = {"Accept": "application/json", "User-Agent": f"windlass-python/{__version__}"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        headers.update(call.headers)
        content = call.content
        if call.body is not None:
            content = json.dumps(call.body, default=to_json).encode()
            headers["Content-Type"] = "application/json"
        params = {name: value for name, value in (call.params or {}).items() if value is not None}
        return self.transport.build(
            call.method,
            f"{self.url}/api{call.path}",
            content=content,
            params=params or None,
            headers=headers,
            timeout=httpx.Timeout(call.timeout, connect=CONNECT_SECONDS, pool=None),
        )


def to_json(value: Any) -> Any:
    """What JSON has no value for: those of NumPy as Python's own."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    if type(plain) is type(value):
        raise WindlassError(f"{value!r} is no value of JSON.", code="invalid_input")
    return plain


def to_error(response: httpx.Response) -> WindlassError:
    """The error of an answer that was read. Where something else than the service answered, what can be said of it."""
    problem: Dict[str, Any] = {}
    try:
        given = json.loads(response.content)
        problem = given if isinstance(given, dict) else {}
    except ValueError:
        pass
    said = response.headers.get("X-Service-Message")
    is_foreign = not (said or problem.get("code"))
    error = WindlassError(
        problem.get("detail") or said or f"{response.status_code} {response.reason_phrase}".rstrip() + ".",
        status=response.status_code,
        code=problem.get("code") or f"http_{response.status_code}",
        hint=own_hint(
            problem.get("hint") or response.headers.get("X-Service-Hint") or (_FOREIGN if is_foreign else None)
        ),
        request_id=problem.get("requestId") or response.headers.get("X-Request-Id"),
        fields=problem.get("fields"),
    )
    error.job = find_job(response)
    return error


def find_job(response: httpx.Response) -> Optional[str]:
    """The id of the job whose address is the answer's `Location`."""
    found = _JOB_ADDRESS.search(response.headers.get("Location", ""))
    return found.group(1) if found else None


#: What OpenSSL says of it, by its version.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
#: Addresses that lead to each other, and bodies that are not in the encoding that they say.
_NO_SERVICE = (httpx.TooManyRedirects, httpx.DecodingError)


def is_certain(cause: BaseException) -> bool:
    """True for failures that stay: a refused certificate, another protocol, what is not the service."""
    is_other = isinstance(cause, (httpx.UnsupportedProtocol, *_NO_SERVICE))
    return is_other or is_certificate(cause) or speaks_no_tls(cause)


def is_certificate(cause: BaseException) -> bool:
    """True for a certificate that is refused."""
    return isinstance(_find_tls_error(cause), ssl.SSLCertVerificationError)


def speaks_no_tls(cause: BaseException) -> bool:
    """True where what answers https is no TLS, as on a port of http."""
    found = _find_tls_error(cause)
    return found is not None and found.reason in _NOT_TLS


def _find_tls_error(cause: BaseException) -> Optional[ssl.SSLError]:
    found: Optional[BaseException] = cause
    while found is not None and not isinstance(found, ssl.SSLError):
        found = found.__cause__ or found.__context__
    return found


def is_passing(status: int) -> bool:
    """True for the status of an error after which a GET may be answered otherwise."""
    return status in _PASSING or status >= _FIRST_OF_PROXIES


def escape(text: str) -> str:
    """A text as one segment of a path. With these a URL names something else (RFC 3986, 5.2.4)."""
    if text in ("", ".", ".."):
        raise WindlassError(f"{text!r} is no id.", code="no_id")
    return quote(text, safe="")


def escape_path(path: str) -> str:
    """The absolute path of a file on a host, below what takes one.

    Of `.` and `..` a URL would be resolved: a path that has them is one segment, so that the host resolves them.
    """
    below = path.lstrip("/")
    return quote(f"/{below}", safe="") if {".", ".."} & set(below.split("/")) else quote(below)


def strong_tag(response: httpx.Response) -> Optional[str]:
    """What a proxy has compressed has a weak one, which If-Match never matches (RFC 9110, 13.1.1)."""
    tag = response.headers.get("ETag", "")
    return tag if tag.startswith('"') else None
