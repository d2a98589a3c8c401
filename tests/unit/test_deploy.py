"""The files in `deploy/`: read by those who know them, and held against what the program really has.

No image is built here and no cluster runs: what is shown is that the files are well formed, that they ask the program
only for what it has, and that they keep to the rules of their trade.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

import trueup
from trueup.cli.main import app
from trueup.config import load as load_config
from trueup.web.health import Health

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
MANIFESTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text("utf-8"))
]
PROBES = {route.path for route in Health(trueup.Project("memory:")).routes}


def check_command(arguments: list[str]) -> None:
    """Raises where the program has no such command or option."""
    command: Any = typer.main.get_command(app)
    while arguments and arguments[0] in getattr(command, "commands", {}):
        command = command.commands[arguments[0]]
        arguments = arguments[1:]
    command.make_context("trueup", list(arguments))


def instructions() -> list[tuple[str, str]]:
    """(name, what follows) of the Dockerfile, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def containers(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    return found


# ── the image ────────────────────────────────────────────────────────────────────────────────────────


def test_the_image_runs_without_root_and_says_how_it_is() -> None:
    stages = "\n".join(f"{name} {rest}" for name, rest in instructions()).split("FROM ")[1:]
    final = dict(line.partition(" ")[::2] for line in stages[-1].splitlines()[1:])
    assert final["USER"].isdecimal()
    assert int(final["USER"]) > 0
    assert "/healthz/live" in final["HEALTHCHECK"]
    assert {stage.split()[0] for stage in stages} == {"python:3.13-slim"}
    assert "pip install" not in stages[-1], "what builds stays in the first stage"


def test_the_image_starts_what_the_program_has() -> None:
    found = dict(instructions())
    assert json.loads(found["ENTRYPOINT"]) == ["trueup"]
    check_command(json.loads(found["CMD"]))
    port = found["EXPOSE"]
    assert f":{port}/healthz/live" in found["HEALTHCHECK"]
    assert port in json.loads(found["CMD"])


def test_a_linter_finds_nothing_wrong_with_the_dockerfile() -> None:
    linter = str(Path(sys.executable).parent / "hadolint")
    done = subprocess.run([linter, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_image_copies_what_there_is_and_all_that_the_build_reads() -> None:
    here = [rest for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    copied = [each for rest in here for each in rest.split()[:-1]]
    assert all((ROOT / each).exists() for each in copied)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert {"pyproject.toml", "src", "README.md", "LICENSE"} <= set(copied)
    [extras] = {rest.partition("=")[2] for name, rest in instructions() if name == "ARG"}
    assert all(f"\n{extra} = [" in project for extra in extras.split(","))


# ── systemd ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_what_the_program_has(unit: Path) -> None:
    for line in unit.read_text("utf-8").splitlines():
        if line.startswith("ExecStart=") and "/bin/trueup " in line:
            called = line.partition("/bin/trueup ")[2].rstrip("'").replace("$$(date +%%Y%%m%%dT%%H%%M%%S)", "now")
            check_command(shlex.split(called))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    for unit in UNITS:
        # The program is not installed there on this machine, which is all that would be complained about.
        text = unit.read_text("utf-8").replace("/opt/trueup/bin/trueup", "/bin/true")
        (tmp_path / unit.name).write_text(text, "utf-8")
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "trueup" in line]
    assert ours == []


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_services_have_no_rights_that_they_do_not_need(unit: Path) -> None:
    text = unit.read_text("utf-8")
    assert "\nUser=trueup\n" in text
    assert {"NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "UMask=0077"} <= set(text.splitlines())


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("document", MANIFESTS)
def test_manifests_are_valid(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_schemas_notice_a_mistake() -> None:
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("document", MANIFESTS)
def test_containers_start_what_the_program_has_and_are_asked_where_it_answers(document: dict[str, Any]) -> None:
    for container in containers(document):
        check_command(container["args"])
        probes = [each["httpGet"]["path"] for name, each in container.items() if name.endswith("Probe")]
        assert set(probes) <= PROBES
        if "serve" in container["args"]:
            assert container["livenessProbe"]["httpGet"]["path"] == "/healthz/live"
            assert container["readinessProbe"]["httpGet"]["path"] == "/healthz/ready"
            [port] = container["ports"]
            assert str(port["containerPort"]) in container["args"]


@pytest.mark.parametrize("document", MANIFESTS)
def test_containers_have_no_rights_that_they_do_not_need(document: dict[str, Any]) -> None:
    for container in containers(document):
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        grace = container["args"][container["args"].index("--grace") + 1]
        assert pod["terminationGracePeriodSeconds"] > float(grace)
        assert "limits" in container["resources"]


def test_the_example_declares_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [each.values[0] for each in MANIFESTS]
    [config] = [each for each in documents if each["kind"] == "ConfigMap"]
    [secret] = [each for each in documents if each["kind"] == "Secret"]
    for name, value in secret["stringData"].items():
        monkeypatch.setenv(name, value)
    (tmp_path / "trueup.toml").write_text(config["data"]["trueup.toml"], "utf-8")
    assert set(load_config(tmp_path / "trueup.toml").pair) == {"orders"}
    with trueup.load(str(tmp_path / "trueup.toml")) as project:
        assert project.state.startswith("postgresql://")
