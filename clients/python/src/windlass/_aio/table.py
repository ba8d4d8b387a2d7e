from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Optional

from .._core import summaries, table
from .._core.api import Api
from .._core.table import Texts
from ..records import Rows, TableInfo

if TYPE_CHECKING:
    import pandas
    import pyarrow


class AsyncTable:
    """See `Table`."""

    def __init__(self, api: Api, mid: str, aid: str) -> None:
        self._api = api
        self._path = table.table_path(mid, aid)
        self.model = mid
        self.aid = aid

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.aid} of model {self.model}>"

    async def info(self) -> TableInfo:
        return await table.get_table(self._api, self._path)

    async def rows(
        self,
        offset: int = 0,
        limit: int = 100,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
    ) -> Rows:
        query = {**table.to_query(columns, sort, where), "offset": offset, "limit": limit}
        return await table.read_rows(self._api, self._path, query)

    async def to_arrow(
        self,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
        limit: Optional[int] = None,
    ) -> pyarrow.Table:
        return await table.fetch_table(self._api, self._path, columns=columns, sort=sort, where=where, limit=limit)

    async def to_pandas(
        self,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
        limit: Optional[int] = None,
    ) -> pandas.DataFrame:
        found = await self.to_arrow(columns=columns, sort=sort, where=where, limit=limit)
        return await self._api.transport.call(partial(table.to_frame, found))

    async def series(
        self,
        x: str,
        y: str,
        *,
        points: int = 2_000,
        start: object = None,
        end: object = None,
        where: Texts = (),
    ) -> pandas.DataFrame:
        return await summaries.read_series(
            self._api, self._path, x=x, y=y, points=points, start=start, end=end, where=where
        )

    async def groupby(self, by: Texts, aggregate: Texts = "count", *, where: Texts = ()) -> pandas.DataFrame:
        return await summaries.read_groups(self._api, self._path, by=by, aggregate=aggregate, where=where)

    async def histogram(self, column: str, bins: int = 20, *, where: Texts = ()) -> pandas.DataFrame:
        return await summaries.read_histogram(self._api, self._path, column=column, bins=bins, where=where)
