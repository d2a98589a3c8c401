"""Fields of which the replica is right, and fields that are only filled."""

from __future__ import annotations

import sqlite3

import pytest

import trueup
from trueup.errors import ConfigError

TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, phone TEXT, notes TEXT, v INTEGER)"


class Sides:
    def __init__(self, tmp_path, **options):
        self.paths = {name: tmp_path / f"{name}.db" for name in ("crm", "shop")}
        for name in self.paths:
            self.execute(name, TABLE)
        self.project = trueup.Project(f"sqlite:///{tmp_path}/state.db", seed=1, threads=1)
        crm = trueup.Sql(f"sqlite:///{self.paths['crm']}", table="people", key="id", version="v")
        shop = trueup.Sql(f"sqlite:///{self.paths['shop']}", table="people", key="id")
        self.pair = self.project.pair("people", authority=crm, replica=shop, settle=0, ignore=["v"], **options)

    def execute(self, name, sql, *values):
        with sqlite3.connect(self.paths[name]) as connection:
            found = connection.execute(sql, values).fetchall()
        connection.close()
        return found

    def put(self, name, number, who, phone, notes, version=1):
        self.execute(name, "REPLACE INTO people VALUES (?, ?, ?, ?, ?)", number, who, phone, notes, version)

    def shop(self):
        return self.execute("shop", "SELECT id, name, phone, notes FROM people ORDER BY id")


def test_what_the_replica_owns_is_neither_compared_nor_written(tmp_path):
    sides = Sides(tmp_path, replica_owns=["notes"])
    with sides.project:
        sides.put("crm", 1, "Ann", "1", "theirs does not matter")
        sides.put("shop", 1, "Ann", "1", "vip")
        assert sides.pair.adopt().counts["same"] == 1
        sides.put("crm", 1, "Anna", "1", "still not", version=2)
        assert sides.pair.run().exit_code == 0
        assert sides.shop() == [(1, "Anna", "1", "vip")]


def test_a_field_that_is_only_filled_is_written_where_the_replica_has_none(tmp_path):
    sides = Sides(tmp_path, fill=["phone"], replica_owns=["notes"])
    with sides.project:
        sides.put("crm", 1, "Ann", "111", "")
        sides.put("crm", 2, "Bob", "222", "")
        sides.put("crm", 3, "Cem", None, "")
        sides.put("shop", 1, "Ann", "999", "")  # its own number: right as it is
        sides.put("shop", 2, "Bob", None, "")
        sides.put("shop", 3, "Cem", "333", "")
        report = sides.pair.adopt()
        assert (report.counts["same"], report.counts["differ"]) == (2, 1)
        sides.put("crm", 1, "Anne", "112", "", version=2)
        sides.put("crm", 2, "Bobby", "222", "", version=2)
        assert sides.pair.run().exit_code == 0
        assert sides.shop() == [(1, "Anne", "999", ""), (2, "Bobby", "222", ""), (3, "Cem", "333", "")]
        again = sides.pair.run()
        assert (again.counts["same"], again.counts["differ"]) == (3, 0)


def test_a_field_has_one_owner(tmp_path):
    with pytest.raises(ConfigError, match="phone is compared, and belongs to the replica"):
        Sides(tmp_path, fill=["phone"], replica_owns=["phone"])
