"""Spark is an extra: where it is not installed, these tests are not collected.

`make spark` installs it and runs them; from then on `make test` does too.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

INSTALLED = all(find_spec(name) for name in ("pyspark", "deltalake", "pyiceberg"))
collect_ignore_glob = [] if INSTALLED else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process runs all of them: each would start a Spark of its own."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The Spark session that trueup starts where nobody else did."""
    from trueup.sides.spark.session import session

    started = session()
    yield started
    started.stop()
