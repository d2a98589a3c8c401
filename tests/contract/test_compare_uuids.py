"""UUIDs of one side that the other has as texts: the canonical ones are hashed in place, the others are read."""

from __future__ import annotations

from typing import Any

import pytest

from sql_tables import Tables, key
from trueup.compare import hashed
from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.compare.result import Counts
from trueup.sides.sql import Sql

UUIDS = [f"{at:08x}-7dec-11d0-a765-00a0c91e6bf6" for at in range(40)]


def _filled(tables: Tables, declared: str, keys: list[str], **options: Any) -> Sql:
    name = tables.table(f"id {declared} PRIMARY KEY, v int")
    rows = ", ".join(f"('{each}', {len(each)})" for each in keys)
    tables.execute(f"INSERT INTO {tables.quoted(name)} VALUES {rows}")
    return tables.side(name, key="id", **options)


def _told(left: Sql, right: Sql, strategy: str) -> tuple[str, Counts, dict[str, str]]:
    planned = plan(left.describe(), right.describe(), key=["id"])
    with compare(left, right, planned, strategy=strategy) as found:
        return found.strategy, found.counts, {each.key: each.kind for each in found.differences()}


@pytest.fixture(params=["uuid", "text"])
def left(request: pytest.FixtureRequest, on_postgres: Tables) -> tuple[Tables, str, dict[str, Any]]:
    """Where the left side is, the type of its key, and what it is told."""
    return on_postgres, request.param, {} if request.param == "uuid" else {"columns": {"id": "uuid"}}


def test_texts_that_are_canonical_agree_by_their_sum(
    left: tuple[Tables, str, dict[str, Any]], on_mariadb: Tables
) -> None:
    tables, declared, options = left
    a = _filled(tables, declared, UUIDS, **options)
    for type_ in ("char(36)", "varchar(60) CHARACTER SET latin1", "varchar(60) CHARACTER SET utf8mb4"):
        b = _filled(on_mariadb, type_, UUIDS)
        assert _told(a, b, "gate") == ("gate", Counts(left=40, right=40, same=40), {})


@pytest.mark.parametrize("strategy", ["gate", "keyhash", "rows"])
def test_a_text_in_another_spelling_is_read(
    left: tuple[Tables, str, dict[str, Any]], on_mariadb: Tables, strategy: str
) -> None:
    """Given an upper-case UUID, one in braces, and one missing, I expect that the latter is told."""
    tables, declared, options = left
    a = _filled(tables, declared, UUIDS, **options)
    others = [UUIDS[0].upper().replace("DEC", "dEC"), f"{{{UUIDS[1]}}}", *UUIDS[2:39]]
    b = _filled(on_mariadb, "varchar(60)", others)

    used, counts, kinds = _told(a, b, strategy)
    assert used == ("rows" if strategy == "gate" else strategy)
    # `v` tells the length of the text as it was written.
    braced = {key(UUIDS[1]): "differ"}
    assert (counts, kinds) == (
        Counts(left=40, right=39, same=38, missing=1, differ=1), {key(UUIDS[39]): "missing", **braced},
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_text_that_is_no_uuid_is_on_one_side_alone(
    left: tuple[Tables, str, dict[str, Any]], on_mariadb: Tables, strategy: str
) -> None:
    """Given texts that a column of UUIDs can't hold, I expect them as extra, and no error of the server."""
    tables, declared, options = left
    a = _filled(tables, declared, UUIDS, **options)
    b = _filled(on_mariadb, "varchar(60)", ["", "x", f"{UUIDS[0]}0", *UUIDS])

    assert _told(a, b, strategy) == (
        strategy, Counts(left=40, right=43, same=40, extra=3),
        dict.fromkeys([key("!"), key("!x"), key(f"!{UUIDS[0]}0")], "extra"),
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["keyhash", "rows"])
def test_a_number_that_is_too_large_is_on_one_side_alone(tables: Tables, on_mariadb: Tables, strategy: str) -> None:
    """Given a key beyond 64 bits with a sign, which another system's integers can't hold, I expect it as extra."""
    left, right = tables.table("id bigint NOT NULL PRIMARY KEY, v int"), on_mariadb.table("id bigint unsigned, v int")
    tables.execute(f"INSERT INTO {tables.quoted(left)} VALUES (1, 1), (2, 2), ({2**63 - 1}, 3)")
    on_mariadb.execute(f"INSERT INTO `{right}` VALUES (1, 1), (2, 3), ({2**63 - 1}, 3), ({2**64 - 1}, 4)")

    _, counts, kinds = _told(tables.side(left, key="id"), on_mariadb.side(right, key="id"), strategy)
    assert (counts, kinds) == (
        Counts(left=3, right=4, same=2, extra=1, differ=1), {key("2"): "differ", key(str(2**64 - 1)): "extra"},
    )  # fmt: skip


@pytest.mark.parametrize("strategy", ["gate", "keyhash", "rows"])
def test_a_uuid_that_is_spelled_twice_is_a_duplicate(on_postgres: Tables, on_mariadb: Tables, strategy: str) -> None:
    """Given the same two spellings of one UUID on both sides, which primary keys let in, I expect a duplicate."""
    keys = [*UUIDS[:5], f"{{{UUIDS[3]}}}"]
    left = _filled(on_postgres, "text", keys, columns={"id": "uuid"})
    right = _filled(on_mariadb, "varchar(60)", keys, columns={"id": "uuid"})

    _, counts, kinds = _told(left, right, strategy)
    assert (counts, kinds) == (Counts(left=6, right=6, same=4, duplicate=1), {key(UUIDS[3]): "duplicate"})


@pytest.mark.parametrize(("missing", "strategy"), [([], "gate"), ([20], "keyhash"), ([1, 20], "keyhash")])
def test_a_few_records_at_the_ends_may_tell_that_a_sum_is_in_vain(
    on_postgres: Tables, on_mariadb: Tables, monkeypatch: pytest.MonkeyPatch, missing: list[int], strategy: str
) -> None:
    """Given a record that is missing within the first ten of an index, I expect that no sum is asked for."""
    monkeypatch.setattr(hashed, "_SMALL_ROWS", 10)
    monkeypatch.setattr(hashed, "_END_ROWS", 10)
    a = _filled(on_postgres, "uuid", UUIDS)
    b = _filled(on_mariadb, "char(36)", [each for at, each in enumerate(UUIDS) if at not in missing])

    planned = plan(a.describe(), b.describe(), key=["id"])
    with compare(a, b, planned) as found:
        assert found.strategy == strategy
        assert {each.key: each.kind for each in found.differences()} == {key(UUIDS[at]): "missing" for at in missing}
        assert ("ends of an index" in found.reason) == (1 in missing)
