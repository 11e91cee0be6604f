"""What several tests of sessions need."""

import os

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Make the current folder, empty and unknown to the user, whose home is another one; no model is configured."""
    folder, home = tmp_path / "here", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for name in [one for one in os.environ if one.startswith(("OPENAI_", "OAI_", "TW_AUTOGEN_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder
