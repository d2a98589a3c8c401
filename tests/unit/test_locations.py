"""Locations: what one line of text names, and that it never gives away a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.errors import ConfigError
from trueup.locations import (
    FileLocation,
    TableLocation,
    absolute_url,
    hide_password,
    open_side,
    parse_location,
    password_of,
)


@pytest.mark.parametrize(
    ("text", "url", "table"),
    [
        ("postgresql://u:p@h:5432/shop#sales.orders", "postgresql://u:p@h:5432/shop", "sales.orders"),
        ("postgresql+psycopg://h/shop#orders", "postgresql+psycopg://h/shop", "orders"),
        ("mysql://h/d#t", "mysql://h/d", "t"),
        ("mariadb://h/d#order lines", "mariadb://h/d", "order lines"),
        ("sqlite:///x.db#t", "sqlite:///x.db", "t"),
        ("data/x.sqlite3#t", "sqlite:///data/x.sqlite3", "t"),
        ("/srv/x.db#t", "sqlite:////srv/x.db", "t"),
        ("x.DB", "sqlite:///x.DB", None),
        ("mysql://h/d", "mysql://h/d", None),
    ],
)
def test_tables(text, url, table):
    """Given a URL or the path of a database file, I expect its table."""
    assert parse_location(text) == TableLocation(url, table)


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("orders.csv", "csv"),
        ("orders.CSV.gz", "csv"),
        ("s*.parquet", "parquet"),
        ("a.b/x.jsonl.zst", "jsonl"),
        ("x.ndjson", "jsonl"),
        ("report #3.csv", "csv"),
        ("2026.01.tsv", "csv"),
    ],
)
def test_files(text, format_):
    """Given a path or pattern, I expect the format that its suffix says."""
    assert parse_location(text) == FileLocation(text, format_)


def test_a_format_may_be_named():
    """Given a file without a telling suffix, I expect the named format to do."""
    assert parse_location("dump", format="csv") == FileLocation("dump", "csv")


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ("orders.xlsx", "suffix", ".parquet"),
        ("orders", "suffix", "--format"),
        ("orders.txt.gz.bak", "suffix", "Files end in"),
        ("orders.xlsx#Sheet1", "no database", "orders.db#orders"),
        ("postgres1://h/d#t", "no system postgres1://", "postgres"),
        ("oracle://u:hidden@h/d#t", "no system oracle://", "sqlite://"),
        ("mysql://u:p#hidden@h/d#t", "more than one #", "%23"),
        ("x.db#a#b", "more than one #", "%23"),
    ],
)
def test_what_is_no_location(text, sentence, hint):
    """Given text that names nothing, I expect what is wrong and what would be right, without a password."""
    with pytest.raises(ConfigError) as caught:
        parse_location(text)

    assert sentence in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "hidden" not in str(caught.value)


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="/?#@:\n\r"), min_size=1),
    st.text(st.characters(codec="utf-8", exclude_characters="?#\n\r"), min_size=1).filter(
        lambda text: "***" not in text
    ),
)
def test_passwords_are_hidden(user, password):
    """Given any password, even one with @ and / left as they are, I expect none of it in what is shown."""
    url = f"postgresql://{user}:{password}@db.example:5432/shop?sslmode=require"

    assert hide_password(url) == f"postgresql://{user}:***@db.example:5432/shop?sslmode=require"
    assert password_of(url) == password


def test_passwords_in_options_are_hidden():
    """Given a password as an option of the URL, I expect it hidden too."""
    assert hide_password("mysql://h/d?user=a&password=hidden&ssl=1") == "mysql://h/d?user=a&password=***&ssl=1"


@pytest.mark.parametrize("url", ["mysql://u@h/d", "sqlite:///x.db", "postgresql://h:5432/d"])
def test_urls_without_password(url):
    """Given no password, I expect the URL as it is."""
    assert hide_password(url) == url
    assert password_of(url) is None


def test_relative_databases_start_at_a_folder():
    """Given a relative SQLite file, I expect it under the folder; any other URL stays."""
    assert absolute_url("sqlite:///x.db", Path("/srv")) == "sqlite:////srv/x.db"
    assert absolute_url("sqlite:////x.db", Path("/srv")) == "sqlite:////x.db"
    assert absolute_url("mysql://h/x.db", Path("/srv")) == "mysql://h/x.db"


def test_options_of_files_do_not_fit_tables():
    """Given an option of files for a table, I expect it refused by name before anything is opened."""
    with pytest.raises(ConfigError, match="delimiter is an option of files"):
        open_side("x.db#t", key=["id"], delimiter=";")
