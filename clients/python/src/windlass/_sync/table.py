from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from .._core import summaries, table
from .._core.api import Api
from .._core.table import Texts
from .._core.transport import drive
from ..records import Rows, TableInfo

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Table:
    """A table of a model. `where` are conditions such as `temperature:lt:5`, as `filter` of the guide has them."""

    def __init__(self, api: Api, mid: str, aid: str) -> None:
        self._api = api
        self._path = table.table_path(mid, aid)
        self.model = mid
        self.aid = aid

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.aid} of model {self.model}>"

    def info(self) -> TableInfo:
        """Its length and its columns."""
        return drive(table.get_table(self._api, self._path))

    def rows(
        self,
        offset: int = 0,
        limit: int = 100,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
    ) -> Rows:
        """A page of at most 10,000 rows. `sort` are columns, with a minus for descending."""
        query = {**table.to_query(columns, sort, where), "offset": offset, "limit": limit}
        return drive(table.read_rows(self._api, self._path, query))

    def to_arrow(
        self,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
        limit: Optional[int] = None,
    ) -> pyarrow.Table:
        """The whole table, or what is chosen of it, with the types of its columns. Needs pyarrow."""
        return drive(table.fetch_table(self._api, self._path, columns=columns, sort=sort, where=where, limit=limit))

    def to_pandas(
        self,
        *,
        columns: Optional[Texts] = None,
        sort: Optional[Texts] = None,
        where: Texts = (),
        limit: Optional[int] = None,
    ) -> pandas.DataFrame:
        """`to_arrow()` as a DataFrame. Needs pandas and pyarrow: `pip install "windlass[pandas]"`."""
        return table.to_frame(self.to_arrow(columns=columns, sort=sort, where=where, limit=limit))

    def series(
        self,
        x: str,
        y: str,
        *,
        points: int = 2_000,
        start: object = None,
        end: object = None,
        where: Texts = (),
    ) -> pandas.DataFrame:
        """What a plot of y along x needs, of any number of rows: `points` buckets of equal width of x (at most 10,000).

        Each is a row with the edges `from` and `to`, and `min`, `max` and `count` of the values of y in it. `start` and
        `end` are values of x: the plot begins with the first, and ends before the other. Needs pandas.
        """
        work = summaries.read_series(self._api, self._path, x=x, y=y, points=points, start=start, end=end, where=where)
        return drive(work)

    def groupby(self, by: Texts, aggregate: Texts = "count", *, where: Texts = ()) -> pandas.DataFrame:
        """A row for each combination of values in the columns `by` (at most 10,000), and the aggregates.

        These are `count`, or `count:`, `sum:`, `mean:`, `min:` or `max:` and a column. Needs pandas.
        """
        return drive(summaries.read_groups(self._api, self._path, by=by, aggregate=aggregate, where=where))

    def histogram(self, column: str, bins: int = 20, *, where: Texts = ()) -> pandas.DataFrame:
        """Bins of equal width of numbers and times: `from`, `to`, `count`; of others the commonest: `value`, `count`.

        Missing values are in none, nor are NaN and the infinities: `attrs` of the frame tells how many there are, as
        `nulls` and `others`. Needs pandas.
        """
        return drive(summaries.read_histogram(self._api, self._path, column=column, bins=bins, where=where))
