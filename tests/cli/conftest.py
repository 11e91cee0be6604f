import os
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "tw_autogen.cli"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def environ(tmp_path):
    """An environment without any model, key or file of whoever runs the tests; its HOME is the test's folder."""
    ours = ("OPENAI_", "OAI_", "TW_AUTOGEN_", "XDG_", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm"}


@pytest.fixture
def command():
    return COMMAND
