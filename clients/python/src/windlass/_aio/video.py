from __future__ import annotations

import os
from pathlib import Path
from typing import Optional, Union

from .._core import video
from .._core.api import Api
from ..records import VideoStatus


class AsyncVideo:
    """See `Video`. A notebook cannot wait for it: it is shown there after `show()`."""

    def __init__(self, api: Api, job: str, media_type: Optional[str] = None) -> None:
        self._api = api
        #: The id of its job.
        self.job = job
        self._media_type = media_type
        self._html = video.say(f"Video of job {job}: `await video.show()` shows it.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job}>"

    async def status(self) -> VideoStatus:
        return await video.get_status(self._api, self.job)

    async def wait(self, timeout: Optional[float] = None) -> AsyncVideo:
        await video.wait_for_video(self._api, self.job, timeout=timeout)
        return self

    async def fetch(self) -> bytes:
        return await video.fetch_video(self._api, self.job)

    async def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        return await video.save_video(self._api, self.job, path, self._media_type)

    async def show(self) -> AsyncVideo:
        """Fetches it, so that a notebook shows it; itself."""
        self._html = await video.render(self._api, self.job)
        return self

    def _repr_html_(self) -> str:
        return self._html
