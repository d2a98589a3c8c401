"""The Spark session in which tables are read: the one that runs, or one of our own."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from trueup.errors import BadInput, ConfigError, SideError, TrueupError, Unreachable

_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
_NEEDED: Final = "Install it with: pip install 'trueup[spark]'. It needs Java 17."
# What a session of our own is started with where spark-defaults.conf and spark-submit do not say otherwise.
_OWN: Final = {
    "spark.app.name": "trueup",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.xml').as_uri()}",
}
# Without a master there is no cluster: nothing listens beyond this machine, and Python is the one that runs now.
_LOCAL: Final = {
    "spark.master": "local[*]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}


def session() -> Any:
    """The active session, else a new one as configured for Spark (spark-defaults.conf), else one on this machine.

    Raises ConfigError where PySpark or Java is missing.
    """
    try:
        from pyspark import SparkConf  # noqa: PLC0415  an extra
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise ConfigError("PySpark is not installed.", hint=_NEEDED) from None
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # It logs failures, with their SQL, before it raises them; whoever catches them says it better.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # Of pandas, which is not used here.
            warnings.simplefilter("ignore", FutureWarning)
            given = SparkConf()
            wanted = _OWN if given.contains("spark.master") or "SPARK_REMOTE" in os.environ else {**_OWN, **_LOCAL}
            builder = SparkSession.builder
            if wanted is not _OWN:
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            for name, value in wanted.items():
                if not given.contains(name):
                    builder = builder.config(name, value)
            return builder.getOrCreate()
    except PySparkException as failure:
        raise ConfigError(f"Spark did not start ({failure.getCondition() or 'no Java'}).", hint=_NEEDED) from failure


@contextmanager
def trouble(label: str) -> Iterator[None]:
    """Errors of Spark in our words: its condition, never its text, which may hold values."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415  comes with PySpark
    from pyspark.errors import PySparkException  # noqa: PLC0415  an extra

    try:
        yield
    except TrueupError:
        raise
    except PySparkException as failure:
        raise _named(label, failure.getCondition() or type(failure).__name__) from failure
    except Py4JJavaError as failure:
        # Failed jobs come as they were thrown in Java. Of their text, only the condition is surely no value.
        found = _CONDITION.search(str(failure.java_exception))
        raise _named(label, found[1] if found else "no condition") from None
    except Py4JError as failure:
        raise Unreachable(f"{label}: Spark ended or broke down.", hint="Its log says why.") from failure


def _named(label: str, condition: str) -> SideError:
    if condition.startswith("PATH_NOT_FOUND"):
        return BadInput(f"{label}: there is nothing there.", hint="Check the path; globs are understood.")
    if condition.startswith(("UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")):
        return BadInput(f"{label} can't be read as Parquet ({condition}).", hint="Check that all files are whole.")
    return SideError(f"{label}: Spark refused or failed ({condition}).", hint="Its log says why.")
