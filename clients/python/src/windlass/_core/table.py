from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Union

from ..errors import WindlassError
from ..records import Rows, TableInfo
from .api import ANSWER_SECONDS, Api, escape, strong_tag
from .download import download
from .jobs import POLL_SECONDS
from .optional_packages import require_package
from .whole_number import whole_number

if TYPE_CHECKING:
    import httpx
    import pandas
    import pyarrow

#: One, or several.
Texts = Union[str, Sequence[str]]

#: The most rows of one answer of Arrow.
PAGE_ROWS = 1_000_000
_ARROW = "application/vnd.apache.arrow.stream"


def table_path(mid: str, aid: str) -> str:
    return f"/models/{escape(mid)}/tables/{escape(aid)}"


async def get_table(api: Api, path: str) -> TableInfo:
    return TableInfo.from_json(await api.json("GET", f"{path}/metadata"))


async def read_rows(api: Api, path: str, query: Dict[str, Any]) -> Rows:
    response = await get_view(api, f"{path}/rows", query, "application/json")
    return Rows.from_json(api.read_json(response))


async def fetch_table(
    api: Api, path: str, *, columns: Optional[Texts], sort: Optional[Texts], where: Texts, limit: Optional[int]
) -> pyarrow.Table:
    """The whole table from its Parquet file, or what was chosen of it as Arrow."""
    limit = None if limit is None else whole_number("limit", limit)
    require_package("pyarrow", "pyarrow.ipc")
    if columns is None and not sort and not where and limit is None:
        return await _fetch_parquet(api, path)
    import pyarrow

    pages: List[pyarrow.Table] = []
    tag: Optional[str] = None
    offset = 0
    while not pages or (pages[-1].num_rows == PAGE_ROWS and (limit is None or offset < limit)):
        most = PAGE_ROWS if limit is None else max(1, min(PAGE_ROWS, limit - offset))
        query = {**to_query(columns, sort, where), "offset": offset, "limit": most}
        response = await get_view(api, f"{path}/rows", query, _ARROW, tag)
        tag = strong_tag(response)
        pages.append(await api.transport.call(partial(_read_arrow, response.content)))
        offset += PAGE_ROWS
    # At least one row is asked for.
    return pyarrow.concat_tables(pages).slice(0, limit)


def to_frame(found: pyarrow.Table) -> pandas.DataFrame:
    """Integers with missing values as pandas' Int64: as doubles, which they are else, those beyond 2^53 are others."""
    import pandas
    import pyarrow

    frame: pandas.DataFrame = found.to_pandas()
    for name, column in zip(found.column_names, found.columns):
        if pyarrow.types.is_integer(column.type) and column.null_count:
            frame[name] = column.to_pandas(types_mapper=lambda _: pandas.Int64Dtype())
    return frame


def _read_arrow(content: bytes) -> pyarrow.Table:
    import pyarrow.ipc

    return pyarrow.ipc.open_stream(content).read_all()


def to_query(columns: Optional[Texts], sort: Optional[Texts], where: Texts) -> Dict[str, Any]:
    # Each for itself: a name may hold a comma.
    return {
        "columns": None if columns is None else listed(columns) or "",
        "sort": listed(sort) if sort else None,
        "filter": listed(where) or None if where else None,
    }


def listed(given: Texts) -> List[str]:
    """A text is one, not a sequence of its letters."""
    return [given] if isinstance(given, str) else list(given)


async def get_view(
    api: Api, path: str, query: Dict[str, Any], accept: str, tag: Optional[str] = None
) -> httpx.Response:
    """A view that is made first takes its time: each request waits some of it. `tag` is that of the page before."""
    headers = {"Accept": accept, "Prefer": f"wait={POLL_SECONDS}", **({"If-Match": tag} if tag else {})}
    while True:
        try:
            response = await api.request(
                "GET", path, params=query, headers=headers, timeout=ANSWER_SECONDS + POLL_SECONDS
            )
        except WindlassError as error:
            if error.status == 412:
                raise WindlassError(
                    "Another table has taken its place while it was read.",
                    code="changed",
                    hint="Read it again from its beginning.",
                ) from error
            raise
        if response.status_code != 202:
            return response
        await api.transport.sleep(0.2)


async def _fetch_parquet(api: Api, path: str) -> pyarrow.Table:
    import pyarrow.parquet

    content = io.BytesIO()
    await download(api, f"{path}/data", content.write)
    return await api.transport.call(lambda: pyarrow.parquet.read_table(content))
