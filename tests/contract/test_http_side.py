"""The HTTP side keeps the contract of sides against a real API: with and without ETags, singly and in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest

from api import Api, serving
from trueup.model.kinds import kind_named
from trueup.sides.http import Http
from trueup.sides.http.mapping import json_value
from trueup.testing.sides import WritableSideContract

_NO_NULL = "JSON has one null: a column that holds it holds nothing"
_ONE_RECORD = "an address names one record"
_NO_EMPTY_PART = "an address can't name an empty key"


class _HttpContract(WritableSideContract):
    served: ClassVar[dict[str, Any]] = {}
    declared: ClassVar[dict[str, Any]] = {}
    gaps: ClassVar[dict[str, str]] = {
        "test_scan_gives_the_canonical_text[json-'null']": _NO_NULL,
        "test_put_reads_back_the_canonical_text[json-'null']": _NO_NULL,
        "test_a_key_twice_is_counted": _ONE_RECORD,
        "test_put_by_keys_of_kind[text]": _NO_EMPTY_PART,
    }

    @pytest.fixture
    def make(self) -> Iterator[Any]:
        with ExitStack() as stack:

            def make(columns: Any, key: Any, version: Any = None, rows: Any = ()) -> Http:
                kinds = {name: kind_named(kind) for name, kind in columns.items()}
                held = [{name: json_value(row.get(name), kind) for name, kind in kinds.items()} for row in rows]
                api = stack.enter_context(serving(Api(key=key, rows=held, **self.served)))
                side = Http(f"{api.url}/items", key=key, version=version, columns=kinds, **self.declared)
                stack.callback(side.close)
                return side

            yield make


class TestHttpWithETags(_HttpContract):
    declared: ClassVar[dict[str, Any]] = {"page_size": 1_000}


class TestHttpWithoutETags(_HttpContract):
    served: ClassVar[dict[str, Any]] = {"etags": "", "paging": "offset", "wrap": "results", "total": True}
    declared: ClassVar[dict[str, Any]] = {
        "paging": "offset", "total": "total", "page_size": 500, "update": "PUT", "create": "POST",
    }  # fmt: skip


class TestHttpByMany(_HttpContract):
    served: ClassVar[dict[str, Any]] = {"paging": "cursor", "wrap": "data", "total": True}
    declared: ClassVar[dict[str, Any]] = {
        "paging": "cursor", "next": "next", "page_size": 700, "keys_param": "ids", "keys_at_once": 200,
        "bulk_url": "{url}/bulk", "answers_with_record": True,
    }  # fmt: skip
    gaps: ClassVar[dict[str, str]] = {
        name: reason for name, reason in _HttpContract.gaps.items() if name != "test_a_key_twice_is_counted"
    }
