"""Values of JSON as columns of pandas, of the types that `Table.to_pandas()` gives them."""

from __future__ import annotations

from datetime import date, time
from typing import TYPE_CHECKING, Any, List, NamedTuple, Sequence

if TYPE_CHECKING:
    import pandas

#: HH:MM:SS with a fraction, which Python knows only whole before 3.11.
_TIME_LENGTH = 15


class Values(NamedTuple):
    """Of one column. `type` is as that of a `Column`."""

    name: str
    type: str
    values: Sequence[Any]


def make_frame(columns: Sequence[Values]) -> pandas.DataFrame:
    import pandas

    # Two may have one name.
    frame = pandas.DataFrame({at: _to_series(one.type, one.values) for at, one in enumerate(columns)})
    frame.columns = pandas.Index([one.name for one in columns])
    return frame


def _to_series(type: str, values: Sequence[Any]) -> pandas.Series[Any]:
    import pandas

    if type == "timestamp":
        return _read_timestamps(values)
    if type == "number":
        # NaN and the infinities are texts.
        return pandas.Series([float("nan") if one is None else float(one) for one in values], dtype="float64")
    if type == "integer":
        return _read_integers(values)
    if type in ("date", "time"):
        read = date.fromisoformat if type == "date" else _read_time
        return pandas.Series([None if one is None else read(one) for one in values], dtype="object")
    return pandas.Series(list(values), dtype=None if values else "object")


def _read_integers(values: Sequence[Any]) -> pandas.Series[Any]:
    """Those beyond 2^53 are texts, and edges between integers may be none."""
    import pandas

    found: List[Any] = [int(one) if isinstance(one, str) else one for one in values]
    if any(isinstance(one, float) for one in found):
        return pandas.Series(found, dtype="float64")
    # A sum has any number of digits, which pandas would round beside a missing one.
    if any(one is not None and abs(one) >= 2**63 for one in found):
        return pandas.Series(found, dtype="object")
    return pandas.Series(found, dtype="Int64" if None in found else "int64")


def _read_timestamps(values: Sequence[Any]) -> pandas.Series[Any]:
    import numpy
    import pandas

    is_utc = any(one.endswith("Z") for one in values if one is not None)
    texts = ["NaT" if one is None else one.rstrip("Z") for one in values]
    found = pandas.Series(numpy.array(texts, dtype="datetime64[us]"))
    return found.dt.tz_localize("UTC") if is_utc else found


def _read_time(text: str) -> time:
    return time.fromisoformat(text.ljust(_TIME_LENGTH, "0") if "." in text else text)
