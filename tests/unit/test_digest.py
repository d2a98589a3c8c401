"""The digest tells records apart that look alike when their fields are joined."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.model.digest import digest_of

records = st.lists(st.one_of(st.none(), st.text(alphabet="~:0123ab", max_size=6), st.text()), max_size=5)


@given(records, records)
def test_two_records_have_one_digest_only_if_all_their_fields_are_equal(
    one: list[str | None], other: list[str | None]
) -> None:
    assert (digest_of(one) == digest_of(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("12", "3"), ("1", "23")),
        ((None,), ("",)),
        ((None,), ("~",)),
        ((None, None), (None,)),
        (("",), ()),
        (("1:a",), ("", "a")),
        (("a1:b",), ("a", "b")),
    ],
)
def test_joined_fields_that_look_alike_differ(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> None:
    assert digest_of(one) != digest_of(other)


def test_the_framing_is_one_that_any_database_can_build() -> None:
    # '3:x' || 'yz', '~' for null, and the length counts bytes, not letters.
    assert digest_of(["xyz", None, "ä"]) == hashlib.md5("3:xyz~2:ä".encode(), usedforsecurity=False).hexdigest()


def test_a_digest_is_32_hex_digits() -> None:
    assert len(digest_of([])) == 32
    assert int(digest_of(["x"]), 16) >= 0
