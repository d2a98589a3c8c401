"""How much a side may ask of its database, as values."""

from __future__ import annotations

import pytest

from trueup.cli.options import limits
from trueup.errors import ConfigError
from trueup.sides.sql import limits as module
from trueup.sides.sql.limits import Limits


@pytest.mark.parametrize(("wrong", "named"), [
    ({"connections": 0}, "connections"), ({"connections": 13}, "connections"),
    ({"timeout_s": 0}, "timeout_s"), ({"timeout_s": -1.0}, "timeout_s"), ({"timeout_s": float("inf")}, "timeout_s"),
    ({"timeout_s": float("nan")}, "timeout_s"),
    ({"throttle": 0}, "throttle"), ({"throttle": 1.5}, "throttle"), ({"throttle": float("nan")}, "throttle"),
])  # fmt: skip
def test_what_can_not_be_meant_is_refused(wrong, named):
    """Given a limit that can't be meant, I expect an error that names it and says what is meant."""
    with pytest.raises(ConfigError, match=named) as caught:
        Limits(**wrong)
    assert caught.value.hint


@pytest.mark.parametrize(("throttle", "worked_s", "rest_s"), [
    (0.5, 2.0, 2.0), (0.25, 1.0, 3.0), (0.01, 10.0, 60.0), (1, 5.0, None), (None, 5.0, None),
])  # fmt: skip
def test_after_its_work_a_connection_rests(monkeypatch, throttle, worked_s, rest_s):
    """Given a share of the time, I expect a rest that leaves just that share to the work, and of a minute at most."""
    now = iter([100.0, 100.0 + worked_s])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    rests: list[float] = []
    with Limits(throttle=throttle).working(rests.append):
        pass
    assert rests == ([] if rest_s is None else [pytest.approx(rest_s)])


def test_options_say_it_for_one_side_or_both():
    """Given options of the command line, I expect each side's limits by the names of `Sql`."""
    left, right = limits(connections=["4"], timeout=["left=500ms", "right=60"], throttle=["right=25%"])
    assert left == {"connections": 4, "timeout_s": 0.5}
    assert right == {"connections": 4, "timeout_s": 60.0, "throttle": 0.25}
    assert limits(connections=None, timeout=None, throttle=[]) == ({}, {})


@pytest.mark.parametrize(("option", "text"), [
    ("connections", "many"), ("connections", ""), ("timeout", "soon"), ("timeout", ""), ("throttle", "half"),
    ("throttle", "%"),
])  # fmt: skip
def test_an_option_that_can_not_be_read_is_named(option, text):
    """Given text that is no such limit, I expect an error that names the option and shows an example."""
    with pytest.raises(ConfigError, match=f"--{option}") as caught:
        limits(**{option: [text]})
    assert f"--{option}" in str(caught.value.hint)
