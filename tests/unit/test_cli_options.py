"""What options of the command line mean."""

from __future__ import annotations

from decimal import Decimal

import pytest

from trueup.cli import options
from trueup.cli.options import BySide
from trueup.cli.terminal import cut, value
from trueup.errors import ConfigError
from trueup.model.record import Rule


def test_names():
    """Given names by repeating and by comma lists, I expect each once, in order."""
    assert options.names(["a, b", "c", "a"]) == ("a", "b", "c")


def test_assignments():
    """Given NAME=VALUE, I expect the last = to split, so that names may hold one."""
    assert options.assignments(["a=b", "x=y=2"], "--map", "a=b") == {"a": "b", "x=y": "2"}


@pytest.mark.parametrize("given", [["a"], ["=b"], ["a="], ["a=1", "a=2"]])
def test_assignments_that_are_none(given):
    """Given no name, no value or a name twice, I expect the option and an example."""
    with pytest.raises(ConfigError, match="--places"):
        options.assignments(given, "--places", "fee=2")


def test_one_side_or_both():
    """Given prefixes, I expect values for that side only; without one, for both."""
    assert options.by_side(["left=;"], "--delimiter") == BySide((";",), (), common=False)
    assert options.by_side([";"], "--delimiter") == BySide((";",), (";",))
    assert options.by_side(["NA", "right=-"], "--null", many=True) == BySide(("NA",), ("NA", "-"), common=False)
    assert options.one_by_side(["right=Europe/Berlin"], "--zone") == (None, "Europe/Berlin")


def test_one_side_given_twice():
    """Given two delimiters for one side, I expect them refused."""
    with pytest.raises(ConfigError, match="--delimiter is given twice"):
        options.by_side([";", "left=,"], "--delimiter")


def test_conditions_are_joined():
    """Given a condition for both and one of a side, I expect both to hold there, whatever OR they have."""
    assert options.conditions("a = 1 OR b = 2", "c = 3", None) == ("(a = 1 OR b = 2) AND (c = 3)", "(a = 1 OR b = 2)")
    assert options.conditions(None, None, "d") == (None, "(d)")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("fee=0.01", Rule(absolute=Decimal("0.01"))),
        ("fee=1%", Rule(relative=Decimal("0.01"))),
        ("at=2s", Rule(seconds=Decimal(2))),
        ("at=500ms", Rule(seconds=Decimal("0.5"))),
    ],
)
def test_tolerances(text, rule):
    """Given a size with its unit, I expect a tolerance that is absolute, relative or of time."""
    assert options.rules([text], [], []) == {text.partition("=")[0]: rule}


@pytest.mark.parametrize("text", ["fee=much", "fee=-1", "fee=nan", "fee=1%%", "at=2 fortnights"])
def test_tolerances_that_are_none(text):
    """Given no size, I expect examples of what is one."""
    with pytest.raises(ConfigError, match="this is no tolerance") as caught:
        options.rules([text], [], [])
    assert "price=1%" in (caught.value.hint or "")


def test_rules_of_one_field_add_up():
    """Given places, a tolerance and folds of one field, I expect one rule."""
    found = options.rules(["a=0.5"], ["a=2"], ["a=trim,case"])

    assert found == {"a": Rule(absolute=Decimal("0.5"), places=2, trim=True, casefold=True)}


def test_rules_that_are_none():
    """Given an unknown fold or no number of places, I expect it named."""
    with pytest.raises(ConfigError, match="'upper'"):
        options.rules([], [], ["a=upper"])
    with pytest.raises(ConfigError, match="--places a=two"):
        options.rules([], ["a=two"], [])


@pytest.mark.parametrize(("text", "size"), [("512MB", 512), ("2GB", 2048), ("128", 128), ("1.5 gib", 1536)])
def test_sizes(text, size):
    """Given a size with or without its unit, I expect MiB."""
    assert options.megabytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "1MB", "-2GB", "2TB"])
def test_sizes_that_are_none(text):
    """Given no size, or one too small to work in, I expect it refused."""
    with pytest.raises(ConfigError, match="--memory"):
        options.megabytes(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "null"),
        ("null", "'null'"),
        ("", "''"),
        (" a", "' a'"),
        ("a b", "a b"),
        ("a\x1b[31mb\n", "a\\x1b[31mb\\n"),
        ("Zoë €", "Zoë €"),
    ],
)
def test_values_for_people(text, shown):
    """Given any text, I expect one line that can't be mistaken and can't control the terminal."""
    assert value(text) == shown


def test_cutting():
    """Given a limit, I expect no more characters, and a sign that there were."""
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 4) == "abc…"
