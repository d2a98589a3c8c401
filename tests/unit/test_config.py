"""trueup.toml: what it becomes, and how each mistake in it is named."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.config import FileOptions, TableOptions, load
from trueup.errors import ConfigError
from trueup.model.drift import Drift
from trueup.model.record import Rule
from trueup.pair import FieldSpec

WHOLE = """\
state = "sqlite:///state/trueup.db"

[pair.enrollments]
replica = { path = "export/*.csv.gz", key = ["userId", "courseId"], null = "NA", decimal = "," }
fields = ["status", { name = "fee", places = 2, absolute = "0.01" }, { name = "remark", trim = true }]
map = { user_id = "userId", course_id = "courseId" }
ignore = "loaded_at"
action_field = "status"
absent_when = { status = ["dropped"] }
on_drift = { orphaned = "repair" }
settle = 0
recheck = "8h"
sweep = "10m"
handler = "school.platform:enroll"
handlers = { dropped = "school.platform:unenroll" }

[pair.enrollments.authority]
url = "postgresql://school:${SCHOOL_PASSWORD}@db/school"
table = "school.enrollments"
key = ["user_id", "course_id"]
version = "updated_at"

[pair.users]
authority = { url = "sqlite:///school.db", table = "users", key = "id" }
replica = { url = "sqlite:////srv/platform.db", table = "users" }
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "trueup.toml"
        path.write_text(text, "utf-8")
        return path

    return write


def refused(path: Path, environment: dict[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(path, environment or {})
    return caught.value


def test_a_whole_file_becomes_typed_values(write, tmp_path):
    """Given every sort of option, I expect typed values, the variable replaced, and paths rooted at the file."""
    config = load(write(WHOLE), {"SCHOOL_PASSWORD": "s3cret"})

    pair = config.pair["enrollments"]
    assert config.state == f"sqlite:///{tmp_path}/state/trueup.db"
    assert config.folder == tmp_path
    assert isinstance(pair.authority, TableOptions)
    assert pair.authority.url == "postgresql://school:s3cret@db/school"
    assert pair.authority.key == ("user_id", "course_id")
    assert isinstance(pair.replica, FileOptions)
    assert pair.replica.path == f"{tmp_path}/export/*.csv.gz"
    assert pair.replica.null == ("NA",)
    assert pair.by_action == {"*": "school.platform:enroll", "dropped": "school.platform:unenroll"}
    users = config.pair["users"]
    assert isinstance(users.authority, TableOptions)
    assert isinstance(users.replica, TableOptions)
    assert users.authority.url == f"sqlite:///{tmp_path}/school.db"
    assert users.replica.url == "sqlite:////srv/platform.db"
    assert users.by_action == {}


def test_a_declaration_has_the_options_of_declare(write):
    """Given a pair, I expect keyword options that `declare` takes, with fields as their specifications."""
    declared = load(write(WHOLE), {"SCHOOL_PASSWORD": "x"}).pair["enrollments"].declaration()

    assert declared["fields"] == [
        FieldSpec("status"),
        FieldSpec("fee", Rule(places=2, absolute=Decimal("0.01")), "decimal"),
        FieldSpec("remark", Rule(trim=True), "text"),
    ]
    assert declared["on_drift"] == {Drift.ORPHANED: "repair"}
    assert (declared["settle"], declared["recheck"], declared["sweep"]) == (0, "8h", "10m")
    assert declared["ignore"] == ("loaded_at",)
    assert not {"authority", "replica", "handler", "handlers"} & set(declared)


@pytest.mark.parametrize("replica", ['api = "https://erp.example/orders"', 'url = "sqlite:///b.db", table = "t"'])
def test_a_replica_has_the_authoritys_key_unless_it_says_its_own(tmp_path: Path, replica: str) -> None:
    authority = '[pair.a]\nauthority = { path = "a.csv", key = ["shop", "id"] }\n'
    (tmp_path / "trueup.toml").write_text(f"{authority}replica = {{ {replica} }}")
    found = load(tmp_path / "trueup.toml").pair["a"].replica
    assert found is not None
    assert found.key == ("shop", "id")
    (tmp_path / "trueup.toml").write_text(f'{authority}replica = {{ {replica}, key = "no" }}')
    found = load(tmp_path / "trueup.toml").pair["a"].replica
    assert found is not None
    assert found.key == ("no",)


@pytest.mark.parametrize(
    ("text", "line", "sentence", "hint"),
    [
        ('[pair.a]\nauthority = { url = "sqlite:///a.db", tabel = "t" }', 2, "'tabel'", "'table'"),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id" }\nfeilds = ["x"]', 3, "'feilds'", "'fields'"),
        ('stat = "x"\n[pair.a]\nauthority = { path = "a.csv", key = "id" }', 1, "'stat'", "'state'"),
        ('[pair.a]\n# none\nreplica = { path = "a.csv", key = "id" }', 1, "pair.a.authority: it is missing", "Add"),
        ('[pair.a]\nauthority = { path = "a.csv" }', 2, "authority.key: it is missing", "Add key"),
        (
            '[pair.a]\nauthority = { url = "sqlite:///a.db", table = "t" }',
            2,
            "authority: the authority needs a key",
            None,
        ),
        ('[pair.a]\nauthority = { table = "t" }', 2, "one of url, path and api", "url"),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id" }\n\nsettle = "soon"', 4, "pair.a.settle", None),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id" }\ntries = 0', 3, "pair.a.tries", None),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id", zone = "Mars/X" }', 2, "time zone", None),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id" }\non_drift = { gone = "repair" }', 3, "on_drift", None),
        ('[pair.a]\nauthority = { path = "a.csv", key = "id" }\nhandler = "push"', 3, "no function", "module:function"),
        (
            '[pair.a]\nauthority = { path = "a.csv", key = "id" }\nfields = [\n  "b",\n  { name = "c", place = 2 },\n]',
            5,
            "'place'",
            "'places'",
        ),
        (
            '[pair.a.authority]\npath = "a.csv"\nkey = "id"\n\n[pair.b.authority]\npath = 1\nkey = "id"',
            6,
            "b.authority.path",
            None,
        ),
    ],
)
def test_a_mistake_is_named_by_line_and_option(write, text, line, sentence, hint):
    """Given one mistake, I expect the file, its line, the option, and what was probably meant."""
    error = refused(write(text))

    assert f"trueup.toml line {line}" in error.message
    assert sentence in error.message
    assert "\n" not in error.message
    if hint is not None:
        assert hint in (error.hint or "")


def test_an_unset_variable_is_named_by_line(write):
    """Given ${VARS} of which one is not set, I expect its own line, and no value of the one that is set."""
    path = write(
        '# ${IN_A_COMMENT}\n[pair.a]\nauthority = { url = "mysql://u:${FIRST}@h/d", table = "t" }\n'
        'replica = { url = "mysql://u:${SECOND}@h/d", table = "t" }\n'
    )

    error = refused(path, {"FIRST": "hidden-value"})

    assert "line 4, pair.a.replica.url: the variable SECOND is not set" in error.message
    assert "export SECOND" in (error.hint or "")
    assert "hidden-value" not in str(error)


def test_values_never_show_in_errors(write):
    """Given a wrong option beside a secret, I expect no secret in the sentence."""
    error = refused(write('[pair.a]\nauthority = { url = "${S}", table = ["x"] }'), {"S": "mysql://u:hidden@h/d"})

    assert "hidden" not in str(error)
    assert "line 2" in error.message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "it is missing"), ("[pair]", "there is no pair"), ("[pair.a\n", "line 1"), ("pair = 3", "pair")],
)
def test_a_file_without_pairs_is_refused(write, text, sentence):
    """Given a file that declares nothing, I expect one sentence that says so."""
    assert sentence in refused(write(text)).message


def test_a_file_that_cant_be_read_is_named(tmp_path):
    """Given no file, a folder, or other bytes than UTF-8, I expect the path and a hint."""
    assert "trueup init" in (refused(tmp_path / "trueup.toml").hint or "")
    assert "folder" in refused(tmp_path).message
    (tmp_path / "latin.toml").write_bytes(b"state = '\xe9'")
    assert "byte 9" in refused(tmp_path / "latin.toml").message


@given(
    before=st.lists(
        st.sampled_from(["", "# a comment", "[pair.z]\nauthority = {path = 'z.csv', key = 'id'}"]), max_size=4
    ),
    blank=st.integers(0, 5),
)
def test_lines_are_counted_whatever_stands_above(tmp_path_factory, before, blank):
    """Given any lines above a mistake, I expect the line of the mistake itself."""
    above = list(dict.fromkeys(before))
    text = "\n".join([*above, *[""] * blank, "[pair.a]", "authority = {path = 'a.csv', key = 'id', nope = 1}"])
    path = tmp_path_factory.mktemp("config") / "trueup.toml"
    path.write_text(text, "utf-8")

    found = re.search(r"line (\d+)", refused(path).message)

    assert found is not None
    assert text.splitlines()[int(found[1]) - 1].startswith("authority = {path = 'a.csv'")
