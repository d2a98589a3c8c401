"""Whoever can write the state store tampers with evidence: every way of it shows, on every database."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from trueup.cli.evidence_text import assurance
from trueup.engine.account import all_entries, prove
from trueup.model.evidence import GENESIS, RUN, Entry, Fact, Head, append, canonical
from trueup.ports import Archive
from trueup.project import open_store

TEXTS = ("kind", "pair", "about", "body", "previous", "digest")
NUMBERS = ("number", "at_us")


class Store:
    """A store with five entries, and somebody with a shell on its database."""

    def __init__(self, archive: Archive, execute: Callable[..., Any], mark: str) -> None:
        self.archive, self._execute, self._mark = archive, execute, mark
        for at in range(1, 6):
            archive.put_on_record(Fact(RUN, "orders", f"{at}{at}", canonical({"left": at, "why": "Zoë"})))
        self.entries = archive.entries()

    def sql(self, statement: str, *parameters: Any) -> None:
        self._execute(statement.replace("?", self._mark), parameters)

    def set(self, entry: Entry, column: str, value: Any) -> None:
        self.sql(f"UPDATE trueup_evidence SET {column} = ? WHERE number = ?", value, entry.number)

    def put_back(self) -> None:
        self.sql("DELETE FROM trueup_evidence")
        for entry in self.entries:
            self.insert(entry)

    def insert(self, entry: Entry) -> None:
        fact = entry.fact
        self.sql(
            "INSERT INTO trueup_evidence (number, kind, pair, about, at_us, body, previous, digest) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            entry.number, fact.kind, fact.pair, fact.about, entry.at_us, fact.body, entry.previous, entry.digest,
        )  # fmt: skip

    def wrongs(self, *anchors: Head) -> set[tuple[int, str]]:
        return {(each.number, each.wrong) for each in prove(self.archive, anchors).chain.findings}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request, tmp_path) -> Iterator[Store]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/state.db"
        archive = open_store(url)[1]
        with sqlite3.connect(tmp_path / "state.db", isolation_level=None) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            yield Store(archive, connection.execute, "?")
        connection.close()
    else:
        url = request.getfixturevalue("postgres_state")()
        archive = open_store(url)[1]
        schema = parse_qs(urlsplit(url).query)["schema"][0]
        with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", ('"' + schema.replace('"', '""') + '"',))
            yield Store(archive, connection.execute, "%s")
    archive.close()


def held(entry: Entry, column: str) -> Any:
    return getattr(entry.fact, column) if hasattr(entry.fact, column) else getattr(entry, column)


def test_what_nobody_touched_is_intact(store):
    proof = prove(store.archive, [store.entries[2].head])
    assert (proof.holds, proof.chain.entries, proof.chain.anchored) == (True, 5, 3)


@pytest.mark.parametrize("column", TEXTS)
def test_every_flipped_byte_of_every_row_shows(store, column):
    """Given a bit of each character of this column of every entry flipped in turn, I expect a finding each time."""
    flips = 0
    for entry in store.entries:
        text = held(entry, column)
        for place, character in enumerate(text):
            flipped = chr(ord(character) ^ (1 << (flips % 7)) or 1)
            store.set(entry, column, text[:place] + flipped + text[place + 1 :])
            assert store.wrongs() & {(entry.number, "altered"), (entry.number + 1, "unlinked")}, place
            flips += 1
        store.set(entry, column, text)
    assert flips == sum(len(held(entry, column)) for entry in store.entries) >= 10
    assert store.wrongs() == set()


@pytest.mark.parametrize("column", NUMBERS)
@pytest.mark.parametrize("at", range(5))
def test_every_flipped_bit_of_a_number_shows(store, column, at):
    entry = store.entries[at]
    for bit in (0, 1, 3, 17, 40, 61):
        flipped = held(entry, column) ^ (1 << bit)
        if column == "number" and 1 <= flipped <= 5:
            continue
        store.set(entry, column, flipped)
        assert store.wrongs(), (column, bit)
        store.put_back()
    assert store.wrongs() == set()


def test_every_removed_row_shows(store):
    for entry in store.entries:
        store.sql("DELETE FROM trueup_evidence WHERE number = ?", entry.number)
        at = entry.number if entry is store.entries[-1] else entry.number + 1
        assert (at, "missing") in store.wrongs()
        store.put_back()
    store.sql("DELETE FROM trueup_evidence")
    assert store.wrongs() == {(5, "missing")}


def test_a_removed_end_with_the_note_of_it_shows_only_by_an_anchor(store):
    """Given the last entries removed, and the store's own note of the end set back, I expect an anchor to tell."""
    store.sql("DELETE FROM trueup_evidence WHERE number > 3")
    store.sql("UPDATE trueup_chain SET number = 3, digest = ?", store.entries[2].digest)
    assert store.wrongs() == set()
    assert store.wrongs(store.entries[4].head) == {(5, "missing")}
    # Another one is appended in the place of the fourth: an anchor of that tells too.
    store.archive.put_on_record(Fact(RUN, "orders", "99", "{}"))
    assert store.wrongs(store.entries[3].head) == {(4, "rewritten")}


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(range(5), 2)])
def test_any_two_rows_that_changed_places_show(store, first, second):
    """Given two whole entries of which each stands where the other was, I expect both to show."""
    one, other = store.entries[first], store.entries[second]
    store.sql("DELETE FROM trueup_evidence WHERE number IN (?, ?)", one.number, other.number)
    for entry, number in ((one, other.number), (other, one.number)):
        store.insert(Entry(number, entry.fact, entry.at_us, entry.previous, entry.digest))
    assert {(one.number, "altered"), (other.number, "altered")} <= store.wrongs()


def test_columns_that_changed_places_show(store):
    """Given two entries that exchange their numbers, with or without all the rest, I expect both to show."""
    second, fourth = store.entries[1], store.entries[3]
    for one, other in ((second, fourth), (fourth, second)):
        store.sql("DELETE FROM trueup_evidence WHERE number = ?", one.number)
        store.sql("UPDATE trueup_evidence SET number = ? WHERE number = ?", one.number, other.number)
        store.insert(Entry(other.number, one.fact, one.at_us, one.previous, one.digest))
        assert {(2, "altered"), (4, "altered")} <= store.wrongs()
        store.put_back()
    for column in ("body", "at_us", "about"):
        store.sql("DELETE FROM trueup_evidence WHERE number IN (?, ?)", 2, 4)
        for here, there in ((second, fourth), (fourth, second)):
            told = {name: held(there if name == column else here, name) for name in (*TEXTS, *NUMBERS)}
            fact = Fact(told["kind"], told["pair"], told["about"], told["body"])
            store.insert(Entry(here.number, fact, told["at_us"], told["previous"], told["digest"]))
        if held(second, column) != held(fourth, column):
            assert {(2, "altered"), (4, "altered")} <= store.wrongs()
        store.put_back()


def test_a_fork_shows(store):
    """Given an entry replaced by one that follows the same one before, I expect the next to stand unlinked."""
    fork = append(store.entries[1].head, Fact(RUN, "orders", "98", "{}"), 7)
    store.sql("DELETE FROM trueup_evidence WHERE number = 3")
    store.insert(fork)
    assert store.wrongs() == {(4, "unlinked")}
    assert store.wrongs(store.entries[2].head) == {(4, "unlinked"), (3, "rewritten")}


@pytest.mark.parametrize("kept", range(5))
def test_a_chain_written_anew_from_any_entry_on_shows_only_by_an_anchor(store, kept):
    """Given all entries behind the first ones written anew, consistently, I expect nothing to show without an anchor,
    which is said; an anchor from there on tells, and one from before does not."""
    head = store.entries[kept - 1].head if kept else Head()
    store.sql("DELETE FROM trueup_evidence WHERE number > ?", kept)
    for entry in store.entries[kept:]:
        body = entry.fact.body.replace("Zo", "Jo")
        anew = append(head, Fact(entry.fact.kind, entry.fact.pair, entry.fact.about, body), entry.at_us)
        store.insert(anew)
        head = anew.head
    store.sql("UPDATE trueup_chain SET digest = ?", head.digest)
    proof = prove(store.archive)
    assert (proof.holds, proof.chain.anchored) == (True, 0)
    assert "No anchor was given: whoever can write the whole store" in assurance(proof)
    for entry in store.entries:
        expected = {(entry.number, "rewritten")} if entry.number > kept else set()
        assert store.wrongs(entry.head) == expected


# ── what was cut ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shortened(store):
    """The same store without its first two entries; one more stands for them."""
    standing = store.archive.cut_evidence(store.entries[2].at_us)
    store.old, store.entries = store.entries[:2], store.archive.entries()
    assert [each.number for each in store.entries] == [3, 4, 5, 6]
    assert store.entries[-1] == standing
    return store


def test_what_was_cut_by_the_program_is_intact(shortened):
    proof = prove(shortened.archive, [shortened.old[0].head, shortened.entries[1].head])
    assert (proof.holds, proof.chain.entries, proof.chain.anchored) == (True, 4, 4)
    assert "Entries 1 to 2, of " in assurance(proof)
    assert "; entry 6 stands for them." in assurance(proof)


def test_every_flipped_byte_of_what_stands_for_others_shows(shortened):
    standing = shortened.entries[-1]
    for column in TEXTS:
        text = held(standing, column)
        for place, character in enumerate(text):
            shortened.set(standing, column, text[:place] + chr(ord(character) ^ 1) + text[place + 1 :])
            assert (standing.number, "altered") in shortened.wrongs(), (column, place)
        shortened.set(standing, column, text)
    assert shortened.wrongs() == set()


def test_an_entry_removed_behind_the_cut_shows(shortened):
    for entry in shortened.entries:
        shortened.sql("DELETE FROM trueup_evidence WHERE number = ?", entry.number)
        assert any(wrong == "missing" for _, wrong in shortened.wrongs()), entry.number
        shortened.put_back()
    assert shortened.wrongs() == set()


def test_what_was_cut_and_is_there_again_shows(shortened):
    shortened.insert(shortened.old[1])
    assert (2, "disordered") in shortened.wrongs()


def test_another_entry_behind_the_cut_shows(shortened):
    """Given the first entry that is left written behind another one, I expect it to show, with or without anchors."""
    third = shortened.entries[0]
    anew = append(Head(2, "0" * 64), third.fact, third.at_us)
    shortened.sql("DELETE FROM trueup_evidence WHERE number = 3")
    shortened.insert(anew)
    assert {(3, "unlinked"), (4, "unlinked")} <= shortened.wrongs()
    assert {(2, "rewritten"), (3, "rewritten")} <= shortened.wrongs(shortened.old[1].head, third.head)


def test_a_cut_that_nothing_stands_for_shows(store):
    store.sql("DELETE FROM trueup_evidence WHERE number < 3")
    assert store.wrongs() == {(3, "missing")}


@pytest.mark.parametrize("change", ["digest = 'x'", "number = 2", "number = 9"])
def test_a_changed_note_of_the_end_shows(store, change):
    store.sql(f"UPDATE trueup_chain SET {change}")
    assert store.wrongs()


@pytest.mark.parametrize("change", ["DELETE FROM trueup_chain", "UPDATE trueup_chain SET number = 0, digest = 'x'"])
def test_what_was_tampered_with_does_not_hold_up_what_comes(store, change):
    """Given the note of the end removed or set back, I expect the next entry to be appended, and the break to show."""
    store.sql(change)
    entry = store.archive.put_on_record(Fact(RUN, "orders", "6", "{}"))
    assert entry.number == 6
    assert entry.previous in (GENESIS, "x")
    assert (6, "unlinked") in store.wrongs()


def test_entries_that_are_appended_meanwhile_are_no_finding(store):
    """Given another entry while the chain is read, I expect nothing to be wrong."""
    reading = all_entries(store.archive)
    assert next(reading).number == 1
    store.archive.put_on_record(Fact(RUN, "orders", "6", "{}"))
    original = store.archive.head
    store.archive.head = lambda: store.entries[-1].head
    assert store.wrongs() == {(6, "altered")}
    heads = iter([store.entries[-1].head, original()])
    store.archive.head = lambda: next(heads)
    assert store.wrongs() == set()
