"""Names of pairs, and what patterns of them select."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import ConfigError
from trueup.model.names import NAME, client_of, definition_of, is_pattern, matching, of_client, selected, summed

PART = st.from_regex(r"[\w.-]+", fullmatch=True)
NAMES = ["orders@acme", "orders@beta", "users@acme", "refunds"]


@given(definition=PART, client=PART)
def test_a_name_is_made_of_its_parts_and_comes_apart_again(definition: str, client: str) -> None:
    name = of_client(definition, client)
    assert NAME.fullmatch(name)
    assert (definition_of(name), client_of(name)) == (definition, client)
    assert client_of(definition) is None


@given(name=PART | st.builds(of_client, PART, PART), others=st.lists(PART))
def test_no_name_is_a_pattern_and_each_selects_itself(name: str, others: list[str]) -> None:
    assert not is_pattern(name)
    assert matching(name, [*others, name]).count(name) >= 1
    assert set(matching(name, [*others, name])) == {name}


@pytest.mark.parametrize("name", ["", "@acme", "orders@", "a@b@c", "orders acme", "orders/acme", "orders@*", "a\n"])
def test_what_is_no_name(name: str) -> None:
    assert NAME.fullmatch(name) is None


@pytest.mark.parametrize(
    ("patterns", "client", "expected"),
    [
        ((), None, NAMES),
        ((), "acme", ["orders@acme", "users@acme"]),
        (("orders@*",), None, ["orders@acme", "orders@beta"]),
        (("*@acme", "orders@*"), None, ["orders@acme", "users@acme", "orders@beta"]),
        (("orders",), "beta", ["orders@beta"]),
        (("orders@beta",), "beta", ["orders@beta"]),
        (("*",), "acme", ["orders@acme", "users@acme"]),
        (("refunds",), None, ["refunds"]),
        (("orders@[ab]*",), None, ["orders@acme", "orders@beta"]),
    ],
)
def test_what_is_selected(patterns: tuple[str, ...], client: str | None, expected: list[str]) -> None:
    assert selected(NAMES, patterns, client) == expected


@pytest.mark.parametrize(
    ("patterns", "client", "said", "hint"),
    [
        (("orders",), None, "there is no pair orders.", "'orders@*' for all 2"),
        (("Orders@acme",), None, "there is no pair Orders@acme.", "'orders@acme'"),
        (("x*",), None, "there is no pair x*.", "Pairs: "),
        ((), "acne", "there is no pair of client acne.", "'acme'"),
        (("refunds",), "acme", "there is no pair refunds of client acme.", "Pairs: orders@acme, users@acme"),
        (("orders@beta",), "acme", "there is no pair orders@beta of client acme.", "orders@acme"),
    ],
)
def test_what_selects_nothing_is_said(patterns: tuple[str, ...], client: str | None, said: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        selected(NAMES, patterns, client)
    assert caught.value.message == said
    assert hint in (caught.value.hint or "")


def test_a_thousand_names_are_few_words() -> None:
    assert summed([*(f"orders@c{at}" for at in range(1000)), "refunds"]) == ["orders@* (1,000)", "refunds"]
    with pytest.raises(ConfigError) as caught:
        selected([f"orders@c{at}" for at in range(1000)], ("zzz",))
    assert "and 960 more" in (caught.value.hint or "")
