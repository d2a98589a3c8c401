"""The dashboard and the alert rules in `deploy/`: every metric, label and page that they name is one that there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import trueup
from trueup.model.condition import CONDITIONS, Severity
from trueup.model.metric import METRICS
from trueup.testing.clock import ManualClock
from trueup.web.metrics import Metrics

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "deploy/prometheus/alerts.yml"
RULE_TESTS = ROOT / "deploy/prometheus/alerts.test.yml"
DASHBOARD = ROOT / "deploy/grafana/trueup.json"
RUNBOOK = "https://github.com/trueup/trueup/blob/main/docs/runbook/"


@pytest.fixture(scope="module")
def told() -> Mapping[str, set[str]]:
    """The labels of every metric that a project tells in which all happened that can be told of."""
    clock = ManualClock()
    with trueup.Project("memory:", clock=clock) as project:
        shop = project.system("shop", limit="600/minute", reserve=0.4)
        sides = [
            trueup.Memory([{"id": key, "name": name, "v": 1} for key in keys], key="id", version="v")
            for name, keys in (("a", (1, 2)), ("b", (1, 9)))
        ]
        pair = project.pair("orders", authority=sides[0], replica=sides[1], system=shop, settle=0, sweep="1h",
                            compare="1d", fields=["name"])  # fmt: skip
        project.source("shop", style="github", secrets=["s"])(lambda body, headers: [])
        pair.adopt()
        pair.run()
        project.scheduler().declare()
        pair.offer({"id": 2})
        assert pair.perform('["2"]') == {"done": 1}
        pair.offer({"id": 3})
        project.observer.received("shop", 200)
        clock.advance(200_000)
        text = Metrics(project).text().decode()
    labels: dict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    return labels


def test_a_project_tells_every_metric_that_is_declared_but_those_of_what_it_lacks(
    told: Mapping[str, set[str]],
) -> None:
    """Given a project that lacks windows and an API that counts, I expect all else, with the labels declared."""
    lacks = {"trueup_windows_waiting", "trueup_budget_left"}
    parts = ("", "_bucket", "_sum", "_count")
    missing = {each.name for each in METRICS if not any(each.name + part in told for part in parts)}
    assert missing == lacks
    for each in METRICS:
        for part in parts:
            if each.name + part in told:
                assert told[each.name + part] - {"le"} == set(each.labels)


def expressions() -> Iterator[tuple[str, str]]:
    """(where, PromQL) of all rules and panels."""
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert found is not None
            yield variable["name"], f"sum by ({found[2]}) ({found[1]})"


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """(metric, labels asked of it) of an expression."""
    for name, matchers in re.findall(r"\b(trueup_\w+)(?:\{([^}]*)\})?", expression):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers or ""))


def grouped(expression: str) -> set[str]:
    return {label.strip() for found in re.findall(r"\bby \(([^)]*)\)", expression) for label in found.split(",")}


def unknown(expression: str, told: Mapping[str, set[str]]) -> list[str]:
    """What an expression asks for that there is not."""
    found: list[str] = []
    known: set[str] = set()
    for name, labels in selectors(expression):
        known |= told.get(name, set())
        found += [] if name in told else [name]
        found += [f"{name}{{{label}}}" for label in labels - told.get(name, set()) if name in told]
    return found + [f"by {label}" for label in grouped(expression) - known]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_rules_and_panels_ask_for_what_is_told(told: Mapping[str, set[str]], where: str, expression: str) -> None:
    assert unknown(expression, told) == []
    assert "trueup_" in expression, where


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("max by (pair) (trueup_case_open)", ["trueup_case_open", "by pair"]),
        ('trueup_jobs_total{result="done"}', ["trueup_jobs_total{result}"]),
        ("sum by (tenant) (trueup_cases_open)", ["by tenant"]),
    ],
)
def test_the_check_notices_a_mistake(told: Mapping[str, set[str]], expression: str, wrong: list[str]) -> None:
    assert unknown(expression, told) == wrong


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_what_to_do_and_names_only_labels_that_it_has(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("warning", "critical")
    page = rule["annotations"]["runbook_url"]
    assert page.startswith(RUNBOOK)
    pages = CONDITIONS if "{{" in page else [page.removeprefix(RUNBOOK).removesuffix(".md")]
    for each in pages:
        assert (ROOT / f"docs/runbook/{each}.md").is_file()
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    assert used <= grouped(rule["expr"])


@pytest.mark.parametrize("severity", Severity)
def test_every_condition_raises_an_alert(severity: Severity) -> None:
    """Given a rule for each severity that asks for no name, I expect none of the conditions to go untold."""
    told = f'max by (condition, subject) (trueup_conditions{{severity="{severity}"}}) > 0'
    (rule,) = [rule for rule in rules() if rule["expr"] == told]
    assert rule["labels"]["severity"] == severity
    assert rule["annotations"]["runbook_url"] == f"{RUNBOOK}{{{{ $labels.condition }}}}.md"


def test_instances_are_never_added_up() -> None:
    """Given two processes that answer the same, I expect every panel and rule to count them once."""
    for where, expression in expressions():
        for aggregated in re.findall(r"\bsum(?: by \([^)]*\))? ?\((\w*)", expression):
            assert aggregated in ("max", "min") or where == "pair", f"{where}: {expression}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("arguments", [("check", "rules", RULES.name), ("test", "rules", RULE_TESTS.name)])
def test_promtool_finds_nothing_wrong(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
