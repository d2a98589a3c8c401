"""Closed windows: compared once they are final, sealed where they agree, and never changed in silence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime

import psycopg
import pytest

import trueup
from trueup.cli.main import main
from trueup.errors import ConfigError, SchemaError
from trueup.model.case import REOPENED
from trueup.model.record import key_text
from trueup.model.times import parse_us
from trueup.sides.memory import Memory
from trueup.testing.clock import ManualClock

COLUMNS = {"id": "integer", "amount": "decimal", "paid_at": "instant"}
HOUR_S, DAY_S = 3_600, 86_400


def us(text):
    return parse_us(text, aware=True, zone=None)


def payment(number, at, amount="10"):
    return {"id": number, "amount": amount, "paid_at": datetime.fromisoformat(at)}


# A payment at noon of each of the first five days of November, by Berlin's days.
PAYMENTS = [payment(day, f"2026-11-0{day}T11:00:00+00:00") for day in range(1, 6)]


class Books:
    """A ledger and a provider's report. It is the sixth of November, 01:00 in Berlin: two windows' lag is not over."""

    def __init__(self, tmp_path, now="2026-11-06T00:00:00Z", payments=PAYMENTS, state=None, **declared):
        self.clock = ManualClock(us(now))
        self.authority = Memory(payments, key="id", columns=COLUMNS, clock=self.clock)
        self.replica = Memory(payments, key="id", columns=COLUMNS, clock=self.clock)
        self.project = trueup.Project(state or f"sqlite:///{tmp_path}/state.db", clock=self.clock, seed=1, threads=1)
        window = {"column": "paid_at", "zone": "Europe/Berlin", "since": "2026-11-01", **declared}
        self.pair = self.project.pair(
            "payments", authority=self.authority, replica=self.replica, fields=["amount"], settle=0, window=window,
            on_drift={"missing": "review", "removed": "review", "behind": "review"},
        )  # fmt: skip

    def adopted(self):
        assert self.pair.adopt().counts["same"] == len(self.authority.rows())
        return self

    def run(self, **options):
        return self.pair.run("compare", **options)

    @property
    def sealed(self):
        windows = self.pair.pair.windows
        return [windows.at(seal.from_us).name for seal in self.project.archive.seals("payments")]

    @property
    def cases(self):
        return {case.key: case for case in self.project.cases()}


@pytest.fixture
def books(tmp_path):
    return Books(tmp_path).adopted()


def test_closed_windows_that_agree_are_sealed_and_not_compared_again(books):
    """Given payments of five days, I expect four windows: the fifth is open for two hours after its end."""
    report = books.run()
    assert (report.counts["windows"], report.counts["sealed"], report.counts["left"]) == (4, 4, 4)
    assert books.sealed == ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"]
    assert books.run().counts["windows"] == 0
    books.clock.advance(HOUR_S)
    report = books.run()
    assert (report.counts["windows"], report.counts["left"]) == (1, 1)
    assert books.sealed[-1] == "2026-11-05"


def test_a_window_with_an_open_difference_is_not_sealed_until_it_is_decided(books):
    books.replica.put({"id": 2, "amount": "9"})
    report = books.run()
    assert report.counts["sealed"] == 3
    case = books.cases[key_text(["2"])]
    assert (case.drift, report.exit_code) == ("edited", 1)
    assert books.run().counts["windows"] == 1
    books.pair.decide(case.number, "accept", person="ann", reason="a fee", until="2027-01-01")
    assert books.run().counts["sealed"] == 1
    assert len(books.sealed) == 4
    assert books.run().counts["windows"] == 0


def test_an_open_window_is_not_judged(books):
    books.replica.remove(5)
    assert books.run().counts["missing"] == 0
    books.clock.advance(HOUR_S)
    assert books.run().counts["drift_removed"] == 1


@pytest.mark.parametrize("state", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_change_under_a_seal_is_a_finding_of_its_own(tmp_path, state, request):
    url = None if state == "sqlite" else request.getfixturevalue("postgres_url")
    books = Books(tmp_path, state=url, recheck="1d").adopted()
    books.run()
    books.replica.put({"id": 2, "amount": "9"})
    books.authority.add(payment(6, "2026-11-03T20:00:00+00:00"))
    assert books.run().counts["reopened"] == 0, "reading again is not due"
    books.clock.advance(DAY_S)
    report = books.run()
    assert report.counts["reopened"] == 2
    second, third = (books.cases[f"{REOPENED}2026-11-0{day}"] for day in (2, 3))
    assert second.drift == third.drift == "reopened"
    assert "the replica has the same number of records (1), changed or new are " + key_text(["2"]) in second.cause
    assert "the authority has 2 records, not 1, changed or new are " + key_text(["6"]) in third.cause
    assert "authority" not in second.cause
    # The windows are compared again, so the records have cases of their own, and the seals are gone.
    assert {key_text(["2"]), key_text(["6"])} < set(books.cases)
    assert books.sealed == ["2026-11-01", "2026-11-04", "2026-11-05"]


def test_a_change_on_both_sides_is_a_finding_though_they_agree(tmp_path):
    books = Books(tmp_path, recheck=0).adopted()
    books.run()
    for side in (books.authority, books.replica):
        side.put({"id": 2, "amount": "12"})
    report = books.run()
    assert (report.counts["reopened"], report.counts["differ"], report.counts["sealed"]) == (1, 0, 1)
    case = books.cases[f"{REOPENED}2026-11-02"]
    assert case.cause.count(key_text(["2"])) == 2
    assert report.exit_code == 1
    assert books.run().counts["reopened"] == 0, "it was said once, and sealed as it is now"
    books.pair.decide(case.number, "ignore-once", person="ann", reason="a correction that both sides made")
    assert books.cases == {}


def test_what_is_gone_from_a_sealed_window_is_found(tmp_path):
    books = Books(tmp_path, recheck=0).adopted()
    books.run()
    books.authority.remove(1)
    assert books.run().counts["reopened"] == 1
    assert "the authority has 0 records, not 1" in books.cases[f"{REOPENED}2026-11-01"].cause
    assert books.cases[key_text(["1"])].drift == "orphaned"


def test_a_record_that_left_the_window_on_one_side_only_is_no_drift(books):
    """Given a payment that the provider booked a day later, I expect no difference, and both windows final."""
    books.replica.put(payment(2, "2026-11-03T02:00:00+00:00"))
    report = books.run()
    assert (report.counts["missing"], report.counts["extra"], report.counts["converged"]) == (1, 1, 1)
    assert books.cases == {}
    assert len(books.sealed) == 4


def test_each_side_has_its_own_column_and_lag(tmp_path):
    books = Books(tmp_path, replica_column="paid_at", replica_lag="30h").adopted()
    assert books.run().counts["windows"] == 3


def test_without_since_the_first_window_is_the_newest_that_was_closed(tmp_path):
    books = Books(tmp_path, since=None).adopted()
    books.run()
    assert books.sealed == ["2026-11-04"]
    books.clock.advance(2 * DAY_S)
    books.run()
    assert books.sealed == ["2026-11-04", "2026-11-05", "2026-11-06"]


def test_windows_can_be_named(books):
    books.replica.put({"id": 4, "amount": "9"})
    report = books.pair.run(window="2026-11-01..2026-11-03")
    assert (report.what, report.counts["windows"]) == ("window 2026-11-01..2026-11-03", 2)
    assert books.sealed == ["2026-11-01", "2026-11-02"]
    assert books.cases == {}
    books.replica.put({"id": 1, "amount": "8"})
    assert books.pair.run(window="2026-11-01").counts["reopened"] == 1, "a window that is named is read in any case"
    with pytest.raises(ConfigError, match="2026-11-05 is not closed yet"):
        books.pair.run(window="2026-11-05")


def test_everything_can_still_be_compared(books):
    books.replica.put({"id": 5, "amount": "9"})
    assert books.run().counts["differ"] == 0
    assert books.run(whole=True).counts["differ"] == 1


def test_a_dry_run_seals_nothing(books):
    report = books.run(dry_run=True)
    assert (report.counts["windows"], report.counts["sealed"]) == (4, 0)
    assert books.sealed == []


def test_before_adoption_nothing_is_sealed(tmp_path):
    books = Books(tmp_path)
    report = books.run()
    assert (report.what, report.counts["left"]) == ("report", 4)
    assert books.sealed == []


def test_other_fields_make_a_seal_void_and_are_no_finding(tmp_path):
    Books(tmp_path, recheck=0).adopted().run()
    books = Books(tmp_path, recheck=0)
    declared = books.pair.pair
    again = trueup.Project(f"sqlite:///{tmp_path}/state.db", clock=books.clock).pair(
        "payments", authority=declared.authority, replica=declared.replica, fields=["amount", "paid_at"], settle=0,
        window={"column": "paid_at", "zone": "Europe/Berlin", "since": "2026-11-01", "recheck": 0},
    )  # fmt: skip
    report = again.run("compare")
    assert (report.counts["windows"], report.counts["reopened"]) == (4, 0)


def test_a_column_that_is_no_time_is_refused_before_anything_is_read(tmp_path):
    books = Books(tmp_path, column="amount").adopted()
    with pytest.raises(SchemaError, match="amount"):
        books.run()


def test_a_side_that_knows_no_intervals_is_refused_at_the_declaration(tmp_path):
    api = trueup.Http("https://bank.example/payments", key="id")
    with pytest.raises(ConfigError, match="replica can't"):
        trueup.Project(f"sqlite:///{tmp_path}/state.db").pair(
            "payments", authority=Memory([], key="id", columns=COLUMNS), replica=api,
            window={"column": "paid_at", "zone": "UTC"},
        )  # fmt: skip


def test_C068_a_record_on_its_way_is_no_drift(tmp_path):
    """Given a write that the replica shows a moment later, and another that it never shows, I expect one finding."""
    books = Books(tmp_path).adopted()
    for number in (1, 2):
        books.authority.put({"id": number, "amount": "11"})
    scan, told = books.replica.scan, []

    def lagging(projection, *scope):
        yield from scan(projection, *scope)
        told.append(True)
        books.replica.put({"id": 1, "amount": "11"})

    books.replica.scan = lagging
    report = books.run()
    assert told
    assert report.counts["converged"] == 1
    assert list(books.cases) == [key_text(["2"])]
    assert books.sealed == ["2026-11-03", "2026-11-04"]


def test_C071_a_month_is_the_month_of_the_declared_zone(tmp_path):
    """Given a payment on the last evening of August in Mexico, I expect it in August's window, whatever UTC says."""
    payments = [payment(1, "2026-08-31T21:40:00-06:00", "80"), payment(2, "2026-09-01T00:10:00-06:00", "5")]
    books = Books(
        tmp_path, "2026-10-02T00:00:00Z", payments, zone="America/Mexico_City", length="1mo", since="2026-08-01"
    ).adopted()
    assert books.run().counts["windows"] == 2
    august, september = books.project.archive.seals("payments")
    assert (august.from_us, august.to_us) == (us("2026-08-01T06:00:00Z"), us("2026-09-01T06:00:00Z"))
    assert (august.left.count, september.left.count) == (1, 1)
    assert august.left.total != september.left.total


def test_a_run_that_is_stopped_goes_on_with_the_windows_that_it_chose(books):
    asked = iter([False] * 6)
    with pytest.raises(trueup.errors.RunStopped):
        books.run(stop=lambda: next(asked, True))
    books.clock.advance(2 * HOUR_S)  # the fifth window has closed meanwhile
    report = books.run()
    assert report.resumed
    assert books.sealed == ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04"]


def test_the_status_says_which_windows_wait(books):
    books.replica.put({"id": 2, "amount": "9"})
    books.run()
    windows = books.pair.status().windows
    assert (windows.sealed, list(windows.waiting), windows.current) == (3, ["2026-11-02"], "2026-11-05")
    assert windows.closes_us == us("2026-11-06T01:00:00Z")


@pytest.mark.postgres
def test_databases_sum_sealed_windows_up_where_they_are(postgres_url, tmp_path):
    """Given two tables of PostgreSQL, I expect a change to be found in the next run, without anything being read."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for table in ("ledger", "report"):
            connection.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, amount numeric, paid_at timestamptz)")
            connection.execute(
                f"INSERT INTO {table} SELECT n, n, timestamptz '2026-01-15 12:00Z' + n % 5 * interval '1 month'"
                " FROM generate_series(1, 200) AS n"
            )
        ledger, report = (trueup.Sql(postgres_url, table, key="id") for table in ("ledger", "report"))
        window = {"column": "paid_at", "zone": "Europe/Berlin", "since": "2026-01-01", "length": "1mo"}
        pair = trueup.Project(f"sqlite:///{tmp_path}/state.db", seed=1).pair(
            "payments", authority=ledger, replica=report, settle=0, window=window, on_drift={"behind": "review"}
        )
        pair.adopt()
        assert pair.run(window="2026-01..2026-06").counts["sealed"] == 5
        connection.execute("UPDATE report SET amount = 0 WHERE id = 47")
        scans = []
        scan, report.scan = report.scan, lambda asked, *scope: scans.append(scope) or scan(asked, *scope)
        counts = pair.run("compare").counts
        found = [case for case in pair._project.cases() if case.key.startswith(REOPENED)]
        ledger.close()
        report.close()
    assert [case.key for case in found] == [f"{REOPENED}2026-03"]
    assert "the replica has the same number of records (40), changed or new are " + key_text(["47"]) in found[0].cause
    assert counts["reopened"] == 1
    sealed = us("2026-02-28T23:00:00Z"), us("2026-03-31T22:00:00Z")
    read = {(scope.window.from_us, scope.window.to_us) for (scope,) in scans}
    read = {place for place in read if place[0] < us("2026-05-31T22:00:00Z")}
    assert read == {sealed}, "of the sealed windows only the one that changed was read"


def test_C071_a_report_of_local_dates_meets_a_ledger_of_instants(tmp_path):
    """Given a ledger in UTC and a report whose dates are Mexico's, I expect both months to agree."""
    (tmp_path / "report.csv").write_text("id,amount,day\n1,80,2026-08-31\n2,5,2026-09-01\n", "utf-8")
    clock = ManualClock(us("2026-10-02T00:00:00Z"))
    ledger = [payment(1, "2026-09-01T03:40:00+00:00", "80"), payment(2, "2026-09-01T06:10:00+00:00", "5")]
    report = trueup.File(tmp_path / "report.csv", key="id", columns={"id": "integer", "amount": "decimal"})
    project = trueup.Project(f"sqlite:///{tmp_path}/state.db", clock=clock, seed=1, threads=1)
    window = {"column": "paid_at", "replica_column": "day", "zone": "America/Mexico_City", "length": "1mo",
              "since": "2026-08-01"}  # fmt: skip
    pair = project.pair(
        "payments", authority=Memory(ledger, key="id", columns=COLUMNS, clock=clock), replica=report,
        fields=["amount"], settle=0, window=window,
    )  # fmt: skip
    pair.on_change(lambda change: None)
    pair.adopt()
    counts = pair.run("compare").counts
    assert (counts["windows"], counts["sealed"], counts["same"]) == (2, 2, 2)
    assert [(seal.left.count, seal.left == seal.right) for seal in project.archive.seals("payments")] == [(1, True)] * 2


TOML = """
[pair.payments]
authority = { url = "sqlite:///a.db", table = "payments", key = "id" }
replica = { url = "sqlite:///b.db", table = "payments", key = "id" }
"""


@pytest.mark.parametrize(
    ("window", "arguments", "said"),
    [
        ('zone = "UTC"\ncolumn = "at"', ["--window", "2026-01-01", "--only", "sweep"], "exclude"),
        ('zone = "UTC"\ncolumn = "at"', ["--window", "2026-01-01", "--whole"], "exclude"),
        ('zone = "UTC"', [], "column: it is missing"),
        ('zone = "UTC"\ncolumn = "at"\nlenght = "1d"', [], "there is no option 'lenght'"),
        ('zone = "Mars"\ncolumn = "at"', [], "is not a time zone"),
    ],
)
def test_the_command_line_says_what_is_wrong(window, arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trueup.toml").write_text(f"{TOML}[pair.payments.window]\n{window}\n", "utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["run", "payments", *arguments])
    assert said in capsys.readouterr().err


def test_a_pair_without_windows_has_none_to_compare(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        with closing(sqlite3.connect(f"{name}.db")) as database:
            database.execute("CREATE TABLE payments (id INTEGER PRIMARY KEY, amount INTEGER)")
    (tmp_path / "trueup.toml").write_text(TOML, "utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["run", "payments", "--window", "2026-01-01"])
    assert "pair payments has no windows" in capsys.readouterr().err
