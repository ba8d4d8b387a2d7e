from __future__ import annotations

import importlib

from ..errors import WindlassError


def require_package(name: str, *modules: str) -> None:
    """Imports a package that not everybody has installed, and `modules` of it. Raises `not_installed`."""
    try:
        for module in (name, *modules):
            importlib.import_module(module)
    except ImportError as cause:
        raise WindlassError(
            f"{name} is not installed.", code="not_installed", hint='pip install "windlass[pandas]"'
        ) from cause
