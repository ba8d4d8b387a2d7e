from __future__ import annotations

import random
import time
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Optional

import httpx

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 15.0


class Patience:
    """How long to wait before something is tried again, and when not to go on: `seconds` after the last success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """To be called at each success."""
        self._since = time.monotonic()
        self._next = FIRST_SECONDS

    def shorten(self, seconds: float) -> None:
        """For failures that time seldom mends."""
        self._seconds = min(seconds, self._seconds)

    def pause(self, response: Optional[httpx.Response] = None) -> Optional[float]:
        """The seconds to wait, at least what the answer says in `Retry-After`; None: give up."""
        # Half of it is random, so that many clients of a service that comes back do not come at once.
        seconds = self._next * random.uniform(0.5, 1)
        self._next = min(self._next * 2, LONGEST_SECONDS)
        asked = None if response is None else read_retry_after(response)
        if asked is not None:
            seconds = max(asked, seconds)
        return None if time.monotonic() + seconds > self._since + self._seconds else seconds


def read_retry_after(response: httpx.Response) -> Optional[float]:
    """Seconds, which the header has as such or as a date (RFC 9110, 10.2.3)."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())
