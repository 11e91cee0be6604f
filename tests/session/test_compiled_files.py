"""Compiled files beside a trusted folder's code are no way around its trust."""

import json
import os
import sys
from importlib import _bootstrap_external, util
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.session import read_settings, review_folder
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import ScriptedModel
from tw_autogen.trust_store import state_folder

pytest.importorskip("mcp", reason="needs the extra `mcp`")

PROGRAM = Path(__file__).parents[1] / "plugin" / "mcp" / "notes.py"
STARTS = {
    "a script": {"args": ["server.py"]},
    "a module": {"args": ["-m", "server"]},
}
WITHOUT_ENVIRONMENT = {
    "Python without its environment": {"args": ["-E", "server.py"]},
    "several options": {"args": ["-uE", "server.py"]},
    "no environment": {"command": "env", "args": ["-i", sys.executable, "server.py"]},
    "a prefix of the server's own": {"args": ["server.py"], "env": {"PYTHONPYCACHEPREFIX": ""}},
    "a prefix of an option": {"args": ["-X", "pycache_prefix=", "server.py"]},
    "a first line of its own": {"command": "./server.py"},
    "a variable taken away": {"command": "env", "args": ["-u", "PYTHONPYCACHEPREFIX", sys.executable, "server.py"]},
    "a shell": {"command": "sh", "args": ["-c", "PYTHONPYCACHEPREFIX= exec python3 server.py"]},
    "another program": {"command": "uv", "args": ["run", "serve"]},
    "another Python": {"command": "python3", "args": ["server.py"], "env": {"PATH": "bin"}},
}


def plant(folder, words):
    """Put a compiled file beside `helper.py` that names its time and size, and holds other code."""
    source = folder / "helper.py"
    about = source.stat()
    cache = Path(util.cache_from_source(str(source)))
    cache.parent.mkdir(exist_ok=True)
    code = compile(words, str(source), "exec")
    cache.write_bytes(_bootstrap_external._code_to_timestamp_pyc(code, int(about.st_mtime), about.st_size))
    return cache


@pytest.fixture
def trusted(here, tmp_path):
    """Return a function that makes the current folder one with a server of this kind, trusted; and where it writes."""

    def make(server):
        ran = tmp_path / "ran"
        words = f"open({str(ran)!r}, 'a').write('%s\\n')"
        (here / "helper.py").write_text(words % "source")
        program = PROGRAM.read_text(encoding="utf-8")
        (here / "server.py").write_text(f"import helper, sys\nsys.argv.append({str(tmp_path / 'pid')!r})\n{program}")
        servers = {"m": {"command": sys.executable, **server}}
        (here / "tw_autogen.yaml").write_text(json.dumps({"plugin": {"mcp_servers": servers}}))
        review = review_folder()
        assert review.remember(review.sha256()) == ""
        return ran, words

    return make


def start(tmp_path):
    with open_session(ScriptedModel([]), settings=read_settings(), folder=tmp_path / "sessions"):
        pass


@pytest.mark.parametrize("way", STARTS)
def test_a_server_of_a_trusted_folder_runs_its_source_whatever_is_compiled_beside_it(here, tmp_path, trusted, way):
    ran, words = trusted(STARTS[way])
    planted = plant(here, words % "other code")

    start(tmp_path)
    start(tmp_path)

    assert ran.read_text() == "source\nsource\n"
    assert [path for path in here.rglob("*.pyc")] == [planted]
    assert read_settings().trust is Trust.full


@pytest.mark.parametrize("way", WITHOUT_ENVIRONMENT)
def test_where_a_server_reads_the_compiled_files_of_its_folder_a_change_of_one_ends_trust(here, tmp_path, trusted, way):
    ran, words = trusted(WITHOUT_ENVIRONMENT[way])
    assert read_settings().trust is Trust.full

    plant(here, words % "other code")

    assert read_settings().trust is Trust.none


def test_what_a_server_ran_once_is_not_run_again_from_its_caches(here, tmp_path, trusted):
    ran, words = trusted(STARTS["a script"])
    source = here / "helper.py"
    before, about = source.read_text(), source.stat()
    caches = state_folder() / "pycache" / str(here.resolve())[1:]
    start(tmp_path)
    cache = next(caches.rglob("helper*.pyc"))
    code = compile(words % "other code", str(source), "exec")
    cache.write_bytes(_bootstrap_external._code_to_timestamp_pyc(code, int(about.st_mtime), about.st_size))

    start(tmp_path)

    assert (source.read_text(), ran.read_text()) == (before, "source\nsource\n")


def test_a_program_that_comes_into_a_trusted_folder_is_not_taken_for_a_servers_over_a_relative_part_of_path(
    here, tmp_path, trusted, monkeypatch
):
    trusted({"command": "uvx", "args": ["server"]})
    (here / "bin").mkdir()
    (here / "bin" / "uvx").write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    (here / "bin" / "uvx").chmod(0o755)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}/usr/bin{os.pathsep}/bin")

    with pytest.raises(ConfigError, match="could not be started"):
        start(tmp_path)

    assert not (tmp_path / "ran").exists()


def test_where_the_state_folder_takes_no_folder_caches_lie_with_the_session(here, tmp_path, trusted):
    ran, _ = trusted(STARTS["a script"])
    (state_folder() / "pycache").write_text("in the way")

    start(tmp_path)

    assert ran.read_text() == "source\n"
    assert [path for path in here.rglob("*.pyc")] == []


def test_a_server_of_a_trusted_folder_starts_beside_large_programs_and_data(here, tmp_path, trusted):
    for name in ("node_modules/t/lib/t.js", "tool.js", "data.bin"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text("1" * 5_000_000)
    ran, _ = trusted({"args": ["server.py", "data.bin"]})

    start(tmp_path)

    assert ran.read_text() == "source\n"
