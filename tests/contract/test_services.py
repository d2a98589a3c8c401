"""Private servers: started once, shared, stopped with everything they left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[2] / "scripts" / "services"


def run(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, SERVICES, *arguments], env={**os.environ, "TRUEUP_SERVICES_DIR": str(home)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["postgres", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_server_is_started_once_and_stopped_with_all_it_left(postgres_url: str, mariadb_url: str, name: str) -> None:
    # Not pytest's own folder, which the server's account may not enter.
    home = Path(tempfile.mkdtemp(prefix="trueup-services-test-"))
    try:
        first = run(home, "start", name)
        assert run(home, "start", name) == first
        assert first.split()[0] == name
        assert f"TRUEUP_{name.upper()}_URL='{first.split()[1]}'" in run(home, "env")
    finally:
        run(home, "stop")
    assert run(home, "env").strip() == ""
    assert sorted(path.name for path in home.iterdir()) == ["lock", "state.json"]
    shutil.rmtree(home)
