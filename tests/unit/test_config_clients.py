"""One definition for many clients: what trueup.toml and the clients' files become, and how mistakes are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trueup.config import ApiOptions, ProjectConfig, TableOptions, load
from trueup.errors import ConfigError

DEFINED = """\
clients = "clients/*.toml"

[system.erp]
for_each = "clients"
limit = "600/minute"

[system.shared]
limit = "9/second"

[pair.users]
for_each = "clients"
authority = { url = "${DB_{client.name}}", table = "users", key = "id" }
replica = { api = "{client.url}/users", system = "shared" }

[pair.orders]
for_each = "clients"
authority = { url = "sqlite:///{client.name}.db", table = "{client.table.name}", key = "id" }
replica = { api = "{client.url}/orders", system = "erp", headers = { X-Token = "{client.token}" } }
fields = "{client.fields}"
concurrency = "{client.threads}"
on_drift = { orphaned = "repair" }
after = ["users"]

[pair.rates]
authority = { url = "sqlite:///rates.db", table = "rates", key = "id" }

[source.shop]
for_each = "clients"
style = "github"
secrets = "${HOOK_{client.name}}"
events = [{ pair = "orders", values = { id = "id" } }]
"""
ACME = """\
url = "https://acme.example"
token = "${TOKEN_1}"
threads = 4
fields = ["a", "b"]
table.name = "acme_orders"
"""
BETA = ACME.replace("acme", "beta").replace("TOKEN_1", "TOKEN_2")
ENVIRONMENT = {
    "DB_acme": "sqlite:////srv/{client.name}.db", "DB_beta": "sqlite:///b.db",
    "TOKEN_1": "t1", "TOKEN_2": "t2", "HOOK_acme": "h1", "HOOK_beta": "h2",
}  # fmt: skip


def written(folder: Path, defined: str = DEFINED, acme: str = ACME, beta: str = BETA) -> Path:
    (folder / "clients").mkdir(exist_ok=True)
    (folder / "clients/acme.toml").write_text(acme, "utf-8")
    (folder / "clients/beta.toml").write_text(beta, "utf-8")
    (folder / "trueup.toml").write_text(defined, "utf-8")
    return folder / "trueup.toml"


def read(folder: Path, **files: str) -> ProjectConfig:
    return load(written(folder, **files), ENVIRONMENT)


def refused(folder: Path, environment: dict[str, str] | None = None, **files: str) -> ConfigError:
    path = written(folder, **files)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRONMENT if environment is None else environment)
    return caught.value


def test_a_definition_stands_once_for_each_client(tmp_path: Path) -> None:
    """Given two clients, I expect each pair, system and source twice, with the values of each, and the rest once."""
    config = read(tmp_path)

    assert list(config.pair) == ["rates", "users@acme", "orders@acme", "users@beta", "orders@beta"]
    assert list(config.system) == ["shared", "erp@acme", "erp@beta"]
    assert list(config.source) == ["shop@acme", "shop@beta"]
    pair = config.pair["orders@acme"]
    assert isinstance(pair.authority, TableOptions)
    assert isinstance(pair.replica, ApiOptions)
    assert (pair.authority.url, pair.authority.table) == (f"sqlite:///{tmp_path}/acme.db", "acme_orders")
    assert (pair.replica.api, pair.replica.headers) == ("https://acme.example/orders", {"X-Token": "t1"})
    assert [field.name for field in pair.fields or ()] == ["a", "b"]
    assert pair.concurrency == 4
    assert config.source["shop@beta"].secrets == ("h2",)


def test_other_parts_are_found_by_the_name_of_the_definition(tmp_path: Path) -> None:
    """Given parts that name each other, I expect those of the same client, and the shared one as it is."""
    config = read(tmp_path)

    assert config.pair["orders@beta"].after == ("users@beta",)
    assert config.pair["orders@beta"].replica.system == "erp@beta"  # type: ignore[union-attr]
    assert config.pair["users@beta"].replica.system == "shared"  # type: ignore[union-attr]
    assert config.source["shop@beta"].events[0]["pair"] == "orders@beta"
    mapped = DEFINED.replace('after = ["users"]', 'after = { users = ["user_id"] }')
    assert read(tmp_path, defined=mapped).pair["orders@acme"].after == {"users@acme": ("user_id",)}


def test_a_variable_holds_no_placeholder(tmp_path: Path) -> None:
    """Given a secret that looks like a placeholder, I expect it as it is: variables are put in last."""
    authority = read(tmp_path).pair["users@acme"].authority
    assert isinstance(authority, TableOptions)
    assert authority.url == "sqlite:////srv/{client.name}.db"


def test_a_client_says_what_is_otherwise(tmp_path: Path) -> None:
    """Given options of a client's own, I expect tables merged, and a side of another sort replaced."""
    own = """
[pair.orders]
sweep = "7m"
on_drift = { edited = "repair" }
replica = { path = "acme.csv", key = "id" }
[pair.users]
authority = { where = "live" }
[system.erp]
limit = "60/minute"
[system.shared]
reserve = 0.1
[source.shop]
size_max = 5
"""
    config = read(tmp_path, acme=ACME + own)

    orders = config.pair["orders@acme"]
    assert orders.sweep == "7m"
    assert {str(drift) for drift in orders.on_drift} == {"orphaned", "edited"}
    assert orders.replica.path == f"{tmp_path}/acme.csv"  # type: ignore[union-attr]
    assert config.pair["users@acme"].authority.where == "live"  # type: ignore[union-attr]
    assert config.pair["users@acme"].replica.system == "shared@acme"  # type: ignore[union-attr]
    assert config.system["shared@acme"].limit == ("9/second",)
    assert config.system["shared@acme"].reserve == 0.1
    assert config.system["erp@acme"].limit == ("60/minute",)
    assert config.source["shop@acme"].size_max == 5
    assert config.pair["orders@beta"].sweep is None
    assert config.pair["users@beta"].replica.system == "shared"  # type: ignore[union-attr]
    assert config.system["erp@beta"].limit == ("600/minute",)


def test_a_client_switches_a_pair_off(tmp_path: Path) -> None:
    """Given a pair that is off for a client, I expect it gone for that one, and said where something needs it."""
    acme = ACME + "source.shop = false\npair.orders = false\n"
    config = read(tmp_path, acme=acme)

    assert "orders@acme" not in config.pair
    assert "orders@beta" in config.pair
    assert list(config.source) == ["shop@beta"]
    error = refused(tmp_path, acme=ACME + "pair.users = false\n")
    assert "trueup.toml line 22, pair.orders.after: for client acme, pair users is switched off" in error.message
    assert "pair.users = false" not in error.message
    assert read(tmp_path, acme=ACME + "[pair]\nusers = false\norders.after = []\n").pair["orders@acme"].after == ()


def test_clients_may_be_tables_or_rows(tmp_path: Path) -> None:
    """Given the same clients as tables, or as rows with dotted columns, I expect the same pairs."""
    defined = """
[pair.orders]
for_each = "clients"
authority = { url = "sqlite:///{client.db}.db", table = "t", key = "id" }
"""
    tables = defined + '[clients.acme]\ndb = "a"\n[clients.beta]\ndb = "b"\npair.orders.sweep = "5m"\n'
    rows = 'clients = "c*.csv"\n' + defined
    (tmp_path / "clients.csv").write_text("\ufeffname,db,pair.orders.sweep\nacme,a,\n\nbeta,b,5m\n", "utf-8")

    as_tables = read(tmp_path, defined=tables)
    as_rows = read(tmp_path, defined=rows)

    assert as_tables.pair == as_rows.pair
    assert [pair.sweep for pair in as_rows.pair.values()] == [None, "5m"]


def test_a_cell_says_false(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("name,db,pair.orders,pair.orders.sweep\nacme,a,false,1m\nbeta,b,,2m\n", "utf-8")
    defined = 'clients = ["c.csv"]\n[pair.orders]\nfor_each = "clients"\n'
    defined += 'authority = { path = "{client.db}.csv", key = "id" }\n'
    assert list(read(tmp_path, defined=defined).pair) == ["orders@beta"]


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"acme": ACME.replace("threads", "thread")},
        "line 20, pair.orders.concurrency: for client acme, {client.threads} has no value",
        "threads = …",
    ),
    ({"acme": ACME.replace("threads = 4", 'threads = "x"')}, "line 20, pair.orders.concurrency: for client acme", ""),
    (
        {"acme": ACME + "[pair.orders]\n\nsettel = 3\n"},
        "acme.toml line 8, pair.orders.settel: there is no option",
        "settle",
    ),
    ({"acme": ACME + '[pair.orders]\nsettle = "soon"\n'}, "acme.toml line 7, pair.orders.settle", ""),
    (
        {"acme": ACME + "[pair.ordres]\n"},
        "acme.toml line 6, pair.ordres: there is no pair ordres with for_each",
        "'orders'",
    ),
    (
        {"acme": ACME + "[pair.rates]\n"},
        "acme.toml line 6, pair.rates: there is no pair rates with for_each",
        "for_each",
    ),
    ({"acme": ACME + "pair.orders = 3\n"}, "acme.toml line 6, pair.orders: this is no table", "false"),
    ({"acme": ACME + "pair = 3\n"}, "acme.toml line 6, pair: this is no table", "pair.NAME"),
    ({"acme": ACME + "[system.erp]\nlimit = 'lots'\n"}, "acme.toml line 6, system.erp: ", ""),
    ({"acme": ACME + "name = 'x'\n"}, "acme.toml line 6, name: a client does not say its name", "acme"),
    (
        {"acme": ACME.replace("https://acme", "https://{client.name}")},
        "replica.api: for client acme, {client.name} stands for nothing",
        "",
    ),
    ({"acme": "url = \n"}, "clients/acme.toml is not TOML", ""),
    ({"defined": DEFINED.replace("{client.table.name}", "t_{client.table}")}, "{client.table} is no single value", ""),
    ({"defined": DEFINED.replace("${DB_{", "${MY DB_{")}, "variable MY DB_acme is not set", "{client.token}"),
    (
        {"defined": DEFINED.replace('url = "sqlite:///rates', 'url = "sqlite:///{client.name}')},
        "line 25, pair.rates.authority.url: {client.name} stands for nothing here",
        'for_each = "clients"',
    ),
    ({"defined": DEFINED.replace('"clients/*.toml"', '"client/*.toml"')}, "line 1, clients: no file is named by", ""),
    ({"defined": DEFINED.replace('"clients/*.toml"', "3")}, "line 1, clients: these are no clients", "[clients.NAME]"),
    ({"defined": DEFINED.replace('clients = "clients/*.toml"', "")}, "system.erp.for_each: there are no clients", ""),
    ({"defined": DEFINED.replace('"clients/*.toml"', '["clients/*.toml", "clients/a*.toml"]')}, "two clients acme", ""),
    (
        {"defined": DEFINED.replace('for_each = "clients"\nlimit', 'for_each = "client"\nlimit')},
        "system.erp.for_each",
        "",
    ),
    (
        {"defined": DEFINED + '[pair."users@acme"]\nauthority = { path = "x.csv", key = "id" }\n'},
        "two pairs users@acme",
        "",
    ),
]


@pytest.mark.parametrize(("files", "sentence", "hint"), MISTAKES)
def test_a_mistake_is_named_with_file_line_and_client(
    tmp_path: Path, files: dict[str, str], sentence: str, hint: str
) -> None:
    error = refused(tmp_path, **files)

    assert sentence in error.message
    assert hint in (error.hint or "")
    assert "\n" not in error.message


def test_an_unset_variable_names_the_client(tmp_path: Path) -> None:
    lacking = {name: value for name, value in ENVIRONMENT.items() if name != "TOKEN_2"}
    error = refused(tmp_path, lacking)
    assert "pair.orders.replica.headers.X-Token: for client beta, the variable TOKEN_2 is not set" in error.message
    assert "export TOKEN_2" in (error.hint or "")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("id,db\n1,a\n", "has no column name"),
        ("name,db\nacme,a,b\n", "line 2 has 3 cells under 2 names"),
        ("name,db\nacme,a\nacme,b\n", "line 3: there are two clients acme"),
        ("name,db\n,a\n", "line 2: the client has no name"),
        ("name,db\na b,a\n", "line 2, a b: 'a b' is no name for a client"),
        ("name,db,pair.orders.settle\nacme,a,soon\n", "line 2, acme.pair.orders.settle"),
        ("", "has no column name"),
    ],
)
def test_a_row_that_is_wrong_is_named_by_line(tmp_path: Path, rows: str, sentence: str) -> None:
    (tmp_path / "c.csv").write_text(rows, "utf-8")
    defined = 'clients = "c.csv"\n[pair.orders]\nfor_each = "clients"\n'
    defined += 'authority = { path = "{client.db}.csv", key = "id" }\n'
    error = refused(tmp_path, defined=defined)
    assert "c.csv" in error.message
    assert sentence in error.message


def test_lines_are_found_in_a_file_from_windows(tmp_path: Path) -> None:
    path = written(tmp_path, '[pair.a]\r\n# none\r\nauthority = { path = "a.csv", key = "id" }\r\nnope = 1\r\n')
    with pytest.raises(ConfigError, match=r"line 4, pair\.a\.nope"):
        load(path, {})
