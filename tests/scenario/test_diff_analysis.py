"""`trueup diff` says what probably happened: a pattern that was put into the data is named, and nothing else is."""

from __future__ import annotations

import csv
import html
import json
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trueup.cli.main import main
from trueup.model.times import timestamp_text

FIRST_US = 1_795_824_000_000_000  # 2026-11-28T00:00:00
NAMES = ("Jürgen Vogel", "Zoë Smith", "Ann Lee", "Łukasz Bąk", "Noël Roy")


@pytest.fixture
def diff(capsys, tmp_path, monkeypatch):
    """Runs `trueup diff a b` in an empty folder; answers exit code and standard output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(left: str, right: str, *options: str) -> tuple[int, str]:
        code = main(["diff", left, right, *options], standalone=False)
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return run


def orders(count: int = 1_200) -> list[dict[str, str]]:
    """An order a minute; every tenth is in yen."""
    return [
        {
            "id": str(number),
            "placed": timestamp_text(FIRST_US + number * 60_000_000, aware=False),
            "currency": "EUR" if number % 10 else "JPY",
            "total": f"{number % 97}.{number % 900 + 101}",
            "name": f"{NAMES[number % 5]} {number}",
            "code": f"{number:07}",
        }
        for number in range(1, count + 1)
    ]


def night(record: dict[str, str]) -> bool:
    return "2026-11-28T02:00" <= record["placed"] < "2026-11-28T02:15"


def later(text: str, hours: int) -> str:
    return f"{text[:11]}{int(text[11:13]) + hours:02}{text[13:]}"


def changed(records, name, how, where=lambda record: int(record["id"]) % 7 == 0):
    return [{**each, name: how(each[name])} if where(each) else each for each in records]


TWICE = [each for each in orders() for _ in range(2 if 400 <= int(each["id"]) < 430 else 1)]
# What was done to the right side, and lines that must then be said.
INJECTED = {
    "time zone": (
        changed(orders(), "placed", lambda text: later(text, 2), night),
        ["placed  all 15: 2 h later at right: a time zone", "all 15: id 120 to 134, without a gap"],
    ),
    "one currency": (
        changed(
            orders(), "total", lambda text: f"{float(text) * 1000:.0f}", lambda record: record["currency"] == "JPY"
        ),
        ["total   all 120: right is left × 1000", "differ  all 120: currency JPY (10% of all records)"],
    ),
    "rounding": (
        changed(orders(), "total", lambda text: f"{float(text):.1f}"),
        ["rounded to 1 place at right   --places total=1"],
    ),
    "cut": (changed(orders(), "name", lambda text: text[:9]), ["cut off at right after 9 characters"]),
    "case": (changed(orders(), "name", str.upper), ["only upper and lower case   --fold name=case"]),
    "blanks": (changed(orders(), "name", lambda text: f"{text}  "), ["only blanks around the text   --fold name=trim"]),
    "mojibake": (
        changed(orders(), "name", lambda text: text.encode().decode("latin-1")),
        ["UTF-8 read in a one-byte encoding at right"],
    ),
    "replaced": (
        changed(orders(), "name", lambda text: text.encode("ascii", "replace").decode()),
        ["characters replaced by ? or \ufffd at right"],
    ),
    "zeros": (changed(orders(), "code", lambda text: text.lstrip("0")), ["leading zeros lost at right"]),
    "precision": (
        changed(orders(), "placed", lambda text: f"{text[:14]}00:00", lambda record: int(record["id"]) % 60 in (7, 9)),
        ["only whole hours at right"],
    ),
    "missing night": (
        [each for each in orders() if not night(each)],
        ["missing  all 15: placed 2026-11-28T02:00:00 to 02:14:00 (1.2% of all records)"],
    ),
    "twice": (TWICE, ["all 30: id 400 to 429, without a gap", "a batch that came twice at right"]),
    "swapped": (
        [{**each, "name": each["code"], "code": each["name"]} if night(each) else each for each in orders()],
        ["records  all 15: name and code in each other's place"],
    ),
    "keys": (
        [{**each, "id": f" {each['id']}" if night(each) else each["id"]} for each in orders()],
        ["missing keys are extra ones in another spelling: blanks around the key"],
    ),
}


def save_csv(name: str, records: list[dict[str, str]]) -> str:
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, records[0])
        writer.writeheader()
        writer.writerows(records)
    return name


def save_sqlite(name: str, records: list[dict[str, str]]) -> str:
    with closing(sqlite3.connect(name)) as db:
        key = "" if len({each["id"] for each in records}) < len(records) else " PRIMARY KEY"
        number = "TEXT" if any(" " in each["id"] for each in records) else "INTEGER"
        columns = f"id {number}{key}, placed TIMESTAMP, currency TEXT, total DECIMAL, name TEXT, code TEXT"
        db.execute(f"CREATE TABLE orders ({columns})")
        db.executemany("INSERT INTO orders VALUES (:id, :placed, :currency, :total, :name, :code)", records)
        db.commit()
    return f"{name}#orders"


@pytest.mark.parametrize("name", INJECTED)
def test_what_was_done_to_a_file_is_named(diff, name):
    right, lines = INJECTED[name]
    code, out = diff(save_csv("a.csv", orders()), save_csv("b.csv", right), "--key", "id", "--limit", "1")

    assert code == 1
    assert [line for line in lines if line not in out] == [], out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("name", ["time zone", "one currency", "missing night", "swapped", "twice"])
@pytest.mark.parametrize("strategy", ["rows", "keyhash"])
def test_what_was_done_to_a_table_is_named(diff, name, strategy):
    """Given tables, read as a whole or only where their hashes differ, I expect the same words."""
    right, lines = INJECTED[name]
    code, out = diff(
        save_sqlite("a.db", orders()), save_sqlite("b.db", right), "--key", "id", "--limit", "1", "--strategy", strategy
    )

    assert code == 1
    # Where records were not read, shares are those of a smaller sample.
    lines = [re.sub(r" \([\d.]+% of all records\)", "", line) for line in lines]
    assert [line for line in lines if line not in out] == [], out


def test_scattered_differences_without_a_pattern_say_nothing(diff):
    """Given values that differ in no way, I expect no cause and no place, only by how much."""
    right = changed(orders(), "total", lambda text: str(float(text) * 1.37 + int(text[-2:]) ** 2))
    _, out = diff(save_csv("a.csv", orders()), save_csv("b.csv", right), "--key", "id", "--limit", "1")
    said = out.partition("what differs\n")[2]

    assert re.fullmatch(r" total  right − left: .+\n", said), out


def test_nothing_is_said_of_one_difference_or_of_none(diff):
    left = save_csv("a.csv", orders(20))
    one = save_csv("b.csv", changed(orders(20), "name", str.upper, lambda record: record["id"] == "3"))

    assert "what differs" not in diff(left, one, "--key", "id")[1]
    assert "what differs" not in diff(left, left, "--key", "id")[1]


def test_an_analysis_can_be_left_out(diff):
    left, right = save_csv("a.csv", orders()), save_csv("b.csv", INJECTED["case"][0])

    assert "what differs" not in diff(left, right, "--key", "id", "--no-analysis")[1]
    assert "analysis" not in json.loads(diff(left, right, "--key", "id", "--no-analysis", "--json")[1])


def test_its_json_has_these_names(diff):
    """Given a program that reads the answer, I expect every name that the reference promises, and no other."""
    right = changed(changed(orders(), "name", str.upper), "total", lambda text: f"{float(text) + 1:.3f}", night)
    right = [each for each in right if int(each["id"]) not in range(500, 520)]
    _, out = diff(save_csv("a.csv", orders()), save_csv("b.csv", right), "--key", "id", "--json", "--limit", "0")
    analysis = json.loads(out)["analysis"]

    assert set(analysis) == {
        "schema", "examined", "of", "compared_with", "columns", "causes", "patterns", "distributions",
    }  # fmt: skip
    assert (analysis["examined"], analysis["of"], analysis["compared_with"]) == (201, 201, 1200)
    name, total = analysis["columns"]
    assert set(name) == {
        "column", "kind", "count", "of", "share", "examined", "alone", "redacted", "examples", "delta", "causes",
    }  # fmt: skip
    assert (name["column"], name["count"], name["of"], name["share"]) == ("name", 168, 1180, 0.142373)
    assert name["causes"] == [
        {
            "name": "case", "side": None, "said": "only upper and lower case", "count": 168, "of": 168,
            "advice": "--fold name=case",
        }
    ]  # fmt: skip
    assert name["examples"][0] == {
        "key": {"id": "1001"},
        "left": "Zoë Smith 1001",
        "right": "ZOË SMITH 1001",
        "count": 1,
    }
    assert set(total["delta"]) == {"count", "least", "most", "mean", "median", "total", "seconds"}
    assert (total["delta"]["mean"], total["delta"]["total"], total["delta"]["seconds"]) == ("1", "15", False)
    assert [each["about"] for each in analysis["patterns"]] == ["missing", "missing", "total", "total"]
    assert all(
        set(each) == {"about", "kind", "column", "values", "count", "of", "share_all", "cause"}
        for each in analysis["patterns"]
    )
    assert [(each["column"], each["kind"]) for each in analysis["distributions"]] == [
        ("id", "range"), ("placed", "time"), ("currency", "value"),
    ]  # fmt: skip
    assert set(analysis["distributions"][0]["bins"][0]) == {"first", "last", "count", "share_all"}


def test_widths_and_nulls_are_told_with_the_schema(diff):
    with closing(sqlite3.connect("a.db")) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL)")
    with closing(sqlite3.connect("b.db")) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    code, out = diff("a.db#t", "b.db#t")

    assert code == 0
    assert "schema   name: width VARCHAR(40) ↔ VARCHAR(20)\n         name: nullability not null ↔ null allowed" in out


def test_a_sample_says_so(diff, monkeypatch):
    """Given more differences than are examined, I expect exact counts, and that the rest rests on a sample."""
    monkeypatch.setattr("trueup.compare.analysis.sample.EXAMINED_MAX", 50)
    left, right = save_csv("a.csv", orders()), save_csv("b.csv", INJECTED["case"][0])
    _, out = diff(left, right, "--key", "id", "--limit", "1")
    analysis = json.loads(diff(left, right, "--key", "id", "--json")[1])["analysis"]

    assert "what differs (by 42 of 171 differences, evenly chosen)" in out
    assert (analysis["of"], analysis["examined"], analysis["columns"][0]["count"]) == (171, 42, 171)
    assert analysis["columns"][0]["causes"][0]["count"] == 42


# The page


class Seen(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data):
        self.text += data


def page(name: str) -> Seen:
    seen = Seen()
    seen.feed(Path(name).read_text("utf-8"))
    return seen


def test_a_page_has_all_of_it_and_needs_nothing(diff):
    right = changed([each for each in orders() if not night(each)], "name", str.upper)
    code, out = diff(save_csv("a.csv", orders()), save_csv("b.csv", right), "--key", "id", "-q", "--html", "r.html")
    seen = page("r.html")

    assert (code, out) == (1, "")
    for words in (
        "a.csv ↔ b.csv", "Which columns differ", "Likely causes", "only upper and lower case", "--fold name=case",
        "Where the differences lie", "placed 2026-11-28T02:00:00 to 02:14:00", "Differences by currency",
        "The differences", "How it was compared", "strategy rows",
    ):  # fmt: skip
        assert words in seen.text, words
    assert seen.tags.isdisjoint({"script", "img", "link", "iframe", "object", "a", "form"})
    assert seen.attributes.keys().isdisjoint({"src", "href", "onload", "onclick"})
    source = Path("r.html").read_text("utf-8")
    assert "default-src 'none'" in html.unescape(source)
    assert "prefers-color-scheme: dark" in source
    assert "@media print" in source
    assert "http" not in source.replace("http-equiv", "")


HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style><script>", "javascript:alert(1)",
    "&lt;b&gt;", "' onmouseover='x", "\u202egpj.exe", "\x1b[31mred", "</td></tr></table>",
)  # fmt: skip


def test_hostile_values_names_and_files_stay_text(diff):
    """Given markup in values, keys, column names and file names, I expect it shown as text, wherever it is shown."""
    column = "<b onclick=x>name"
    left = [{"id": f"{text}{at}", column: text, "same": "1"} for text in HOSTILE for at in range(4)]
    right = [{**each, column: each[column] + " "} for each in left[1:]]
    save_csv("a<script>.csv", left)
    save_csv("b.csv", right)
    code, _ = diff("a<script>.csv", "b.csv", "--key", "id", "-q", "--html", "r.html")
    seen = page("r.html")

    assert code == 1
    assert seen.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "strong", "table", "thead",
        "tbody", "tr", "th", "td", "ul", "li", "i", "span", "code", "pre", "svg", "rect",
    }  # fmt: skip
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert all(re.fullmatch(r"width: \d+\.\d\d%", style) for style in seen.attributes["style"])
    for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', column, "a<script>.csv"):
        assert text in seen.text
    assert "\x1b" not in seen.text
    assert "\u202e" not in seen.text


def test_a_page_of_agreement(diff):
    left = save_csv("a.csv", orders(5))
    code, _ = diff(left, left, "--key", "id", "-q", "--html", "r.html")

    assert code == 0
    assert "Both sides agree: 5 records" in page("r.html").text


@pytest.mark.parametrize(
    ("to", "said"), [("no/r.html", "there is no folder no"), ("a.csv", "is one of the sides that are compared")]
)
def test_a_page_that_can_not_be_written_is_an_error_before_anything_is_read(capsys, tmp_path, monkeypatch, to, said):
    monkeypatch.chdir(tmp_path)
    save_csv("a.csv", orders(5))
    before = Path("a.csv").read_bytes()

    assert main(["diff", "a.csv", "a.csv", "--key", "id", "--html", to], standalone=False) == 2
    assert said in capsys.readouterr().err
    assert Path("a.csv").read_bytes() == before
