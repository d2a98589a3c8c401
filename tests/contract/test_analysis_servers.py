"""What differs, asked of real servers: shares by a few ranges of keys, and what the server says of its columns."""

from __future__ import annotations

import pytest

from trueup.compare.analysis import analyse
from trueup.compare.choose import compare
from trueup.compare.plan import plan

ROWS = 4_000


def _filled(tables, name: str, width: int, rest: str) -> str:
    """A table of one currency in ten, and of 40 records that differ in a block."""
    table = tables.table(f"id bigint PRIMARY KEY, currency varchar({width}), total decimal(12,2)", name)
    rows = ", ".join(
        f"({at}, '{'EUR' if at % 10 else 'JPY'}', {at % 100 + (3 if rest and 1_000 <= at < 1_040 else 0)})"
        for at in range(ROWS)
        if not (rest == "without yen" and at % 100 == 0)
    )
    tables.execute(f"INSERT INTO {tables.quoted(table)} VALUES {rows}".replace("%", "%%"))
    return table


@pytest.mark.parametrize("engine", ["on_postgres", "on_mariadb"])
def test_shares_are_known_without_reading_all_records(request, engine):
    """Given two tables that are compared by hashes, I expect what a tenth of all records share told as that."""
    tables = request.getfixturevalue(engine)
    left = tables.side(_filled(tables, "analysed left", 40, ""), key=["id"])
    right = tables.side(_filled(tables, "analysed right", 20, "without yen"), key=["id"])
    described = left.describe(), right.describe()
    asked = plan(*described, key=["id"])

    with compare(left, right, asked, strategy="keyhash") as found:
        assert found.strategy == "keyhash"
        analysis = analyse(found, asked, described, left)

    assert analysis.compared_with is not None
    assert 500 <= analysis.compared_with < ROWS
    yen = next(each for each in analysis.patterns if each.about == "missing" and each.kind == "value")
    assert (yen.column, yen.values, yen.count, yen.of) == ("currency", ("JPY",), 40, 40)
    assert yen.share_all == pytest.approx(0.1, abs=0.05)
    block = next(each for each in analysis.patterns if each.about == "differ" and each.kind == "block")
    assert block.values == ("1001", "1039")
    assert [cause.said for cause in analysis.columns[0].causes] == ["right is left + 3"]
    assert [(each.column, each.what) for each in analysis.schema] == [("currency", "width")]


def test_collations_are_told(on_postgres):
    tables = on_postgres
    left = tables.side(tables.table('id bigint PRIMARY KEY, name text COLLATE "C"'), key=["id"])
    right = tables.side(tables.table('id bigint PRIMARY KEY, name text COLLATE "POSIX" NOT NULL'), key=["id"])
    described = left.describe(), right.describe()
    asked = plan(*described, key=["id"])

    with compare(left, right, asked) as found:
        schema = analyse(found, asked, described, left).schema

    assert [(each.column, each.what, each.left, each.right) for each in schema] == [
        ("name", "nullability", "null allowed", "not null"),
        ("name", "collation", "C", "POSIX"),
    ]


def test_collations_are_told_of_mariadb(on_mariadb):
    tables = on_mariadb
    left = tables.side(tables.table("id bigint PRIMARY KEY, name varchar(9) COLLATE utf8mb4_bin"), key=["id"])
    right = tables.side(tables.table("id bigint PRIMARY KEY, name varchar(9) COLLATE utf8mb4_unicode_ci"), key=["id"])
    described = left.describe(), right.describe()
    asked = plan(*described, key=["id"])

    with compare(left, right, asked) as found:
        schema = analyse(found, asked, described, left).schema

    assert [(each.what, each.left, each.right) for each in schema] == [
        ("collation", "utf8mb4_bin", "utf8mb4_unicode_ci")
    ]
