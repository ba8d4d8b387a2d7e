from __future__ import annotations

import os
from pathlib import Path
from typing import Optional, Union

from .._core import video
from .._core.api import Api
from .._core.transport import drive
from ..errors import WindlassError
from ..records import VideoStatus


class Video:
    """A video that is being made or kept. As the last value of a notebook's cell it is shown, once it is ready."""

    def __init__(self, api: Api, job: str, media_type: Optional[str] = None) -> None:
        self._api = api
        #: The id of its job.
        self.job = job
        self._media_type = media_type

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job}>"

    def status(self) -> VideoStatus:
        """How it is getting on."""
        return drive(video.get_status(self._api, self.job))

    def wait(self, timeout: Optional[float] = None) -> Video:
        """Waits until it is ready; itself. Raises `JobFailed`, and `WaitTimeout` after `timeout` seconds."""
        drive(video.wait_for_video(self._api, self.job, timeout=timeout))
        return self

    def fetch(self) -> bytes:
        """The file, once it is ready."""
        return drive(video.fetch_video(self._api, self.job))

    def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        """Writes the file, once it is ready; its path, whose suffix may not be that of another kind of video."""
        return drive(video.save_video(self._api, self.job, path, self._media_type))

    def _repr_html_(self) -> str:
        try:
            return drive(video.render(self._api, self.job))
        except WindlassError as error:
            return video.say(str(error))
