"""MariaDB's pages: rows between keys of the primary key, packed by the server; each row lies in one of them."""

from __future__ import annotations

from contextlib import closing

import pytest

from contract.test_compare_hashing import asked
from sql_tables import Tables
from trueup.model.columns import key_texts
from trueup.model.kinds import INTEGER, TEXT
from trueup.model.record import Projection
from trueup.sides.sql import Sql
from trueup.sides.sql.hashing import mysql

pytestmark = pytest.mark.mariadb
UUIDS = [f"{(at * 2654435761) % 2**32:08x}-7dec-{at % 16:x}1d0-a765-00a0c91e6bf6" for at in range(20)]
# Declared columns of the primary key, and their values.
KEYS = {
    "integers": ("a int, b bigint unsigned, PRIMARY KEY (a, b)",
                 [f"{at % 3 - 1}, {2**64 - 1 - at if at % 2 else at}" for at in range(20)]),
    "three columns": ("a tinyint, b varchar(4), c int, PRIMARY KEY (c, a, b)",
                      [f"{at % 2}, '{'xyz'[at % 3]}', {at % 4}" for at in range(12)]),
    "any case": ("a varchar(9) COLLATE utf8mb4_general_ci PRIMARY KEY",
                 ["'b'", "'A'", "'c'", "'D'", "'Z'", "'ö'", "'é'", "'\\\\'", "'%%'", "'日本'", "''"]),
    "latin1": ("a varchar(9) CHARACTER SET latin1 PRIMARY KEY",
               ["'b'", "'A'", "'c'", "'D'", "'Z'", "'ö'", "'é'", "'ÿ'", "'ü'", "'Y0'"]),
    "utf8mb3": ("a varchar(9) CHARACTER SET utf8mb3 PRIMARY KEY", ["'b'", "'A'", "'ö'", "'日'", "'Z'", "'z1'", "'0'"]),
    "as bytes": ("a varchar(9) COLLATE utf8mb4_bin PRIMARY KEY", ["'b'", "'A'", "'a'", "'B'", "'ä'", "'Ä'", "'😀'"]),
    "uuid": ("a uuid PRIMARY KEY", [f"'{each}'" for each in UUIDS]),
    "char": ("a char(36) PRIMARY KEY", [f"'{each}'" for each in UUIDS]),
}  # fmt: skip


def keys_and_hashes(side: Sql, projection: Projection) -> tuple[list[tuple[str, int]], int]:
    """Of every row, in any order; and how many statements brought them."""
    with closing(side.snapshot(projection)) as snapshot:
        batches = list(snapshot.hashes(snapshot.functions[0]))
        found = [
            each
            for batch in batches
            for each in zip(key_texts(batch.columns[:-1], projection.key), batch["h"].to_pylist(), strict=True)
        ]
        return sorted(found), len(batches)


@pytest.mark.parametrize("declared", KEYS)
def test_each_row_lies_in_one_page(on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch, declared: str) -> None:
    """Given pages of three rows, I expect what one statement for all rows brings, and several statements."""
    columns, values = KEYS[declared]
    table = on_mariadb.table(f"v int, {columns}")
    rows = ", ".join(f"({at}, {value})" for at, value in enumerate(values))
    on_mariadb.execute(f"INSERT INTO `{table}` VALUES {rows}")
    key = [each.name for each in on_mariadb.side(table, key="v").describe().columns if each.name != "v"]
    side = on_mariadb.side(table, key=key)
    projection = asked(side, ("v", INTEGER), key=key)
    whole, _ = keys_and_hashes(side, projection)
    assert len({text for text, _ in whole}) == len(values)

    monkeypatch.setattr(mysql, "_PAGE_ROWS", 3)
    assert keys_and_hashes(side, projection) == (whole, len(values) // 3 + 1)


def test_pages_keep_to_the_condition_of_a_side(on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a key beside the primary key, odd names, and a condition that warns of each row, I expect the rows that it
    lets pass, and the statements that look for pages among those that are shown."""
    table = on_mariadb.table('v int, `100% "a"` date, note varchar(9), `no%` int PRIMARY KEY')
    on_mariadb.execute(
        f"INSERT INTO `{table}` SELECT seq, '2024-01-01' + INTERVAL seq DAY, concat(seq, 'x'), seq FROM seq_1_to_40"
    )
    key = ['100% "a"']
    side = on_mariadb.side(table, key=key, where="note > 20")
    projection = asked(side, ("v", INTEGER), key=key)
    whole, _ = keys_and_hashes(side, projection)
    assert len(whole) == 20

    monkeypatch.setattr(mysql, "_PAGE_ROWS", 3)
    assert keys_and_hashes(side, projection) == (whole, 7)
    with closing(side.snapshot(projection)) as snapshot:
        assert len(list(snapshot.hashes(snapshot.functions[0]))) == 7
        assert sum("OFFSET 2" in each for each in snapshot.statements) == 2


def test_texts_that_change_on_their_way_part_no_rows(on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given two spellings of one letter, of which only one comes back, I expect one statement for all rows."""
    table = on_mariadb.table("v int, a varchar(9) CHARACTER SET cp932 PRIMARY KEY")
    values = ", ".join(
        f"({at}, CONVERT(X'{letter}' USING cp932))" for at, letter in enumerate(["8790", "829F", "82A0"])
    )
    on_mariadb.execute(f"INSERT INTO `{table}` VALUES {values}")
    side = on_mariadb.side(table, key="v")
    monkeypatch.setattr(mysql, "_PAGE_ROWS", 1)
    found, batches = keys_and_hashes(side, asked(side, ("a", TEXT), key=["v"]))
    assert (len(found), batches) == (3, 1)


@pytest.mark.parametrize(("declared", "pages"), [("varchar(9) PRIMARY KEY", 6), ("longtext, PRIMARY KEY (v)", 1)])
def test_a_page_is_no_longer_than_its_keys_allow(
    on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch, declared: str, pages: int
) -> None:
    """Given keys of up to 36 bytes, I expect two rows in 200 bytes; and a scan of boundless keys."""
    table = on_mariadb.table(f"v int, code {declared}")
    on_mariadb.execute(f"INSERT INTO `{table}` SELECT seq, concat('c', seq) FROM seq_1_to_10")
    side = on_mariadb.side(table, key="code")
    monkeypatch.setattr(mysql, "_PAGE_BYTES", 200)
    monkeypatch.setattr(mysql, "_PAGE_ROWS_MIN", 2)

    found, batches = keys_and_hashes(side, asked(side, ("v", INTEGER), key=["code"]))
    assert (len(found), batches) == (10, pages)
