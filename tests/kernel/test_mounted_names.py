"""Folders that are mounted at a second place, and what that says of them."""

import os
import re
from pathlib import Path

import pytest

from tw_autogen.errors import ConfigError
from tw_autogen.kernel import KernelSettings
from tw_autogen.kernel import mounted_names as module
from tw_autogen.kernel.mounted_names import mounted_names
from tw_autogen.kernel.path_policy import (
    check_granted,
    checked_kernel_folder,
    readable_by_all_reason,
    too_broad_reason,
)

LINE = "{} 1 {} {} {} rw,relatime shared:1 - ext4 /dev/sda rw"
MOUNTS = [
    ("8:1", "/", "/"),
    ("8:2", "/", "/data"),
    ("8:2", "/home", "/home"),
    ("8:2", "/home/me/with\\040blank", "/mnt/b"),
    ("8:3", "/", "/run/media"),
]


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    lines = [LINE.format(number, *mount) for number, mount in enumerate(MOUNTS, 20)]
    (tmp_path / "mountinfo").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(module, "_MOUNTS", str(tmp_path / "mountinfo"))


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("/data/home/me", ["/home/me", "/mnt/b"]),
        ("/home/me", ["/data/home/me", "/mnt/b"]),
        ("/data", ["/home", "/mnt/b"]),
        ("/mnt", ["/data/home/me/with blank", "/home/me/with blank"]),
        ("/data/other", []),
        ("/opt", []),
        ("/run/media/stick", []),
    ],
)
def test_a_folder_has_a_name_for_each_place_where_it_is_mounted(folder, names):
    assert sorted(mounted_names(folder)) == names


@pytest.mark.usefixtures("mounts")
def test_a_home_folder_is_one_by_each_of_its_names(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")

    assert too_broad_reason(Path("/data/home/me")) == "also /home/me, your home folder"
    assert too_broad_reason(Path("/data/home/me/.ssh")) == (
        "also /home/me/.ssh, where programs keep keys and settings of yours"
    )
    assert too_broad_reason(Path("/data")) == "also /home, above your home folder"
    assert too_broad_reason(Path("/data/home/me/project")) == ""


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("folder", "read", "more", "holder"),
    [
        ("/data/home/me/ws", ("/home/me",), "", "kernel.read (/home/me)"),
        ("/home/me/with blank/ws", ("/opt", "/mnt/b"), "", "kernel.read (/mnt/b)"),
        ("/home/me/ws", (), "/data/home", "session.user_folder (/data/home)"),
        ("/home/me/ws", ("/data/home/other",), "/mnt/b", ""),
        ("/usr/local/games/ws", (), "", "the system (/usr)"),
    ],
)
def test_what_all_code_may_read_is_found_by_each_name_of_a_folder(folder, read, more, holder):
    said = readable_by_all_reason(Path(folder), KernelSettings(read=read), {"session.user_folder": more})

    assert said == holder


def test_an_environment_is_one_by_each_of_its_names(monkeypatch, tmp_path):
    for name in ("env", "alias"):
        (tmp_path / name).mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    lines = [LINE.format(number, "9:9", "/", tmp_path / name) for number, name in enumerate(("env", "alias"))]
    (tmp_path / "mountinfo").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(module, "_MOUNTS", str(tmp_path / "mountinfo"))

    said = readable_by_all_reason(tmp_path / "alias" / "ws", KernelSettings(), {})

    assert said == f"a Python environment ({tmp_path / 'env'})"


@pytest.mark.parametrize(
    ("python", "folder", "holder"),
    [
        ("other/bin/python", "other/share/ws", "other"),
        ("other/bin/python", "elsewhere/ws", ""),
        ("linked/bin/python", "linked/ws", "linked"),
        ("linked/bin/python", "other/ws", "other"),
        ("tools/bin/python", "tools/ws", ""),
        ("me/bin/python", "me/ws", ""),
    ],
)
def test_the_interpreter_of_kernels_may_be_another_one(monkeypatch, tmp_path, python, folder, holder):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for one in ("other", "linked", "tools", "me"):
        (tmp_path / one / "bin").mkdir(parents=True)
    for one in ("other", "linked", "me"):
        (tmp_path / one / "lib" / "python3.13").mkdir(parents=True)
    for one in ("other", "tools", "me"):
        (tmp_path / one / "bin" / "python").touch(mode=0o755)
    (tmp_path / "linked" / "bin" / "python").symlink_to(tmp_path / "other" / "bin" / "python")

    said = readable_by_all_reason(tmp_path / folder, KernelSettings(python=str(tmp_path / python)), {})

    assert said == (f"a Python environment ({tmp_path / holder})" if holder else "")


def test_where_the_system_does_not_tell_there_are_no_other_names(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_MOUNTS", str(tmp_path / "none"))

    assert mounted_names(str(tmp_path)) == []


def test_code_writes_to_nothing_that_this_program_uses_by_another_name(monkeypatch, tmp_path):
    for name in ("one/tools", "two", "three"):
        (tmp_path / name).mkdir(parents=True)
    lines = [LINE.format(number, "9:9", "/", tmp_path / name) for number, name in enumerate(("one", "two"))]
    (tmp_path / "mountinfo").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(module, "_MOUNTS", str(tmp_path / "mountinfo"))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{tmp_path / 'one/tools'}")
    words = f"it is also {tmp_path / 'one'}, and this program uses {tmp_path / 'one/tools'} there; name it so"

    with pytest.raises(ConfigError, match=re.escape(words)):
        checked_kernel_folder(tmp_path / "two", KernelSettings())
    with pytest.raises(ConfigError, match=re.escape(words)):
        check_granted(KernelSettings(write=(str(tmp_path / "two"),)))
    assert checked_kernel_folder(tmp_path / "three", KernelSettings()) == tmp_path / "three"
