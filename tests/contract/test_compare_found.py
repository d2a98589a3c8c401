"""What generated pairs of tables brought to light, each made small."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from sql_tables import Tables, key, rows
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Counts
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.record import Field, Projection
from trueup.ports import Side
from trueup.sides.files import File

PROJECTION = Projection((Field("id", "id", TEXT, native=True),), (Field("v", "v", TEXT),))

LEAST = -(2**63)


def told(left: Side, right: Side, keys: Sequence[str], strategy: str) -> tuple[str, Counts, dict[str, str]]:
    """Strategy, counts and kind by key."""
    planned = plan(left.describe(), right.describe(), key=list(keys))
    with compare(left, right, planned, strategy=strategy) as found:
        return found.strategy, found.counts, {each.key: each.kind for each in found.differences()}


@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_key_that_is_spelled_in_two_ways_is_a_duplicate(on_sqlite: Tables, strategy: str) -> None:
    """Given a key as 7 and as 7.0 in a column of texts that holds whole numbers, I expect a duplicate."""
    names = [on_sqlite.table("id TEXT, v TEXT") for _ in range(2)]
    on_sqlite.execute(f"""INSERT INTO "{names[0]}" VALUES ('7', 'a'), ('7.0', 'b'), ('8', 'c')""")
    on_sqlite.execute(f"""INSERT INTO "{names[1]}" VALUES ('7', 'a'), ('8', 'c')""")
    sides = [on_sqlite.side(name, key="id", columns={"id": "integer"}) for name in names]

    assert told(*sides, ["id"], strategy) == (
        strategy, Counts(left=3, right=2, same=1, duplicate=1), {key("7"): "duplicate"},
    )  # fmt: skip


def test_keys_are_found_whatever_an_array_would_take_them_for(on_postgres: Tables) -> None:
    """Given texts that mean something in the array they are asked for by, I expect each record that differs."""
    texts = ["", "NULL", "null", "a,b", "{}", '"', '""', "\\", '\\"', "a\nb", " a ", "ä😀", "'", "%s", "{a,b}"]
    names = [on_postgres.table("id text, part bigint, v int") for _ in range(2)]
    for number, name in enumerate(names):
        for text in texts:
            spelled = text.replace("'", "''")
            on_postgres.execute(f"""INSERT INTO "{name}" VALUES ('{spelled}', {LEAST}, {number})""")
    sides = [on_postgres.side(name, key=["id", "part"]) for name in names]

    assert told(*sides, ["id", "part"], "keyhash")[2] == {key(text, str(LEAST)): "differ" for text in texts}


@pytest.mark.mariadb
def test_keys_in_another_character_set_are_found_by_lists(on_mariadb: Tables) -> None:
    """Given keys of two columns in unlike character sets, which MariaDB's lists of rows do not convert, I expect all
    that differ."""
    columns = "a varchar(20) CHARACTER SET latin1, b varchar(20) CHARACTER SET utf8mb4, v int"
    names = [on_mariadb.table(columns) for _ in range(2)]
    on_mariadb.execute(f"INSERT INTO `{names[0]}` VALUES ('ä', 'ı', 1), ('K', 'ı', 1), ('ö', 'x', 1)")
    on_mariadb.execute(f"INSERT INTO `{names[1]}` VALUES ('ä', 'ı', 2), ('ö', 'x', 1)")
    sides = [on_mariadb.side(name, key=["a", "b"]) for name in names]

    assert told(*sides, ["a", "b"], "keyhash") == (
        "keyhash", Counts(left=3, right=2, same=1, missing=1, differ=1),
        {key("K", "ı"): "missing", key("ä", "ı"): "differ"},
    )  # fmt: skip


@pytest.mark.mariadb
def test_a_key_that_the_character_set_lacks_is_not_there(on_mariadb: Tables) -> None:
    """Given a column in latin1, asked for a text that latin1 has no letters for, I expect no record and no error."""
    narrow = on_mariadb.table("id varchar(20) CHARACTER SET latin1, v int")
    wide = on_mariadb.table("id varchar(20) CHARACTER SET utf8mb4, v int")
    on_mariadb.execute(f"INSERT INTO `{narrow}` VALUES ('?', 1), ('ä', 1)")
    on_mariadb.execute(f"INSERT INTO `{wide}` VALUES ('😀', 1), ('ä', 2)")
    sides = [on_mariadb.side(name, key="id") for name in (narrow, wide)]
    projection = Projection((Field("id", "id", TEXT, native=True),), (Field("v", "v", INTEGER),))

    assert sides[0].read(projection, [key("😀"), key("ä")]).keys() == {key("ä")}
    assert told(*sides, ["id"], "keyhash")[2] == {key("?"): "missing", key("ä"): "differ", key("😀"): "extra"}


@pytest.mark.parametrize("columns", ["rowid TEXT, v INT", "rowid TEXT, oid TEXT, _rowid_ TEXT, v INT"])
def test_a_column_may_be_called_like_the_number_of_a_row(on_sqlite: Tables, columns: str) -> None:
    name = on_sqlite.table(columns)
    on_sqlite.execute(f"""INSERT INTO "{name}" (rowid, v) VALUES ('x', 1)""")

    assert on_sqlite.side(name, key="rowid").describe().rows in (1, None)


def test_a_high_number_of_a_row_does_not_pass_for_many_rows(on_sqlite: Tables) -> None:
    """Given two rows a trillion keys apart, I expect that they are not asked for range by range."""
    names = [on_sqlite.table("id INTEGER PRIMARY KEY, v INT") for _ in range(2)]
    for number, name in enumerate(names):
        on_sqlite.execute(f'INSERT INTO "{name}" VALUES (1, 1), (1000000000000, {number})')
    sides = [on_sqlite.side(name, key="id") for name in names]

    assert (sides[0].describe().rows or 0) < 10_000
    assert told(*sides, ["id"], "keyhash")[2] == {key("1000000000000"): "differ"}


def test_a_key_that_is_no_number_of_a_row_may_hold_a_text(on_sqlite: Tables) -> None:
    """Given a table without numbers of rows, whose INTEGER key holds a text, I expect that it is read."""
    name = on_sqlite.table("id INTEGER PRIMARY KEY, v INT) WITHOUT ROWID --")
    on_sqlite.execute(f"""INSERT INTO "{name}" VALUES (1, 1), ('x', 2)""")
    side = on_sqlite.side(name, key="id")

    assert told(side, side, ["id"], "keyhash")[1] == Counts(left=2, right=2, same=2)


def test_a_primary_key_of_sqlite_may_repeat_a_null(on_sqlite: Tables) -> None:
    """Given a primary key of texts, in which SQLite lets nulls repeat, I expect a duplicate."""
    name = on_sqlite.table("id TEXT PRIMARY KEY, v INT")
    on_sqlite.execute(f"""INSERT INTO "{name}" VALUES (NULL, 1), (NULL, 1), ('a', 1)""")
    side = on_sqlite.side(name, key="id")

    column = side.describe().column("id")
    assert column is not None
    assert column.nullable
    for strategy in ("gate", "keyhash", "rows"):
        assert told(side, side, ["id"], strategy)[2] == {key(None): "duplicate"}


@pytest.mark.mariadb
def test_a_date_without_a_month_is_a_key(on_mariadb: Tables) -> None:
    names = [on_mariadb.table("id date, v int") for _ in range(2)]
    for number, name in enumerate(names):
        on_mariadb.execute("SET sql_mode = ''")
        on_mariadb.execute(f"INSERT INTO `{name}` VALUES ('2023-00-10', {number}), ('0000-00-00', {number})")
    sides = [on_mariadb.side(name, key="id", zero_date="strict") for name in names]

    assert told(*sides, ["id"], "keyhash")[2] == {key("!0000-00-00"): "differ", key("!2023-00-10"): "differ"}


@pytest.mark.mariadb
@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_date_that_is_read_as_null_is_the_key_of_a_record(on_mariadb: Tables, tmp_path: Path, strategy: str) -> None:
    """Given keys with dates that do not exist, read as null and told by hashes, I expect them under null."""
    (tmp_path / "a.csv").write_text("d,n\n2024-01-01,1\n,3\n,5\n")
    name = on_mariadb.table("d date, n int")
    on_mariadb.execute("SET sql_mode = ''")
    rows = "('2024-01-01', 1), ('2023-00-10', 2), ('0000-00-00', 3), (NULL, 4), ('2023-10-00', 4)"
    on_mariadb.execute(f"INSERT INTO `{name}` VALUES {rows}")
    left = File(str(tmp_path / "a.csv"), key=["d", "n"], columns={"d": "date", "n": "integer"})
    right = on_mariadb.side(name, key=["d", "n"], zero_date="null")

    assert told(left, right, ["d", "n"], strategy) == (
        strategy, Counts(left=3, right=5, same=2, missing=1, extra=1, duplicate=1),
        {key(None, "2"): "extra", key(None, "4"): "duplicate", key(None, "5"): "missing"},
    )  # fmt: skip


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("declared", "text"), [("time(3)", "-00:00:01"), ("text", "a\\u0000b"), ("date", "-5000-01-01")]
)
def test_a_key_that_postgresql_can_not_hold_is_missing(
    on_postgres: Tables, tmp_path: Path, declared: str, text: str
) -> None:
    """Given a key that one side can't hold, I expect it missing there and no error."""
    (tmp_path / "a.jsonl").write_text(f'{{"id":"{text}"}}\n')
    left = File(str(tmp_path / "a.jsonl"), key="id", columns={"id": declared.partition("(")[0]})
    right = on_postgres.side(on_postgres.table(f"id {declared}"), key="id")

    found = told(left, right, ["id"], "keyhash")

    assert found[:2] == ("keyhash", Counts(left=1, missing=1))
    assert list(found[2].values()) == ["missing"]


@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.parametrize("strategy", ["segments", "keyhash", "sketch"])
def test_whole_numbers_that_one_side_pads_are_no_ranges(on_postgres: Tables, on_mariadb: Tables, strategy: str) -> None:
    """Given keys that MariaDB pads with zeros and that can't be told by ranges, I expect the answer all the same."""
    left = on_mariadb.table("id int(10) unsigned zerofill NOT NULL PRIMARY KEY, v int")
    right = on_postgres.table("id bigint PRIMARY KEY, v int")
    on_mariadb.execute(f"INSERT INTO `{left}` VALUES (1, 1), (2, 2)")
    on_postgres.execute(f"""INSERT INTO "{right}" VALUES (1, 1), (2, 3)""")

    found = told(on_mariadb.side(left), on_postgres.side(right), ["id"], strategy)

    assert found[1:] == (Counts(left=2, right=2, same=1, differ=1), {key("2"): "differ"})


def test_a_record_may_begin_with_the_mark_of_an_encoding(on_postgres: Tables, tmp_path: Path) -> None:
    """Given U+FEFF at the beginning of the first record, which Arrow takes for a mark, I expect that letter."""
    name = on_postgres.table("id text, v int")
    on_postgres.execute(f"""INSERT INTO "{name}" VALUES ('\ufeff', 1)""")
    path = tmp_path / "a.csv"
    path.write_text("id,v\n\ufeff,1\n", encoding="utf-8")

    assert [row[0] for row in rows(on_postgres.side(name, key="id"), PROJECTION)] == ["\ufeff"]
    assert [row[0] for row in rows(File(path, key="id"), PROJECTION)] == ["\ufeff"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_an_empty_field_at_the_end_of_a_file_is_null(tmp_path: Path, end: str) -> None:
    """Given nothing behind the last comma, and a field in quotes before it, I expect null, not the empty text."""
    path = tmp_path / "a.csv"
    path.write_text(f'id,v\n1,"x"\n"2",{end}')

    assert rows(File(path, key="id"), PROJECTION) == [("1", "x"), ("2", None)]
