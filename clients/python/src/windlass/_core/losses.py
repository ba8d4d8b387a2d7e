from __future__ import annotations

import time

import httpx

from .api import Api, is_passing

#: So often in a row something is lost before its size is taken for the reason.
ENOUGH = 2
#: What is lost sooner may have been refused: then a small request is, too.
CUT_SECONDS = 0.25
SMALL_SECONDS = 10.0


class Losses:
    """Tells whether what is lost again and again, though nothing else is sent meanwhile, is too large for its link."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._count = 0

    @property
    def are_enough(self) -> bool:
        return self._count >= ENOUGH

    async def add(self, begun: float) -> None:
        """Takes up the loss of what was begun at that `time.monotonic()`."""
        if time.monotonic() - begun > CUT_SECONDS or await self._is_answered():
            self._count += 1

    def reset(self) -> None:
        """Something came through, or is smaller now."""
        self._count = 0

    async def _is_answered(self) -> bool:
        try:
            async with self._api.stream("/", timeout=SMALL_SECONDS) as response:
                return not is_passing(response.status_code)
        except httpx.RequestError:
            return False
