from pathlib import Path

import pytest

from tw_autogen.kernel.path_policy import too_broad_reason


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("/", "above your home folder"),
        ("/home", "above your home folder"),
        ("/home/me", "your home folder"),
        ("/home/me/project", ""),
        ("/data", ""),
        ("/usr", "one of the system's folders"),
        ("/tmp", "one of the system's folders"),
        ("/tmp/project", ""),
    ],
)
def test_a_home_what_lies_above_it_and_the_system_are_too_much(monkeypatch, folder, why):
    monkeypatch.setenv("HOME", "/home/me")

    assert too_broad_reason(Path(folder)) == why
