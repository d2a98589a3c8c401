"""Failures that happened to users of other tools, with files; each retold in one sentence."""

from __future__ import annotations

import codecs
from decimal import Decimal

import pytest

from trueup.errors import BadInput
from trueup.model.kinds import DECIMAL
from trueup.sides.files import File
from trueup.testing.sides.asking import projection_of, scanned


def rows(side, *names, key=None, kinds=None):
    """All records of a side as texts."""
    return scanned(side, projection_of(side, [key or names[0]], names[1:], kinds=kinds))


def test_C036_numbers_without_declaration_keep_their_zeros(tmp_path):
    """Account, routing and invoice numbers lost their leading zeros because they looked like numbers."""
    path = tmp_path / "accounts.csv"
    path.write_text('Konto,Centre,Routing,Amount\n0031,00077,009900123,64.20\n"0310","009","008800456",12\n')
    side = File(path, key="Konto", columns={"Amount": "decimal"})
    assert {column.name: str(column.kind) for column in side.describe().columns} == {
        "Konto": "text", "Centre": "text", "Routing": "text", "Amount": "decimal",
    }  # fmt: skip
    assert rows(side, "Konto", "Centre", "Routing", "Amount") == [
        {"Konto": "0031", "Centre": "00077", "Routing": "009900123", "Amount": "64.2"},
        {"Konto": "0310", "Centre": "009", "Routing": "008800456", "Amount": "12"},
    ]


@pytest.mark.parametrize("encode", [
    lambda text: codecs.BOM_UTF8 + text.encode(), lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
    lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"), lambda text: text.encode("utf-32"),
], ids=["utf-8", "utf-16-le", "utf-16-be", "utf-32"])  # fmt: skip
def test_C038_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path, encode):
    """With a byte order mark and a quoted header, the first name kept the mark or its quotes."""
    path = tmp_path / "people.csv"
    path.write_bytes(encode('"Id","Name"\r\n"1","A"\r\n'))
    side = File(path, key="Id")
    assert [column.name for column in side.describe().columns] == ["Id", "Name"]
    assert rows(side, "Id", "Name") == [{"Id": "1", "Name": "A"}]


def test_C039_two_columns_of_one_name_are_refused(tmp_path):
    """Of two columns with one name the last silently replaced the first, which was the key."""
    path = tmp_path / "people.csv"
    path.write_text("id,name,id\n7,Ann,9001\n8,Bob,9002\n")
    with pytest.raises(BadInput, match="two columns named id, at positions 1 and 3"):
        File(path, key="id").describe()
    side = File(path, key="id", rename={3: "badge"})
    assert rows(side, "id", "name", "badge")[0] == {"id": "7", "name": "Ann", "badge": "9001"}


def test_C040_a_line_end_inside_quotes_does_not_end_the_record(tmp_path):
    """Input was split at line ends before quotes were read, so a remark of two lines became two records."""
    path = tmp_path / "memos.csv"
    path.write_bytes(b'id,memo,amt\r\n1,"line one\nline two, ""x""",5.00\r\n2,ok,6.00\r\n')
    side = File(path, key="id", columns={"amt": "decimal"})
    found = rows(side, "id", "memo", "amt")
    assert [row["id"] for row in found] == ["1", "2"]
    assert found[0]["memo"] == 'line one\nline two, "x"'
    assert sum(Decimal(row["amt"]) for row in found) == Decimal("11.00")
    path.write_bytes(path.read_bytes().replace(b"6.00", b"6.0x"))
    with pytest.raises(BadInput, match="line 4, column amt"):
        rows(side, "id", "amt")


def test_C041_a_grouping_point_is_not_a_decimal_point(tmp_path):
    """In a file with decimal commas a whole amount with a grouping point (1.250) was read as 1.25."""
    path = tmp_path / "bank.csv"
    path.write_text("Date;Text;Amount\n2026-01-15;Wire;1.234.567,00\n2026-01-16;Fee;-1.250\n2026-01-17;Card;-2,5\n")
    for columns, kinds in (({"Amount": "decimal"}, None), ({}, {"Amount": DECIMAL})):
        side = File(path, key="Date", delimiter=";", decimal=",", thousands=".", columns=columns)
        amounts = [Decimal(row["Amount"]) for row in rows(side, "Date", "Amount", kinds=kinds)]
        assert amounts == [Decimal("1234567.00"), Decimal("-1250.00"), Decimal("-2.50")]
        assert sum(amounts) == Decimal("1233314.50")
        undeclared = File(path, key="Date", delimiter=";", columns=columns)
        with pytest.raises(BadInput, match="line 2, column Amount") as caught:
            rows(undeclared, "Date", "Amount", kinds=kinds)
        assert 'decimal=","' in str(caught.value.hint)
    with pytest.raises(BadInput, match="single column") as caught:
        File(path, key="Date").describe()
    assert "delimiter=';'" in str(caught.value.hint)


def test_C046_another_encoding_is_an_error_not_another_letter(tmp_path):
    """A Windows-1252 file was decoded with another page, so that known names were created anew."""
    path = tmp_path / "names.csv"
    path.write_bytes(bytes.fromhex("69 64 2C 63 0A 31 2C 4D FC 6C 6C 65 72 0A"))
    assert rows(File(path, key="id", encoding="cp1252"), "id", "c") == [{"id": "1", "c": "Müller"}]
    for encoding in ({}, {"encoding": "utf-8"}):
        with pytest.raises(BadInput, match="byte offset 8 ") as caught:
            rows(File(path, key="id", **encoding), "id", "c")
        assert "encoding=" in str(caught.value.hint)


def test_C052_lines_around_the_records_are_declared_not_skipped_as_invalid(tmp_path):
    """Header and summary lines could only be skipped together with records that were really broken."""
    path = tmp_path / "statement.csv"
    text = "Account;12-34\n;\nDate;Text;Amount\n2026-03-01;A;10,00\n2026-03-02;B;5,0x\n;Total;15,00\n"
    path.write_text(text)
    declared = {"key": "Date", "delimiter": ";", "decimal": ",", "skip_top": 2, "columns": {"Amount": "decimal"}}
    with pytest.raises(BadInput, match="line 5, column Amount"):
        rows(File(path, footer={"Text": "Total"}, **declared), "Date", "Text", "Amount")
    path.write_text(text.replace("5,0x", "5,00"))
    found = rows(File(path, footer={"Text": "Total"}, **declared), "Date", "Text", "Amount")
    assert [row["Text"] for row in found] == ["A", "B"]
    path.write_text(text.replace("2026-03-02;B;5,0x\n", ""))
    with pytest.raises(BadInput, match="column Amount: the records do not add up to the total row"):
        rows(File(path, footer={"Text": "Total"}, **declared), "Date", "Text", "Amount")
