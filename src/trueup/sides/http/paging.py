"""Every record of a list that comes in pages, and proof that none slipped between two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import httpx2

from trueup.errors import BadInput, ConfigError, IncompleteScan, Unreachable
from trueup.sides.http.calls import Answer, Calls, same_origin
from trueup.sides.http.mapping import Pick, Wrapping

Style = Literal["page", "offset", "cursor", "link", "none"]
STYLES: Final[tuple[Style, ...]] = Style.__args__  # type: ignore[attr-defined]
_STEPS_BACK: Final = 3
_BARREN_MAX: Final = 100
_STALE_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class Paging:
    """How the list is asked for. step: name of the parameter that walks; size: name and value of the page size."""

    style: Style
    step: str
    size: Mapping[str, str]
    first_page: int
    next: Pick | None
    total: Pick | None

    @staticmethod
    def of(
        style: Style,
        step: str | None,
        size_param: str | None,
        size: int,
        first: int,
        next_: str | None,
        total: str | None,
    ) -> Paging:
        """Checks a declaration; ConfigError."""
        if style not in STYLES:
            raise ConfigError(f"paging can't be {style!r}.", hint=f"It is one of {', '.join(STYLES)}.")
        if style == "cursor" and next_ is None:
            hint = "For example next='meta.next_cursor' or next='header:X-Next'."
            raise ConfigError("paging by cursor needs to know where a page names the next one.", hint=hint)
        if size < 2:
            raise ConfigError("page_size has to be 2 or more.", hint="Pages of 100 to 1,000 records are usual.")
        sizes = {} if size_param is None or style == "none" else {size_param: str(size)}
        return Paging(style, step or style, sizes, first, Pick.of(next_, "next"), Pick.of(total, "total"))


class Drift(Exception):
    """The list moved while it was read."""


class Listing:
    """The list endpoint. key_of: the key of a raw record, for telling records apart."""

    def __init__(self, calls: Calls, paging: Paging, wrapping: Wrapping, label: str, tries: int) -> None:
        self.calls, self.paging, self.wrapping, self.label, self.tries = calls, paging, wrapping, label, tries

    def first(self) -> list[Any]:
        """The records of the first page, for a look at them."""
        answer = self.calls.get(_Walk(self).url(), "the first page")
        return self.wrapping.items(answer.json())

    def read(
        self,
        key_of: Callable[[Any], str],
        begin: Callable[[], None],
        take: Callable[[list[Any]], None],
        params: Mapping[str, str] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Gives every record to `take`, page by page, after `begin`; begins anew where the list drifted.

        enough: asked after each page whether more is needed. Raises IncompleteScan where the list never stood
        still. Keeps the hash of every key: about 70 bytes a record.
        """
        earlier: set[int] | None = None
        why = ""
        for _ in range(self.tries):
            walk = _WALKS[self.paging.style](self, key_of, params or {})
            begin()
            try:
                for page in walk.pages():
                    take(page)
                    if enough():
                        return
                # The same key in two pages is drift, unless it is there again: then the system holds it twice.
                if not walk.repeated or walk.repeated == earlier:
                    return
                why = "records came twice"
            except Drift as drift:
                why = str(drift)
            earlier = walk.repeated
        raise IncompleteScan(
            f"{self.label} changed while it was read, {self.tries} times: {why}.",
            hint="Order the list by a key that never changes, page by offset or cursor, or read it at a quieter time.",
        )

    def looped(self, why: str) -> IncompleteScan:
        """The error for a list that would never end."""
        hint = "Are paging and its parameters right? A list that comes whole has paging='none'."
        return IncompleteScan(f"{self.label} does not end: {why}.", hint=hint)


class _Walk:
    """The state of one enumeration, and what all styles share: totals, repeated keys, the end."""

    strict = False

    def __init__(
        self, listing: Listing, key_of: Callable[[Any], str] | None = None, params: Mapping[str, str] | None = None
    ) -> None:
        self.listing, self.paging, self.calls = listing, listing.paging, listing.calls
        self.key_of: Callable[[Any], str] = key_of or str
        self.params = dict(params or {})
        self.seen: set[int] = set()
        self.repeated: set[int] = set()
        self.totals: list[int] = []
        self.count = self.size = self.stale = self.barren = 0

    def url(self, **params: str) -> httpx2.URL:
        """The address of a page."""
        start = {self.paging.step: str(self.paging.first_page)} if self.paging.style == "page" else {}
        return self.calls.url.copy_merge_params({**self.paging.size, **self.params, **start, **params})

    def pages(self) -> Iterator[list[Any]]:
        """New records of each page, to the end."""
        url: httpx2.URL | None = self.url()
        while url is not None:
            answer = self.answer(url)
            body = None if answer is None else answer.json()
            items = [] if answer is None else self.listing.wrapping.items(body)
            self.size = max(self.size, len(items))
            self.note_total(answer, body)
            fresh = self.fresh(items)
            self.note_keys(fresh)
            yield fresh
            url = self.following(answer, body, items)
        if self.totals and self.count < min(self.totals):
            raise Drift(f"{self.count:,} of {min(self.totals):,} records came")

    def answer(self, url: httpx2.URL) -> Answer | None:
        return self.calls.get(url, "a page of the list")

    def fresh(self, items: list[Any]) -> list[Any]:
        return items

    def following(self, answer: Answer | None, body: Any, items: list[Any]) -> httpx2.URL | None:
        raise NotImplementedError

    def whole(self) -> bool:
        """Whether as many records came as the system says there are."""
        return bool(self.totals) and self.count >= self.totals[-1]

    def note_total(self, answer: Answer | None, body: Any) -> None:
        if self.paging.total is None or answer is None:
            return
        said = self.paging.total(answer, body)
        try:
            self.totals.append(int(said))
        except (TypeError, ValueError):
            raise BadInput(
                f"{self.listing.label}: there is no total at {self.paging.total.spelled!r}.", hint="Correct total."
            ) from None
        if self.strict and self.totals[-1] != self.totals[0]:
            raise Drift("its total changed")

    def note_keys(self, fresh: list[Any]) -> None:
        self.barren = 0 if fresh else self.barren + 1
        if self.barren > _BARREN_MAX:
            raise self.listing.looped(f"{self.barren} pages in a row bring nothing")
        hashes = [hash(self.key_of(item)) for item in fresh]
        again = self.seen.intersection(hashes)
        self.stale = self.stale + 1 if hashes and len(again) == len(set(hashes)) else 0
        if self.stale >= _STALE_MAX:
            raise self.listing.looped("the same records come again and again")
        self.repeated |= again
        self.seen.update(hashes)
        self.count += len(hashes)


class _ByPage(_Walk):
    """Numbered pages, to the first that is empty; only a total can end them sooner."""

    strict = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.number = self.paging.first_page
        self.short = False

    def answer(self, url: httpx2.URL) -> Answer | None:
        answer = self.calls.send("GET", url, kind="list")
        # Some say that a page after the last does not exist.
        if answer.status == 404 and self.number > self.paging.first_page:
            return None
        if not answer.ok:
            raise answer.failure("a page of the list", self.calls.credentials.advice)
        return answer

    def following(self, answer: Answer | None, body: Any, items: list[Any]) -> httpx2.URL | None:
        if not items or self.whole():
            return None
        if self.short:
            raise Drift("a page was short although more followed")
        self.short = len(items) < self.size
        self.number += 1
        return self.url(**{self.paging.step: str(self.number)})


class _ByOffset(_Walk):
    """Each page begins with the last record of the one before.

    Where that record is still in its place, nothing slipped past in front of it, whatever else changed. Where it
    is not, the walk goes back until it meets records that it knows.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked = self.idle = 0
        self.last: str | None = None
        self.begun = self.lost = self.stepped = False

    def fresh(self, items: list[Any]) -> list[Any]:
        keys = [self.key_of(item) for item in items]
        known = 0
        if self.stepped:
            known = next((at for at, key in enumerate(keys) if hash(key) not in self.seen), len(keys))
        elif self.last is not None:
            known = int(keys[:1] == [self.last])
        self.lost = self.last is not None and known == 0
        if self.lost:
            return []
        self.last = keys[-1] if keys else None
        return items[known:]

    def following(self, answer: Answer | None, body: Any, items: list[Any]) -> httpx2.URL | None:
        stepped, self.stepped = self.stepped, self.lost
        if self.lost:
            self.idle += 1
            if self.asked == 0 or self.idle > _STEPS_BACK:
                raise Drift("records moved between its pages")
            self.asked = max(0, self.asked - self.size // 2)
        elif self.last is None or self.whole() or (len(items) == 1 and self.begun and not stepped):
            return None
        else:
            self.idle = self.idle + 1 if stepped else 0
            self.asked += len(items) - 1
        self.begun = True
        return self.url(**{self.paging.step: str(self.asked)})


class _ByCursor(_Walk):
    """Each page names the next one."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.visited: set[str] = set()

    def following(self, answer: Answer | None, body: Any, items: list[Any]) -> httpx2.URL | None:
        assert answer is not None
        following = self.named(answer, body)
        if following in (None, "", False):
            return None
        if str(following) in self.visited:
            raise self.listing.looped("a page names one that was read")
        self.visited.add(str(following))
        return self.at(answer, str(following))

    def named(self, answer: Answer, body: Any) -> Any:
        assert self.paging.next is not None
        return self.paging.next(answer, body)

    def at(self, answer: Answer, following: str) -> httpx2.URL:
        return self.url(**{self.paging.step: following})


class _ByLink(_ByCursor):
    """Each page holds the address of the next: in its Link header (RFC 8288), or where `next` says."""

    strict = True

    def named(self, answer: Answer, body: Any) -> Any:
        return linked(answer) if self.paging.next is None else self.paging.next(answer, body)

    def at(self, answer: Answer, following: str) -> httpx2.URL:
        url = answer.url.join(following)
        if not same_origin(url, self.calls.url):
            place = f"{url.scheme}://{url.netloc.decode()}"
            hint = f"The next page is said to be at {place}. If that is right, put it in url."
            raise Unreachable(f"{self.listing.label} goes on at another system.", hint=hint)
        return url


class _Whole(_Walk):
    """One answer."""

    def following(self, answer: Answer | None, body: Any, items: list[Any]) -> httpx2.URL | None:
        assert answer is not None
        if linked(answer) is not None:
            raise IncompleteScan(
                f"{self.listing.label} has more pages than the one that was asked for.", hint="Declare paging='link'."
            )
        return None


def linked(answer: Answer) -> str | None:
    """The address of the next page in a Link header."""
    response = httpx2.Response(200, headers=answer.headers)
    return response.links.get("next", {}).get("url")


_WALKS: Final[Mapping[Style, type[_Walk]]] = {
    "page": _ByPage, "offset": _ByOffset, "cursor": _ByCursor, "link": _ByLink, "none": _Whole,
}  # fmt: skip
