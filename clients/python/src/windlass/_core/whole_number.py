from __future__ import annotations

import operator
from typing import SupportsIndex


def whole_number(name: str, value: SupportsIndex) -> int:
    """The number; raises `TypeError` for a fraction, and `ValueError` below 0."""
    found = operator.index(value)
    if found < 0:
        raise ValueError(f"{name} is {found}: it is at least 0.")
    return found
