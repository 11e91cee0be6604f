"""The adapter stands by itself: nothing needs it, it needs no other host, and a broken install is one clear error."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "tw_autogen"
ADAPTER = "tw_autogen.hosts.agentchat"
TELL = f"""
from tw_autogen.errors import HostError
try:
    import {ADAPTER}
except HostError as error:
    print(error)
"""


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_else_of_the_package_imports_it():
    elsewhere = [path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "hosts" / "agentchat"]
    users = [str(path) for path in elsewhere if any(name.startswith(ADAPTER) for name in imported(path))]

    assert len(elsewhere) > 100
    assert users == []


@pytest.mark.parametrize(
    ("agents", "problem"),
    [
        ("import autogen_core_of_old", "there is no package `autogen_core_of_old`"),
        ("from autogen_agentchat import Newer", "what is installed doesn't fit: cannot import name 'Newer'"),
    ],
)
def test_an_install_whose_parts_do_not_fit_is_one_error_with_the_command(agents, problem, tmp_path):
    host = tmp_path / "autogen_agentchat"
    host.mkdir()
    (host / "__init__.py").write_text("")
    (host / "agents.py").write_text(agents)
    done = subprocess.run(
        [sys.executable, "-c", TELL],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout.startswith(f"{ADAPTER} needs autogen-agentchat, and {problem}")
    assert done.stdout.endswith('\n  pip install "tw-autogen[agentchat]"\n')
