from __future__ import annotations

import base64
import json
from typing import Any, AsyncGenerator, Dict, Optional

import httpx

from ..records import Event, JobError, Line, OutputEvent, ProgressEvent, StateEvent, read_optional_time
from .api import FIRST_CONTACT_SECONDS, Api, escape, is_certain, is_passing, to_error
from .jobs import name_job
from .lines import LineAssembler
from .sse import EventDecoder, ServerSentEvent

#: The service sends something every 15 s: a stream that is silent for longer is lost.
SILENT_SECONDS = 40.0


async def follow_events(api: Api, job: str) -> AsyncGenerator[Event, None]:
    """The events of a job from its beginning to its end, across lost connections: none is missing, none comes twice."""
    reader = _Reader()
    last_id = ""
    ended = False
    patience = api.patience()
    while True:
        response: Optional[httpx.Response] = None
        failure = None
        try:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
            path = f"/jobs/{escape(job)}/events"
            async with api.stream(path, headers=headers, timeout=SILENT_SECONDS) as response:
                if response.status_code == 204:
                    return
                if response.status_code >= 400:
                    await api.transport.read(response)
                    failure = to_error(response)
                    if not is_passing(response.status_code):
                        raise name_job(failure, job)
                    # Its body is no event: only what comes of the stream renews the patience.
                else:
                    if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                        raise name_job(api.not_the_service(), job)
                    decoder = EventDecoder()
                    chunks = api.transport.chunks(response)
                    try:
                        async for chunk in chunks:
                            patience.renew()
                            for message in decoder.feed(chunk):
                                last_id = message.id or last_id
                                # What follows is the end of the body, after which the connection can be used again.
                                ended = ended or message.event == "end"
                                event = reader.read(message)
                                if event is not None:
                                    yield event
                    finally:
                        await chunks.aclose()
        except httpx.RequestError as cause:
            failure = api.explain(cause)
            if is_certain(cause):
                raise name_job(failure, job) from None
            if not api.was_reached:
                patience.shorten(FIRST_CONTACT_SECONDS)
        if ended:
            return
        # A server that stops ends its streams in order; another one goes on with them.
        seconds = patience.pause(response)
        if seconds is None:
            failure = failure or api.explain(httpx.RemoteProtocolError("the stream of events ended before the job"))
            # Where in the client and its libraries that was is of no use to whoever followed it.
            raise name_job(failure, job) from None
        await api.transport.sleep(seconds)


async def follow_lines(api: Api, job: str) -> AsyncGenerator[Line, None]:
    """The lines of both streams of a job."""
    assembler = LineAssembler()
    events = follow_events(api, job)
    try:
        async for event in events:
            if isinstance(event, OutputEvent):
                for line in assembler.feed(event.stream, event.data):
                    yield line
        for line in assembler.finish():
            yield line
    finally:
        await events.aclose()


class _Reader:
    """Reads events, and passes over what was known: each connection begins with the present state."""

    def __init__(self) -> None:
        self._known: Dict[str, str] = {}
        self._ends: Dict[str, int] = {}

    def read(self, message: ServerSentEvent) -> Optional[Event]:
        if message.event == "output":
            return self._read_output(json.loads(message.data))
        if self._known.get(message.event) == message.data:
            return None
        self._known[message.event] = message.data
        if message.event == "state":
            data = json.loads(message.data)
            error = data.get("error")
            return StateEvent(data["state"], JobError.from_json(error) if error else None, data.get("message"))
        if message.event == "progress":
            data = json.loads(message.data)
            return ProgressEvent(data["progress"], data.get("message"))
        # Of a later version.
        return None

    def _read_output(self, data: Dict[str, Any]) -> Optional[Event]:
        text = data.get("text")
        output = base64.b64decode(data["base64"]) if text is None else text.encode()
        stream, offset = data["stream"], data["offset"]
        known = self._ends.get(stream, 0)
        end = offset + len(output)
        if end <= known:
            return None
        self._ends[stream] = end
        skipped = max(0, known - offset)
        return OutputEvent(stream, offset + skipped, output[skipped:], read_optional_time(data.get("time")))
