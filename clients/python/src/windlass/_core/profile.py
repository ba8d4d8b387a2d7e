from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import NamedTuple, Optional, Tuple

import httpx

from ..errors import WindlassError


class Profile(NamedTuple):
    """What `windlass login` keeps."""

    url: str
    token: str


def read_access(
    url: Optional[str], token: Optional[str], user: Optional[str], password: Optional[str]
) -> Tuple[str, str]:
    """The service's address, without a slash at its end, and the Authorization.

    What is not given is that of `WINDLASS_URL` and `WINDLASS_TOKEN`, else that of `windlass login`. A token goes to
    the service that it stands with, and to no other: `WINDLASS_TOKEN` without `WINDLASS_URL` is an error where it would
    be needed.
    """
    if token is not None and (user is not None or password is not None):
        raise ValueError("Give either a token, or user and password.")
    if (user is None) != (password is None):
        raise ValueError("User and password belong together.")
    profile = None if url else _read_profile()
    address = url or os.environ.get("WINDLASS_URL") or (profile.url if profile else None)
    if not address:
        raise WindlassError(
            "No address is given.", code="no_url", hint="Give the url, set WINDLASS_URL, or log in by `windlass login`."
        )
    if not _is_address(address):
        raise WindlassError(f"{address!r} is no address.", code="no_url", hint="It begins with http:// or https://.")
    if user is not None:
        return address.rstrip("/"), "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    found = token
    # A token is for one service: another one that gets it may use it there.
    given = os.environ.get("WINDLASS_TOKEN")
    if not found and given:
        place = os.environ.get("WINDLASS_URL")
        if not place:
            raise WindlassError(
                "WINDLASS_TOKEN is set without WINDLASS_URL, which says to whom it is sent.",
                code="no_url",
                hint="Set both, or give the token.",
            )
        found = given if _is_same_service(address, place) else None
    if not found and profile is not None and _is_same_service(address, profile.url):
        found = profile.token
    # What is read from a file ends with a line break, and what else stands there must not be shown.
    found = found.strip() if found else ""
    if not (found.isascii() and found.isprintable()):
        raise WindlassError(
            "The token has characters that no token has.", code="no_token", hint="Was all of it copied?"
        )
    return address.rstrip("/"), f"Bearer {found}" if found else ""


def _is_same_service(address: str, other: str) -> bool:
    try:
        return str(httpx.URL(address)).rstrip("/") == str(httpx.URL(other)).rstrip("/")
    except httpx.InvalidURL:
        return False


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and url.host != ""


def _read_profile() -> Optional[Profile]:
    """By the XDG Base Directory Specification, which passes over a relative path."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(given) if given.startswith("/") else Path.home() / ".config"
    try:
        data = json.loads((folder / "windlass" / "login.json").read_text("utf-8"))
        return Profile(data["url"], data["token"])
    except (OSError, ValueError, KeyError):
        return None
