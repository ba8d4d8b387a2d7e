from __future__ import annotations

import io
import time
from datetime import date
from datetime import time as clock
from pathlib import Path

import pytest

import windlass
from windlass import Client, Table

SKIES = ["", "grüß", "rain", "a; b", "x"]
CSV = "day,count,big,share,sky,wet\n" + "".join(
    f"2026-01-{n % 28 + 1:02},{n},{2**53 + n},{n / 7},{SKIES[n % 5]},{'true' if n % 2 == 0 else 'false'}\n"
    for n in range(5_000)
)


@pytest.fixture(scope="module")
def table(client: Client) -> Table:
    model = client.create_model(client.create_project(f"tables {time.time_ns()}"), "tables")
    upload = client.upload(io.BytesIO(CSV.encode()), model, "days", parser="csv", types={"sky": "text"})
    return client.table(upload.model, upload.aid)


def test_info(table: Table) -> None:
    info = table.info()
    assert info.rows == 5_000
    assert [(column.name, column.type) for column in info.columns] == [
        ("day", "date"),
        ("count", "integer"),
        ("big", "integer"),
        ("share", "number"),
        ("sky", "text"),
        ("wet", "boolean"),
    ]
    count, big = info.columns[1:3]
    assert (count.min, count.max, count.exact) == (0, 4_999, False)
    assert (big.min, big.exact) == (str(2**53), True)
    assert info.columns[4].nulls == 1_000


def test_rows(table: Table) -> None:
    page = table.rows(2, 2, columns=["count", "sky"], where=["count:gt:10"], sort=["-count"])
    assert (page.offset, page.total, page.columns) == (2, 4_989, ["count", "sky"])
    assert page.rows == [[4_997, "rain"], [4_996, "grüß"]]


def test_one_text_is_not_its_letters(table: Table) -> None:
    page = table.rows(columns="sky", where="count:gt:4997", sort="-count")
    assert (page.columns, page.rows) == (["sky"], [["x"], ["a; b"]])
    assert table.rows(0, 1, where="").total == table.rows(0, 1).total


def test_what_is_wrong_with_a_condition_is_told(table: Table) -> None:
    with pytest.raises(windlass.WindlassError, match="column:operator:value, such as sky:eq:rain"):
        table.rows(where="temperature > 5")
    with pytest.raises(windlass.WindlassError, match='there is no column "warmth"'):
        table.rows(where="warmth:gt:5")


def test_a_file_is_read_by_the_parser_of_its_name(client: Client, table: Table, tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("a,b\n1,2\n")
    assert client.table(table.model, client.upload(file, table.model).aid).rows().rows == [[1, 2]]
    kept = client.upload(file, table.model, "kept", parser="blob")
    with pytest.raises(windlass.WindlassError, match=r'is a file, not a table.*parser="csv"'):
        client.table(table.model, kept.aid).info()
    assert client.request("GET", f"/models/{table.model}/files/kept") == b"a,b\n1,2\n"


def test_why_a_column_is_text_is_told(client: Client, table: Table) -> None:
    lines = "".join(f"{n / 10}\n" for n in range(100))
    upload = client.upload(io.BytesIO(f"share\n{lines}n/k\n{lines}?\n".encode()), table.model, "odd", parser="csv")
    (share,) = client.table(table.model, upload.aid).info().columns
    assert share.type == "text"
    assert share.nearly == windlass.OddValues(type="number", others=2, first_row=100, first_value="n/k")
    assert table.info().columns[3].nearly is None


def test_what_is_stored_is_found_again(client: Client) -> None:
    name = f"found {time.time_ns()}"
    model = client.create_model(client.create_project(name), "again", "day")
    upload = client.upload(io.BytesIO(b"a\n1\n"), model, "day.csv")
    assert upload.artifacts == ["day.csv"]
    assert client.upload(io.BytesIO(b"a"), model, "raw", wait=False).artifacts is None
    (project,) = [one for one in client.projects() if one.name == name]
    (found,) = client.models(project.id)
    assert (project.role, found.id, found.name, found.type) == ("administrator", model, "again", "day")
    assert [(one.aid, one.type) for one in client.artifacts(model)][:1] == [("day.csv", "table")]


def test_names_with_commas(client: Client, table: Table) -> None:
    file = io.BytesIO(b'"a, b","-c",d\n1,2,3\n4,5,6\n')
    upload = client.upload(file, table.model, "comma", parser="csv")
    rows = client.table(upload.model, upload.aid).rows(columns=["d", "a, b"], sort=["d", "-a, b"])
    assert (rows.columns, rows.rows) == (["d", "a, b"], [[3, 1], [6, 4]])


def test_to_pandas_is_what_the_file_says(table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    testing = pytest.importorskip("pandas.testing")
    frame = table.to_pandas()
    expected = pandas.read_csv(io.StringIO(CSV))
    expected["day"] = [date.fromisoformat(day) for day in expected["day"]]
    testing.assert_frame_equal(frame, expected)


def test_to_pandas_of_a_part(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    testing = pytest.importorskip("pandas.testing")
    # In pages.
    monkeypatch.setattr("windlass._core.table.PAGE_ROWS", 700)
    frame = table.to_pandas(columns=["count", "share"], where=["wet:eq:true", "sky:null:false"], sort=["-share"])
    expected = pandas.read_csv(io.StringIO(CSV))
    chosen = expected[expected["wet"] & expected["sky"].notna()].sort_values("share", ascending=False)
    testing.assert_frame_equal(frame, chosen[["count", "share"]].reset_index(drop=True))


def test_to_pandas_of_the_first_rows(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    whole = table.to_pandas()
    for most in (1, 2, 10_000):
        monkeypatch.setattr("windlass._core.table.PAGE_ROWS", most)
        for limit in (0, 1, 2, 3):
            assert table.to_pandas(limit=limit).equals(whole.head(limit))


def test_to_pandas_keeps_integers_where_some_are_missing(client: Client, table: Table) -> None:
    pytest.importorskip("pandas")
    content = b"a,b\n9007199254740993,1\n,2\n9007199254740995,3\n"
    client.upload(io.BytesIO(content), table.model, "gaps", parser="csv")
    frame = client.table(table.model, "gaps").to_pandas()
    assert frame["a"].dropna().tolist() == [9007199254740993, 9007199254740995]
    assert (str(frame["a"].dtype), str(frame["b"].dtype)) == ("Int64", "int64")


def test_a_series_is_a_frame(table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    found = table.series("count", "share", points=5)
    assert found.columns.tolist() == ["from", "to", "min", "max", "count"]
    assert found["count"].tolist() == [1_000] * 5
    assert found["from"].tolist() == [0, 1_000, 2_000, 3_000, 4_000]
    assert found["max"].tolist() == [n / 7 for n in range(999, 5_000, 1_000)]
    part = table.series("count", "big", points=1, start=10, end=20, where=["wet:eq:true", "count:ne:12"])
    assert part.to_dict("list") == {"from": [10], "to": [20], "min": [2**53 + 10], "max": [2**53 + 18], "count": [4]}
    days = table.series("day", "count", points=28, start=date(2026, 1, 1), end=date(2026, 1, 29))
    assert days["to"].iloc[-1] == date(2026, 1, 29)
    assert len(table.series("count", "share", where="count:lt:0", points=7)) == 7
    assert pandas.isna(table.series("count", "share", where="count:lt:0")["min"]).all()


def test_times_of_a_series_can_be_plotted(client: Client, table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    lines = "".join(f"2026-01-01T00:00:{n:02}.5,12:00:{n:02}.25,{n}\n" for n in range(10))
    client.upload(io.BytesIO(f"at,hour,n\n{lines}".encode()), table.model, "times", parser="csv")
    times = client.table(table.model, "times")
    whole = times.to_pandas()
    found = times.series("at", "n", points=3)
    assert pandas.api.types.is_datetime64_dtype(found["from"])
    assert found["from"].iloc[0] == whole["at"].iloc[0]
    zoomed = times.series("at", "hour", start=found["from"].iloc[1], end=found["to"].iloc[1])
    assert (
        zoomed["min"].dropna().tolist()
        == whole["hour"].iloc[4:7].tolist()
        == [clock(12, 0, n, 250_000) for n in (4, 5, 6)]
    )


def test_groups_are_a_frame(table: Table) -> None:
    pandas = pytest.importorskip("pandas")
    assert table.groupby("wet").to_dict("list") == {"wet": [False, True], "count": [2_500, 2_500]}
    found = table.groupby(["sky", "wet"], ["sum:big", "mean:share", "min:day"], where="count:lt:100")
    assert found.columns.tolist() == ["sky", "wet", "sum:big", "mean:share", "min:day"]
    rows = pandas.read_csv(io.StringIO(CSV)).head(100)
    expected = rows.groupby(["sky", "wet"], dropna=False)
    assert found["sum:big"].tolist() == expected["big"].sum().tolist()
    assert found["mean:share"].tolist() == pytest.approx(expected["share"].mean().tolist())
    assert found["min:day"].tolist() == [date.fromisoformat(day) for day in expected["day"].min()]


def test_sums_past_64_bits_are_exact_beside_a_missing_one(client: Client, table: Table) -> None:
    pytest.importorskip("pandas")
    lines = f"k,n\na,{2**63 - 1}\na,2\nb,\n"
    client.upload(io.BytesIO(lines.encode()), table.model, "sums", parser="csv")
    assert client.table(table.model, "sums").groupby("k", "sum:n")["sum:n"].tolist() == [2**63 + 1, None]


def test_a_histogram_is_a_frame(table: Table) -> None:
    pytest.importorskip("pandas")
    found = table.histogram("share", 2, where="count:lt:3000")
    assert found.columns.tolist() == ["from", "to", "count"]
    assert found["count"].tolist() == [2_500, 500]
    assert found.attrs == {"nulls": 0, "others": 0}
    skies = table.histogram("sky")
    assert dict(zip(skies["value"], skies["count"])) == {sky: 1_000 for sky in SKIES if sky}
    assert skies.attrs == {"nulls": 1_000, "others": 0}


def test_without_pandas(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(windlass.WindlassError, match=r"windlass\[pandas\]"):
        table.groupby("wet")


def test_to_pandas_of_a_table_whose_place_another_takes(
    client: Client, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    import windlass._core.table as pages

    def store(value: int) -> None:
        content = io.BytesIO(b"a\n" + b"%d\n" % value * 900)
        client.upload(content, table.model, "twice", parser="csv", delimiter=",")

    read = pages._read_arrow

    def read_and_store(content: bytes) -> object:
        store(2)
        return read(content)

    store(1)
    monkeypatch.setattr(pages, "PAGE_ROWS", 700)
    monkeypatch.setattr(pages, "_read_arrow", read_and_store)
    with pytest.raises(windlass.WindlassError) as failed:
        client.table(table.model, "twice").to_arrow(columns=["a"])
    assert failed.value.code == "changed"


def test_without_pyarrow(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(windlass.WindlassError, match=r"windlass\[pandas\]"):
        table.to_pandas()
    assert table.rows(0, 1).rows[0][0] == "2026-01-01"


def test_a_table_that_is_missing(client: Client) -> None:
    with pytest.raises(windlass.WindlassError) as raised:
        client.table("nowhere", "nothing").info()
    assert raised.value.status == 404
