"""trueup as a library: LEFT RIGHT ANSWER MEMORY_MB."""

from __future__ import annotations

import csv
import sys
from contextlib import closing
from pathlib import Path

from trueup.compare.choose import compare
from trueup.compare.plan import plan
from trueup.model.record import key_parts
from trueup.sides.files import File


def main(left: str, right: str, answer: str, memory_mb: str) -> None:
    """Writes id, kind and the field that differs."""
    with closing(File(left)) as a, closing(File(right)) as b, Path(answer).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "kind", "field"))
        with compare(a, b, plan(a.describe(), b.describe(), key=["id"]), memory_mb=int(memory_mb)) as found:
            for each in found.differences():
                writer.writerow((key_parts(each.key)[0], each.kind, "+".join(each.fields)))


main(*sys.argv[1:])
