"""Evidence: bodies that are the same everywhere, and a chain in which every change shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.errors import BadInput
from trueup.model.evidence import (
    DECISION,
    GENESIS,
    RUN,
    Entry,
    Fact,
    Head,
    anchor_line,
    anchors_in,
    append,
    canonical,
    entry_in,
    entry_line,
    verify,
)

TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
BODY = st.dictionaries(TEXT, VALUE, max_size=4)


def chain(count: int = 5, told: str = "") -> list[Entry]:
    entries: list[Entry] = []
    head = Head()
    for at in range(1, count + 1):
        fact = Fact(RUN if at % 2 else DECISION, "orders", str(at), canonical({"at": at, "told": told}))
        entries.append(append(head, fact, 1_000 + at))
        head = entries[-1].head
    return entries


def wrongs(entries: list[Entry], kept: Head | None = None, *anchors: Head) -> set[tuple[int, str]]:
    return {(each.number, each.wrong) for each in verify(entries, kept, anchors).findings}


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────


@given(BODY)
def test_a_body_holds_what_was_put_into_it_in_ascii(body):
    text = canonical(body)
    assert text.isascii()
    assert "\0" not in text
    assert json.loads(text) == body
    assert canonical(json.loads(text)) == text


@given(BODY, st.randoms())
def test_the_order_of_members_does_not_matter(body, chance):
    shuffled = list(body.items())
    chance.shuffle(shuffled)
    assert canonical(dict(shuffled)) == canonical(body)


@given(BODY, BODY)
def test_other_members_give_another_body(left, right):
    # 1 and true are equal in Python, and not in JSON.
    assert (canonical(left) == canonical(right)) == (repr_json(left) == repr_json(right))


def repr_json(value):
    match value:
        case dict():
            return {name: repr_json(each) for name, each in value.items()}
        case list():
            return [repr_json(each) for each in value]
    return type(value).__name__, value


@pytest.mark.parametrize("value", [1.5, float("nan"), {"deep": [2.0]}, {1: "name"}, b"bytes", {1, 2}])
def test_what_has_no_one_text_is_refused(value):
    with pytest.raises(TypeError):
        canonical({"value": value})


# ── the chain ────────────────────────────────────────────────────────────────────────────────────────


def test_a_chain_as_it_was_written_is_intact():
    entries = chain()
    found = verify(entries, entries[-1].head, [entries[2].head])
    assert (found.intact, found.entries, found.head, found.anchored) == (True, 5, entries[-1].head, 3)
    assert verify([], Head()).intact
    assert entries[0].previous == GENESIS


def test_the_digest_is_what_the_documentation_says():
    """Given an entry, I expect its digest to be computed by ten lines that know nothing of the program."""
    import hashlib

    entry = chain(2)[1]
    told = json.loads(entry_line(entry))
    parts = ["trueup evidence 1"] + [
        str(told[name]) for name in ("number", "kind", "pair", "about", "at_us", "body", "previous")
    ]
    framed = b"".join(b"%d:%s" % (len(part.encode()), part.encode()) for part in parts)
    assert hashlib.sha256(framed).hexdigest() == entry.digest


@given(st.data())
@settings(max_examples=300)
def test_any_change_of_any_column_shows(data):
    """Given one character of one column changed, I expect a finding about that entry or the one behind it."""
    entries = chain()
    at = data.draw(st.integers(0, 4))
    column = data.draw(st.sampled_from(["number", "at_us", "previous", "digest", "kind", "pair", "about", "body"]))
    entry = entries[at]
    held = getattr(entry.fact, column) if hasattr(entry.fact, column) else getattr(entry, column)
    if isinstance(held, int):
        changed = held ^ (1 << data.draw(st.integers(0, 40)))
    else:
        place = data.draw(st.integers(0, len(held) - 1))
        other = data.draw(st.characters(exclude_categories=("Cs",)).filter(lambda each: each != held[place]))
        changed = held[:place] + other + held[place + 1 :]
    if hasattr(entry.fact, column):
        entries[at] = replace(entry, fact=replace(entry.fact, **{column: changed}))
    else:
        entries[at] = replace(entry, **{column: changed})
    found = wrongs(sorted(entries, key=lambda each: each.number))
    assert found
    assert any(number in (changed, entry.number, entry.number + 1) for number, _ in found)


def test_parts_can_not_be_moved_between_columns():
    entry = chain(1)[0]
    moved = replace(entry, fact=replace(entry.fact, pair="order", about=f"s{entry.fact.about}"))
    assert wrongs([moved]) == {(1, "altered")}


@pytest.mark.parametrize("gone", [1, 2, 3, 4])
def test_an_entry_that_was_removed_is_missed(gone):
    entries = chain()
    assert (gone + 1, "missing") in wrongs([each for each in entries if each.number != gone], entries[-1].head)


def test_a_removed_end_is_missed_by_the_store_or_by_an_anchor():
    entries = chain()
    cut = entries[:3]
    assert wrongs(cut) == set()
    assert wrongs(cut, entries[-1].head) == {(5, "missing")}
    assert wrongs(cut, cut[-1].head, entries[3].head) == {(4, "missing")}
    assert wrongs([], Head(), entries[3].head) == {(4, "missing")}


def test_entries_that_changed_places_show():
    entries = chain()
    swapped = [*entries[:1], entries[2], entries[1], *entries[3:]]
    assert (2, "disordered") in wrongs(swapped)
    exchanged = [
        *entries[:1], replace(entries[2], number=2), replace(entries[1], number=3), *entries[3:],
    ]  # fmt: skip
    assert {(2, "altered"), (3, "altered")} <= wrongs(exchanged)


def test_an_entry_that_was_slipped_in_shows():
    entries = chain()
    slipped = append(entries[1].head, Fact(RUN, "orders", "99", "{}"), 5)
    assert (3, "forked") in wrongs([*entries[:3], slipped, *entries[3:]])
    replaced = [*entries[:2], slipped, *entries[3:]]
    assert wrongs(replaced) == {(4, "unlinked")}


def test_a_chain_that_was_written_anew_shows_only_by_an_anchor():
    """Given the whole chain written anew, consistently, I expect that it passes, and that an anchor finds it."""
    was, now = chain(), chain(told="a lie")
    found = verify(now, now[-1].head)
    assert (found.intact, found.anchored) == (True, 0)
    assert wrongs(now, now[-1].head, was[2].head) == {(3, "rewritten")}
    assert verify(now, None, [now[1].head, was[3].head]).anchored == 2


def test_a_chain_that_went_on_in_two_ways_shows_by_its_anchors():
    """Given a store that was set back and went on, I expect anchors of both ways to tell."""
    was = chain()
    other = append(was[3].head, Fact(RUN, "orders", "99", "{}"), 9)
    assert wrongs([*was[:4], other], None, was[4].head, other.head) == {(5, "forked")}
    assert wrongs(was[:4], None, was[4].head, other.head) == {(5, "forked")}


# ── as text ──────────────────────────────────────────────────────────────────────────────────────────


@given(BODY, TEXT.filter(str.isprintable), st.integers(-(2**62), 2**62))
def test_an_exported_entry_is_read_back(body, pair, at_us):
    entry = append(Head(), Fact(RUN, pair, "1", canonical(body)), at_us)
    assert entry_in(entry_line(entry), "line 1") == entry


@pytest.mark.parametrize("line", ["", "{}", "[]", "no", '{"number": "x"}'])
def test_a_line_that_is_no_entry_is_named(line):
    with pytest.raises(BadInput, match="line 7 is no entry"):
        entry_in(line, "chain.jsonl, line 7")


def test_anchors_are_found_in_whatever_text_holds_them():
    heads = [each.head for each in chain(2)]
    lines = ["Dear auditor,", f"> {anchor_line(heads[0], '2026-11-01')}", "", anchor_line(heads[1], "2026-12-01")]
    assert anchors_in(lines, "mail") == heads
    with pytest.raises(BadInput, match="mail holds no anchor"):
        anchors_in(["trueup-anchor 1 short", "trueup-anchor x"], "mail")
