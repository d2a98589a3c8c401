"""reladiff and data-diff, each in an environment of its own. Options: `module`, and what its `diff_tables` takes."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from _job import Job, login

DRIVERS = {"postgres": "postgresql", "mariadb": "mysql"}


def main() -> None:
    """Writes key, kind and the field that differs; the values are in what they yield, and left out here."""
    options = dict(Job().options)
    peer = importlib.import_module(options.pop("module"))
    if hasattr(peer, "disable_tracking"):
        peer.disable_tracking()
    job = Job()
    more: dict[str, Any] = {}
    fields = job.fields
    if job.since is not None:
        more = {"update_column": "updated_at", "min_update": datetime.fromisoformat(job.since)}
        fields = [name for name in fields if name != "updated_at"]
    logins = ({"driver": DRIVERS[side["kind"]], **login(side["url"])} for side in job.sides)
    found = peer.diff_tables(
        *(peer.connect_to_table(each, job.table, tuple(job.key)) for each in logins),
        key_columns=tuple(job.key), extra_columns=tuple(fields), algorithm=peer.Algorithm.HASHDIFF, **more, **options,
    )  # fmt: skip
    names = [*job.key, *(["updated_at"] if more else []), *fields]
    job.write(("key", "kind", "field"), _answer(found, names, len(job.key)))
    job.done()


def _answer(found: Any, names: Sequence[str], keys: int) -> Iterator[Sequence[str]]:
    rows: dict[tuple[str, ...], dict[str, Sequence[Any]]] = defaultdict(dict)
    for sign, row in found:
        rows[tuple(map(str, row[:keys]))][sign] = row
    for key, signs in rows.items():
        if len(signs) == 2:
            pairs = zip(names, signs["-"], signs["+"], strict=True)
            yield "|".join(key), "differ", "+".join(name for name, a, b in pairs if a != b)
        else:
            yield "|".join(key), "missing" if "-" in signs else "extra", ""


main()
