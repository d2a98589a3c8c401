"""What a Python project can say without a function of its own, trueup.toml can say too, with the same defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from trueup.config import (
    AlertsOptions,
    ApiOptions,
    FileOptions,
    PairOptions,
    ProjectConfig,
    SourceOptions,
    SystemOptions,
    TableOptions,
    TargetOptions,
    UrlOptions,
)
from trueup.engine.alerts import alert_plan
from trueup.errors import ConfigError
from trueup.events.webhook import Source
from trueup.integrations.targets import Webhook
from trueup.integrations.url import Url
from trueup.loading import load
from trueup.model.budget import declare_system
from trueup.pair import declare
from trueup.project import Project
from trueup.sides.files import File
from trueup.sides.http import Http
from trueup.sides.sql import Sql

# By the callable: what only Python says, or says under another name.
BOTH = [
    (declare, PairOptions, {"name"}),
    (Sql, TableOptions, set()),
    (File, FileOptions, set()),
    (Http, ApiOptions, {"url", "gate"}),
    (declare_system, SystemOptions, {"name"}),
    (Project, ProjectConfig, {"clock", "seed"}),
    (Source, SourceOptions, {"name"}),
    (Url, UrlOptions, set()),
    (alert_plan, AlertsOptions, {"base"}),
    (Webhook, TargetOptions, set()),
]


@pytest.mark.parametrize(("call", "model", "only_python"), BOTH)
def test_every_option_of_python_stands_in_the_file(call: Callable[..., Any], model: Any, only_python: set[str]) -> None:
    assert set(inspect.signature(call).parameters) - set(model.model_fields) == only_python


@pytest.mark.parametrize(("call", "model", "only_python"), BOTH)
def test_an_option_that_is_left_out_means_the_same(call: Callable[..., Any], model: Any, only_python: set[str]) -> None:
    for name, parameter in inspect.signature(call).parameters.items():
        if name in only_python or parameter.default is inspect.Parameter.empty:
            continue
        default = model.model_fields[name].default
        if default not in (PydanticUndefined, None, (), {}):  # those are left to Python
            assert default == parameter.default, name


CONFIG = """
state = "memory:"
threads = 3
memory_mb = 256

[system.courses]
limit = "600/minute"

[pair.users]
concurrency = 2
handlers = { upsert = { function = "handlers_of_users:push", batch = 50 } }

[pair.users.authority]
api = "https://school.example/users"
key = "id"
system = "courses"
item_url = false
size_param = false
throttled_when = [503]
gone = [404]
auth = { token_url = "https://school.example/token", client_id = "a", client_secret = "b", in_body = true }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "handlers_of_users.py").write_text("def push(changes): pass\n", "utf-8")
    (tmp_path / "trueup.toml").write_text(CONFIG, "utf-8")
    return tmp_path / "trueup.toml"


def test_a_project_is_built_as_the_file_says(config: Path) -> None:
    with load(str(config)) as project:
        users = project.find("users")
        assert (project.memory_mb, users.pair.concurrency, users.handlers.batch) == (256, 2, 50)
        assert users.pair.authority_system == "courses"
        with pytest.raises(ConfigError, match="there is no pair x"):
            project.worker(["x"])
        project.worker()


def test_a_side_names_a_system_that_is_declared(config: Path) -> None:
    config.write_text(CONFIG.replace("[system.courses]", "[system.others]"), "utf-8")
    with pytest.raises(ConfigError, match="pair users names system courses"):
        load(str(config))


def test_a_misspelt_option_of_a_batch_handler_is_named(config: Path) -> None:
    config.write_text(CONFIG.replace("batch = 50", "batsh = 50"), "utf-8")
    with pytest.raises(ConfigError, match="there is no option 'batsh'") as caught:
        load(str(config))
    assert "batch" in str(caught.value.hint)
