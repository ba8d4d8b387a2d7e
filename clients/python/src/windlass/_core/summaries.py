"""What the service counts of a table's rows, as DataFrames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Sequence

from .api import Api
from .frames import Values, make_frame
from .optional_packages import require_package
from .table import Texts, get_table, get_view, listed, to_query

if TYPE_CHECKING:
    import pandas


async def read_series(
    api: Api, path: str, *, x: str, y: str, points: int, start: object, end: object, where: Texts
) -> pandas.DataFrame:
    edges = {"from": None if start is None else str(start), "to": None if end is None else str(end)}
    types = await _read_types(api, path)
    answer = await _count(api, f"{path}/series", {"x": x, "y": y, "points": points, **edges}, where)
    buckets, of_x, of_y = answer["buckets"], types[x], types[y]
    kinds = {"from": of_x, "to": of_x, "min": of_y, "max": of_y, "count": "integer"}
    return await _to_frame(api, [Values(name, kind, buckets[name]) for name, kind in kinds.items()])


async def read_groups(api: Api, path: str, *, by: Texts, aggregate: Texts, where: Texts) -> pandas.DataFrame:
    aggregates = listed(aggregate)
    types = await _read_types(api, path)
    groups = await _count(api, f"{path}/groupby", {"by": listed(by), "aggregate": aggregates}, where)
    names, rows = groups["columns"], groups["rows"]
    # A column may be called like an aggregate, and one that is given twice comes once.
    first = len(names) - len(set(aggregates))
    return await _to_frame(
        api,
        [
            Values(name, types[name] if at < first else _type_of(name, types), [row[at] for row in rows])
            for at, name in enumerate(names)
        ],
    )


async def read_histogram(api: Api, path: str, *, column: str, bins: int, where: Texts) -> pandas.DataFrame:
    types = await _read_types(api, path)
    answer = await _count(api, f"{path}/histogram", {"column": column, "bins": bins}, where)
    names = ("from", "to") if "bins" in answer else ("value",)
    counted = answer["bins" if "bins" in answer else "values"]
    columns = [Values(name, types[column], [one[name] for one in counted]) for name in names]
    frame = await _to_frame(api, [*columns, Values("count", "integer", [one["count"] for one in counted])])
    frame.attrs.update(nulls=answer["nulls"], others=answer.get("others", 0))
    return frame


def _type_of(aggregate: str, types: Dict[str, str]) -> str:
    word, _, column = aggregate.partition(":")
    return {"count": "integer", "mean": "number"}.get(word) or types[column]


async def _read_types(api: Api, path: str) -> Dict[str, str]:
    # Nothing is asked for what cannot be shown.
    await api.transport.call(lambda: require_package("pandas"))
    return {column.name: column.type for column in (await get_table(api, path)).columns}


async def _count(api: Api, path: str, query: Dict[str, Any], where: Texts) -> Dict[str, Any]:
    response = await get_view(api, path, {**query, **to_query(None, None, where)}, "application/json")
    answer: Dict[str, Any] = api.read_json(response)
    return answer


async def _to_frame(api: Api, columns: Sequence[Values]) -> pandas.DataFrame:
    return await api.transport.call(partial(make_frame, columns))
