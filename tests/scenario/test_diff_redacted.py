"""`trueup diff --redact`: values of a column stand in no output, whatever differs and wherever it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup.cli.main import main
from trueup.model.redaction import REDACTED

# No number, hash or time of an output holds this by chance.
CANARY: Final = "424242"
OUTPUTS: Final = ("--output", "d.jsonl", "--output", "d.csv", "--output", "d.parquet", "--html", "d.html")
# How an answer is told on standard output.
TOLD: Final[dict[str, tuple[str, ...]]] = {
    "terminal": ("--limit", "0", "--explain"),
    "statements": ("--limit", "0", "--explain-sql"),
    "json": ("--limit", "0", "--json"),
    "stream": ("--output", "-", "--format", "output=csv"),
}


def rows(side: str) -> list[dict[str, Any]]:
    """Forty people: five of the left side and five of the right one are alone, and twenty differ in all columns."""
    numbers = range(35) if side == "left" else range(5, 40)
    return [
        {
            "id": number,
            "mail": f"{CANARY}-{number}@example.org"
            if side == "left" or number % 2
            else f"{CANARY}-{number}@EXAMPLE.ORG",
            "income": 424_242_000 + number + (7 if side == "right" and number % 2 == 0 else 0),
            "born": None if number == 8 and side == "left" else f"1942-{CANARY}-{number}",
            "city": "Rome" if side == "left" or number % 2 else "Oslo",
        }
        for number in numbers
    ]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two Parquet files, whose columns have types."""
    monkeypatch.chdir(tmp_path)
    for side in ("left", "right"):
        pq.write_table(pa.Table.from_pylist(rows(side)), f"{side}.parquet")
    return "left.parquet", "right.parquet"


def written(capfd: pytest.CaptureFixture[str]) -> str:
    """All that was written: both streams and every file that `OUTPUTS` names."""
    captured = capfd.readouterr()
    texts = [captured.out, captured.err]
    for path in sorted(Path().glob("d.*")):
        texts.append(str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_text())
        assert CANARY.encode() not in path.read_bytes()
    return "\n".join(texts)


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_values_of_redacted_columns_stand_nowhere(told, people, capfd):
    """Given columns that differ in every way, I expect their values in no output, and the other columns' values."""
    arguments = ["diff", *people, "--key", "id", "--redact", "mail,income", "--redact", "born", *OUTPUTS, *told]
    assert main(arguments, standalone=False) == 1
    found = written(capfd)
    assert CANARY not in found
    assert REDACTED in found
    assert "Rome" in found


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_without_it_the_canary_sings(told, people, capfd):
    """Given the same without --redact, I expect the values: else the test above could not fail."""
    assert main(["diff", *people, "--key", "id", *told], standalone=False) == 1
    assert CANARY in capfd.readouterr().out


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_redacted_key_is_told_by_a_hash(told, people, capfd):
    """Given a redacted key, I expect hashes in its place, the same for the same record and another each time."""
    arguments = ["diff", *people, "--key", "born,id", "--redact", "born", "--ignore", "mail,income", *OUTPUTS, *told]
    assert main(arguments, standalone=False) == 1
    assert CANARY not in written(capfd)

    def keys() -> list[str]:
        return [json.loads(line)["key"]["born"] for line in Path("d.jsonl").read_text().splitlines()]

    first = keys()
    assert len(set(first)) == len(first) > 10
    assert all(each.startswith("(redacted ") for each in first)
    assert [row["born"] for row in pq.read_table("d.parquet").to_pylist()] == first
    assert main([*arguments, "-q"], standalone=False) == 1
    assert set(keys()).isdisjoint(first)


def test_duplicates_show_no_values(tmp_path, monkeypatch, capfd):
    """Given keys that repeat, whose copies are listed, I expect none of the redacted values."""
    monkeypatch.chdir(tmp_path)
    Path("left.csv").write_text(f"id,mail\n1,{CANARY}a\n1,{CANARY}b\n2,{CANARY}c\n")
    Path("right.csv").write_text(f"id,mail\n1,{CANARY}a\n2,{CANARY}c\n2,{CANARY}d\n")
    for told in TOLD.values():
        arguments = ["diff", "left.csv", "right.csv", "--key", "id", "--redact", "mail", *OUTPUTS, *told]
        assert main(arguments, standalone=False) == 1
        assert CANARY not in written(capfd)
    (first, _) = [json.loads(line) for line in Path("d.jsonl").read_text().splitlines()]
    assert first["unmatched"] == {"left": [{"id": "1", "mail": REDACTED}], "right": []}


def test_that_a_column_differs_and_how_often_is_told(people, capfd):
    """Given a redacted column, I expect its name where it differs, its count, and the likely cause without values."""
    arguments = ["diff", *people, "--key", "id", "--columns", "mail", "--redact", "mail", "--json"]
    assert main(arguments, standalone=False) == 1
    answer = json.loads(capfd.readouterr().out)
    differ = [each for each in answer["differences"] if each["kind"] == "differ"]
    assert differ[0]["fields"] == {"mail": {"left": REDACTED, "right": REDACTED}}
    (column,) = answer["analysis"]["columns"]
    assert (column["column"], column["count"], column["redacted"], column["examples"]) == ("mail", 15, True, [])
    assert [cause["name"] for cause in column["causes"]] == ["case"]


def test_a_name_of_the_right_side_will_do(people, capfd):
    """Given a column by its name on the right, I expect it redacted under both."""
    table = pq.read_table("right.parquet")
    pq.write_table(table.rename_columns(["id", "contact", "income", "born", "city"]), "right.parquet")
    arguments = ["diff", *people, "--key", "id", "--columns", "mail", "--map", "mail=contact", "--redact", "contact"]
    assert main(arguments, standalone=False) == 1
    assert CANARY not in capfd.readouterr().out


def test_a_column_that_nobody_has_is_an_error(people, capfd):
    """Given a misspelt name, I expect an error that says so before anything is shown."""
    assert main(["diff", *people, "--key", "id", "--redact", "mial"], standalone=False) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: --redact mial: neither side has such a column.")
    assert "mail" in captured.err


def test_statements_are_refused(people, capfd):
    """Given --emit-sql beside --redact, I expect an error and no file."""
    arguments = ["diff", "shop.db#people", "erp.db#people", "--redact", "mail", "--emit-sql", "repair.sql"]
    assert main(arguments, standalone=False) == 2
    assert capfd.readouterr().err.startswith("error: --emit-sql would write values of mail, which --redact hides.")
    assert not Path("repair.sql").exists()
