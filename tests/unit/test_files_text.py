"""What is wrong with a text file is named by file, line and column; nothing is bent into shape."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zipfile

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.errors import BadInput, ConfigError, IncompleteScan, SchemaError, SideError
from trueup.model.kinds import BOOLEAN, DECIMAL, FLOAT, INTEGER
from trueup.ports import Scope
from trueup.sides.files import File
from trueup.testing.sides.asking import key_of, projection_of, scanned


def rows(side, *names, kinds=None, scope=None):
    """All records of a side as texts, the first column being the key."""
    projection = projection_of(side, names[:1], names[1:], kinds=kinds)
    return scanned(side, projection, *([scope] if scope else []))


@pytest.fixture
def csv_of(tmp_path):
    numbers = itertools.count()

    def write(content, **options):
        path = tmp_path / options.pop("name", f"orders{next(numbers)}.csv")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return File(path, **{"key": "id", **options})

    return write


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,a\n1,x\n2\n3,y\n", "line 3: 1 fields where the header has 2"),
        ("id,a\n1,x\n\n2,y,z\n", "line 4: 3 fields where the header has 2"),
        ('id,a\n1,"x\ny"\n2\n', "line 4: 1 fields"),
        ('id,a\n1,x\n2,"half a fi', "line 3: a quoted field"),
        ('id,a\n1,x\n2,"half\nand more\n3,z\n', "line 3: a quoted field"),
        ('id,a\n1,x\n2,5" pipe\n3,6" pipe\n', "line 3, column 2: a quote inside"),
        ('id,a\n1,x\n2,"a"b\n', "line 3: a quoted field"),
        ('id,a\n1,x\n2, "a"\n', "line 3, column 2: a quote inside"),
        ("id,a\n1,x\n" + "9,ok\n" * 20_000 + "2\n", "line 20,003: 1 fields"),
        ("", "has no header"),
        ("\n1,2\n", "has no header"),
        (b"PAR1....PAR1", "is a Parquet file"),
        (b"i\x00d\x00,\x00a\x00\n\x00", "zero byte at offset 1"),
        (b"id,a\n1,caf\xe9\n", "byte offset 10 "),
        ("id,a\n1,é\n".encode()[:-2], "byte offset 7 "),
    ],
)
def test_bad_csv_is_named(csv_of, content, message):
    side = csv_of(content)
    with pytest.raises(BadInput, match=message) as caught:
        rows(side, "id")
    assert "pipe" not in str(caught.value)
    assert "half" not in str(caught.value)


def test_a_declared_value_that_does_not_parse_is_named_without_the_value(csv_of):
    content = "id,amount,paid\n" + "".join(f"{i},{i}.5,true\n" for i in range(10_441)) + "x,4711-secret,true\n"
    side = csv_of(content, name="orders.csv", columns={"amount": "decimal", "paid": "boolean"})
    with pytest.raises(BadInput) as caught:
        rows(side, "id", "amount")
    assert caught.value.message == (
        "orders.csv line 10,443, column amount: not a value of kind decimal, as it is declared."
    )
    assert "4711" not in str(caught.value)
    # A column that nobody asks for is not parsed.
    assert len(rows(side, "id", "paid")) == 10_442


def test_an_undeclared_value_that_does_not_parse_is_an_oddity(csv_of):
    side = csv_of("id,n\n1,7\n2,007\n3,seven\n4,\n")
    found = rows(side, "id", "n", kinds={"n": INTEGER})
    assert [row["n"] for row in found] == ["7", "!007", "!seven", None]


@pytest.mark.parametrize(
    ("null", "expected"),
    [
        (("",), [None, "", "NA", "NA"]),
        (("NA",), ["", "", None, "NA"]),
        (("NA", ""), [None, "", None, "NA"]),
        ((), ["", "", "NA", "NA"]),
        ("NA", ["", "", None, "NA"]),
    ],
)
def test_only_unquoted_texts_mean_null(csv_of, null, expected):
    side = csv_of('id,a\n1,\n2,""\n3,NA\n4,"NA"\n', null=null)
    assert [row["a"] for row in rows(side, "id", "a")] == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_ends_a_record(csv_of, end):
    side = csv_of(end.join(["id,a", "1,x", "2,y"]))
    assert rows(side, "id", "a") == [{"id": "1", "a": "x"}, {"id": "2", "a": "y"}]


def test_a_file_of_a_header_alone_is_empty(csv_of):
    for content in ("id,a", "id,a\n", "id,a\r\n\r\n"):
        assert rows(csv_of(content), "id", "a") == []


def test_quotes_that_mean_nothing(csv_of):
    side = csv_of('id,a\n1,5" pipe\n2,"x\n', quote=None)
    assert [row["a"] for row in rows(side, "id", "a")] == ['5" pipe', '"x']


def test_a_tab_is_the_delimiter_of_tsv(csv_of):
    assert rows(csv_of("id\ta\n1\tx,y\n", name="orders.tsv"), "id", "a") == [{"id": "1", "a": "x,y"}]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1.234.567,5", DECIMAL, "1234567.5"),
        ("1.250", DECIMAL, "1250"),
        ("-1.250", INTEGER, "-1250"),
        ("1250", INTEGER, "1250"),
        ("2,50", DECIMAL, "2.5"),
        ("2,5e3", FLOAT, "2500"),
        ("1.25", DECIMAL, "!1.25"),
        ("1.2345", DECIMAL, "!1.2345"),
        ("12,5,0", DECIMAL, "!12,5,0"),
        ("x", DECIMAL, "!x"),
        ("007", INTEGER, "!007"),
        ("", DECIMAL, None),
        ("NaN", DECIMAL, "nan"),
        ("1", BOOLEAN, "true"),
    ],
)
def test_numbers_in_another_writing(csv_of, text, kind, expected):
    side = csv_of(f"id;a\n1;{text}\n", delimiter=";", decimal=",", thousands=".")
    (found,) = rows(side, "id", "a", kinds={"a": kind})
    # An integer whose zeros would be lost keeps the mark with the text as it stood.
    assert found["a"] == expected


@pytest.mark.parametrize("text", ["12,5", "1.250,00", "1,250.00", "-1.250,5", "1.234.567"])
def test_a_number_in_an_undeclared_writing_is_refused(csv_of, text):
    side = csv_of(f"id;a\n1;5\n2;{text}\n", delimiter=";")
    with pytest.raises(BadInput, match="line 3, column a: not a plain number"):
        rows(side, "id", "a", kinds={"a": DECIMAL})
    assert rows(side, "id", "a")[1]["a"] == text


@pytest.mark.parametrize("pack", ["gz", "zst", "zip", "unnamed"])
def test_packed_files_are_unpacked_whatever_their_name(tmp_path, pack):
    content = b"id,a\n1,x\n" * 1 + b"2,y\n" * 100_000
    path = tmp_path / ("orders.csv" if pack == "unnamed" else f"orders.csv.{pack}")
    if pack == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("orders.csv", content)
    elif pack == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(content)
    else:
        path.write_bytes(gzip.compress(content[:500]) + gzip.compress(content[500:]))
    assert len(rows(File(path, key="id"), "id", "a")) == 100_001
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadInput, match="damaged or ends early"):
        rows(File(path, key="id"), "id", "a")


def test_a_missing_file_names_its_neighbours(tmp_path):
    (tmp_path / "orders_2026.csv").write_text("id\n1\n")
    with pytest.raises(SideError, match="no such file") as caught:
        File(tmp_path / "order_2026.csv", key="id").describe()
    assert "orders_2026.csv" in str(caught.value.hint)
    with pytest.raises(SideError, match="no such file") as caught:
        File(tmp_path / "nowhere" / "*.csv", key="id").describe()
    assert "There is no folder" in str(caught.value.hint)
    with pytest.raises(SideError, match="is a folder"):
        File(tmp_path, format="csv").describe()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": None}, "format can't be told"),
        ({"delimiter": ";;"}, "delimiter is"),
        ({"quote": "''"}, "quote is"),
        ({"decimal": ",", "thousands": ","}, "both"),
        ({"decimal": ",,"}, "single characters"),
        ({"zone": "Europe/Nowhere"}, "not a time zone"),
        ({"columns": {"a": "nummer"}}, "not a kind"),
        ({"encoding": "utf-9"}, "not an encoding"),
        ({"skip_top": -1}, "skip_top"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, message):
    path = tmp_path / "orders.dat"
    path.write_text("id,a\n1,x\n")
    with pytest.raises(ConfigError, match=message):
        File(path, **{"key": "id", "format": "csv", **options}).describe()


def test_declared_columns_exist(csv_of):
    with pytest.raises(SchemaError, match="no column amuont") as caught:
        csv_of("id,amount\n1,2\n", columns={"amuont": "decimal"}).describe()
    assert "amount" in str(caught.value.hint)


def test_several_files_are_one_side(tmp_path):
    (tmp_path / "a.csv").write_text("id,n\n1,x\n")
    (tmp_path / "b.csv").write_text("n,id\ny,2\n")
    side = File(tmp_path / "*.csv", key="id")
    assert rows(side, "id", "n") == [{"id": "1", "n": "x"}, {"id": "2", "n": "y"}]
    assert side.describe().system == "CSV, 2 files"
    (tmp_path / "b.csv").write_text("id,m\n2,y\n")
    with pytest.raises(SchemaError, match=r"b\.csv and a\.csv differ in their columns: m "):
        File(tmp_path / "*.csv", key="id").describe()


def test_a_line_in_the_second_file_is_named_there(tmp_path):
    (tmp_path / "a.csv").write_text("id,n\n1,1\n2,2\n")
    (tmp_path / "b.csv").write_text("id,n\n3,3\n4,four\n")
    side = File(tmp_path / "*.csv", key="id", columns={"n": "integer"})
    with pytest.raises(BadInput, match=r"b\.csv line 3, column n"):
        rows(side, "id", "n")


def test_a_file_that_grows_while_it_is_read_is_incomplete(csv_of):
    side = csv_of("id,n\n" + "1,1\n" * 100_000)
    scan = side.scan(projection_of(side, ["id"], ["n"]))
    next(scan)
    with open(side.path, "a") as file:  # noqa: PTH123
        file.write("2,2\n")
    with pytest.raises(IncompleteScan, match="changed while it was read"):
        list(scan)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("paid", ["1", "3"]),
        ("amount > 10 AND note = 'x'", ["3"]),
        ("note IS NULL", ["2"]),
        ("placed >= DATE '2026-01-02'", ["2", "3"]),
        ("1 = 1 -- all of them", ["1", "2", "3"]),
        ("\"amount\" = 2.5", ["1"]),
    ],
)  # fmt: skip
def test_a_condition_selects_records(csv_of, where, expected):
    content = "id,amount,paid,note,placed\n1,2.5,true,x,2026-01-01\n2,20,false,,2026-01-02\n3,11,1,x,2026-01-03\n"
    columns = {"amount": "decimal", "paid": "boolean", "placed": "date"}
    side = csv_of(content, columns=columns, where=where)
    assert [row["id"] for row in rows(side, "id", "note")] == expected
    whole = csv_of(content, columns=columns)
    assert [row["id"] for row in rows(whole, "id", scope=Scope(where=where))] == expected


@pytest.mark.parametrize("where", ["nope = 1", "note =", "read_text('/etc/hostname') IS NULL", "note = 1::BLAH"])
def test_a_condition_that_is_none_is_named(csv_of, where):
    side = csv_of("id,note\n1,secret\n", where=where)
    with pytest.raises(ConfigError, match="condition of") as caught:
        rows(side, "id", "note")
    assert "secret" not in str(caught.value)


def test_a_bad_line_is_named_right_behind_a_condition(csv_of):
    content = "id,kind,n\n" + "1,a,1\n" * 70_000 + "2,b,x\n"
    side = csv_of(content, columns={"n": "integer"}, where="kind = 'b'")
    with pytest.raises(BadInput, match="line 70,002, column n"):
        rows(side, "id", "n")


def test_wall_clock_times_in_a_zone_are_instants(csv_of):
    side = csv_of("id,at\n1,2026-07-01 12:00:00\n2,2026-01-01 12:00:00\n", zone="Europe/Berlin", version="at")
    assert str(side.describe().column("at").kind) == "timestamp with zone"
    found = scanned(side, projection_of(side, ["id"], [], version="at"))
    assert [row["at"] for row in found] == [1782900000000000, 1767265200000000]


def test_records_past_a_version_come_in_order_and_errors_keep_their_words(csv_of):
    content = "id,at,n\n" + "".join(f"{i},{(i * 7919) % 100_000},1\n" for i in range(100_000))
    side = csv_of(content, version="at", columns={"n": "integer"})
    projection = projection_of(side, ["id"], ["n"], version="at")
    found = [row["at"] for row in scanned(side, projection, Scope(since=50_000))]
    assert found == list(range(50_000, 100_000))
    side = csv_of(content + "x,99999,y\n", version="at", columns={"n": "integer"})
    with pytest.raises(BadInput, match="line 100,002, column n"):
        scanned(side, projection, Scope(since=50_000))


def test_a_total_row_is_checked_for_each_file(csv_of):
    options = {"footer": {"id": "Sum"}, "columns": {"n": "integer"}}
    assert len(rows(csv_of("id,n\n1,2\n2,3\nSum,5\n", **options), "id", "n")) == 2
    for content, message in (
        ("id,n\n1,2\n2,3\n", "ends without its total row"),
        ("id,n\n1,2\nSum,2\n3,3\n", "line 4: a record after the total row"),
        ("id,n\n1,2\nSum,3\n", "column n: the records do not add up"),
    ):
        with pytest.raises(BadInput, match=message):
            rows(csv_of(content, **options), "id", "n")


def test_reading_by_key_counts_copies(csv_of):
    side = csv_of("id,n\n1,a\n01,b\n1,c\n")
    found = side.read(projection_of(side, ["id"], ["n"]), [key_of("1"), key_of("01"), key_of("2")])
    assert {key: each.copies for key, each in found.items()} == {key_of("1"): 2, key_of("01"): 1}


_FIELDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(_FIELDS, _FIELDS), min_size=1, max_size=20), st.sampled_from(",;\t|"))
def test_whatever_python_writes_as_csv_is_read_back(tmp_path_factory, records, delimiter):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("k", "v"), *records])
    path = tmp_path_factory.mktemp("law") / "records.csv"
    path.write_bytes(text.getvalue().encode())
    side = File(path, key="k", delimiter=delimiter)
    assert [(row["k"], row["v"]) for row in rows(side, "k", "v")] == records


@settings(deadline=None)
@given(st.text('ab",\n', max_size=12))
def test_malformed_quoting_is_never_read(tmp_path_factory, body):
    """Given any text, I expect either the fields that the rules of CSV give, or BadInput; never other fields."""
    path = tmp_path_factory.mktemp("law") / "records.csv"
    path.write_text("k,v\n" + body)
    side = File(path, key="k", null=())
    expected = _strictly("k,v\n" + body)
    if expected is None:
        with pytest.raises(BadInput, match=r"records\.csv"):
            rows(side, "k", "v")
    else:
        assert [(row["k"], row["v"]) for row in rows(side, "k", "v")] == expected


def _strictly(text):
    """The records by RFC 4180, letter by letter; None where they break it or do not have two fields."""
    records, fields, field, state = [], [], "", "start"
    for letter in [*text, "end"]:
        if state == "quoted" and letter != '"':
            if letter == "end":
                return None
            field += letter
        elif letter == '"':
            if state == "bare":
                return None
            field += '"' if state == "closed" else ""
            state = {"start": "quoted", "quoted": "closed", "closed": "quoted"}[state]
        elif letter in (",", "\n", "end"):
            blank = not fields and state == "start"
            fields.append(field)
            field, state = "", "start"
            if letter != ",":
                records += [] if blank else [tuple(fields)]
                fields = []
        elif state == "closed":
            return None
        else:
            field, state = field + letter, "bare"
    return records[1:] if all(len(record) == 2 for record in records) else None
