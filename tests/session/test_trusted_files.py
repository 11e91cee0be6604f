"""What is loaded from a trusted folder is what was hashed, also if a file changes between the look and the load."""

import dataclasses
import functools
import importlib
import importlib.util
import json
import linecache
import logging
import os
import py_compile
import sys
import zipfile
from pathlib import Path

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError, PluginLoadError, TwAutogenError
from tw_autogen.plugin.host_plugin import HostPlugin
from tw_autogen.plugin.mcp import McpServer
from tw_autogen.plugin.plugin_finder import check_source
from tw_autogen.plugin.spec import read_spec
from tw_autogen.session import read_settings, review_folder
from tw_autogen.session.referenced_files import files_of_setting, server_files
from tw_autogen.session.settings_sources import SECTIONS
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel
from tw_autogen.trust_store import CODE_SUFFIXES, PROGRAM_SUFFIXES, code_files
from tw_autogen.trusted_files import TrustedFiles, compared_with, guard_imports

ROLE = "from tw_autogen import Role\nfrom .pages import PAGE\n\nclass Crier(Role):\n"
ROLE += "    def reply(self, memory, **kwargs): ...\n"
ROLE += "    def later(self):\n        from . import deep\n        return deep\n"
THEIRS = "from taskweaver.role import Role\nfrom roles.teller.words import WORD\n\nclass Teller(Role):\n"
THEIRS += "    def reply(self, memory, **kwargs): ...\n"
THEIRS += "    def later(self):\n        import teller_top\n        return teller_top\n"
PLUGIN = "import beside\nfrom tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef twice():\n"
PLUGIN += "    import lazily\n    return lazily.VALUE\n"
FILES = {
    "roles/crier/role.yaml": "alias: Crier\nintro: Cries.\nmodule: crier\n",
    "roles/crier/crier.py": ROLE,
    "roles/crier/pages.py": "PAGE = 1\n",
    "roles/crier/deep.py": "VALUE = 1\n",
    "roles/teller/teller.role.yaml": "alias: Teller\nintro: Tells.\nmodule: roles.teller.teller.Teller\n",
    "roles/teller/teller.py": THEIRS,
    "roles/teller/words.py": "WORD = 1\n",
    "teller_top.py": "VALUE = 1\n",
    "plugins/twice.yaml": "name: twice\ndescription: d\nruns_in: host\nparameters: []\n",
    "plugins/twice.py": PLUGIN,
    "plugins/beside.py": "VALUE = 1\n",
    "plugins/lazily.py": "VALUE = 1\n",
    "ours.yaml": "base: strict\n",
    "planner_examples/one.yaml": "enabled: true\nrounds: []\n",
    "mcp.json": '{"mcpServers": {}}',
}
SETTINGS = {
    "session.roles": ["planner", "code_interpreter", "crier", "teller"],
    "code_interpreter.policy": "ours.yaml",
    "plugin.mcp_servers": "mcp.json",
}
NAMES = ("beside", "lazily", "teller_top", "tw_autogen_role_crier", "tw_autogen_role_teller", "roles")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Lay out a project that the user trusts, in the current folder."""
    folder, home = tmp_path / "here", tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(sys, "path", sys.path[:])
    for name, text in {**FILES, "tw_autogen.yaml": json.dumps(SETTINGS)}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    yield folder
    for name in [module for module in sys.modules if module.partition(".")[0].startswith(NAMES)]:
        del sys.modules[name]


def evil(ran):
    return f"from pathlib import Path\nPath({str(ran)!r}).write_text('ran')\n"


def opened(settings, tmp_path):
    return open_session(ScriptedModel([]), kernel=FakeKernel(), folder=tmp_path / "s", settings=settings, project=".")


AT_LOAD = ["roles/crier/crier.py", "roles/crier/pages.py", "roles/teller/teller.py", "roles/teller/words.py"]
YAMLS = {
    "roles/crier/role.yaml": "alias: Crier\nintro: Obey me.\nmodule: crier\n",
    "roles/teller/teller.role.yaml": "alias: Teller\nintro: Obey.\nmodule: roles.teller.teller.Teller\n",
    "ours.yaml": "base: default\n",
    "mcp.json": '{"mcpServers": {"m": {"command": "evil"}}}',
}


@pytest.mark.parametrize("name", [*AT_LOAD, *YAMLS])
def test_what_changes_between_the_look_and_the_load_is_refused(folder, tmp_path, name):
    settings = read_settings()
    assert settings.trust is Trust.full
    ran = tmp_path / "ran"
    text = YAMLS.get(name) or evil(ran) + FILES[name]
    (folder / name).write_text(text, encoding="utf-8")

    with pytest.raises(TwAutogenError, match="changed since its folder was trusted") as error:
        opened(settings, tmp_path)

    assert name in str(error.value)
    assert not ran.exists()


@pytest.mark.parametrize("name", ["plugins/twice.py", "plugins/twice.yaml", "plugins/beside.py"])
def test_a_plugin_that_changes_is_left_out(folder, tmp_path, caplog, name):
    settings = read_settings()
    ran = tmp_path / "ran"
    (folder / name).write_text("" if name.endswith("yaml") else evil(ran) + FILES[name], encoding="utf-8")

    with caplog.at_level(logging.WARNING), opened(settings, tmp_path) as session:
        (interpreter,) = [role for role in session.roles if role.name == "CodeInterpreter"]
        assert "twice" not in interpreter.plugin_names or name == "plugins/beside.py"

    assert "changed since its folder was trusted" in caplog.text
    assert not ran.exists()


def test_python_of_a_plugin_that_was_not_hashed_is_refused(folder, tmp_path):
    spec = dataclasses.replace(read_spec(folder / "plugins" / "twice.yaml"), code="../../lib/impl")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "impl.py").write_text(PLUGIN, encoding="utf-8")

    with compared_with(read_settings().files):
        with pytest.raises(PluginLoadError, match=r"impl\.py: not among the files that its folder was trusted by"):
            check_source(spec)
        assert check_source(dataclasses.replace(spec, path=tmp_path / "lib" / "twice.yaml", code="impl")).text == PLUGIN


@pytest.mark.parametrize("role", ["Crier", "Teller"])
@pytest.mark.parametrize("swap", ["changed", "compiled", "package"])
def test_what_a_role_imports_later_is_what_was_hashed(folder, tmp_path, role, swap):
    ran = tmp_path / "ran"
    path = folder / {"Crier": "roles/crier/deep.py", "Teller": "teller_top.py"}[role]
    with opened(read_settings(), tmp_path) as session:
        (found,) = [one for one in session.roles if one.name == role]
        if swap == "changed":
            path.write_text(evil(ran), encoding="utf-8")
        elif swap == "package":  # is found before the file of its name
            path.with_suffix("").mkdir()
            path.with_suffix("").joinpath("__init__.py").write_text(evil(ran), encoding="utf-8")
        else:  # looks to Python as if it were compiled from the file that is there
            before, about = path.read_text(encoding="utf-8"), path.stat()
            path.write_text(evil(ran).ljust(len(before)), encoding="utf-8")
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
            compiled = py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
            path.write_text(before, encoding="utf-8")
            os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
            content = Path(compiled).read_bytes()
            Path(compiled).write_bytes(content[:12] + len(before).to_bytes(4, "little") + content[16:])
        later = getattr(found, "theirs", found).later

        if swap == "compiled":
            assert later().VALUE == 1
        else:
            with pytest.raises(ImportError, match=f"{'is new' if swap == 'package' else 'changed'} since its folder"):
                later()
    assert not ran.exists()


@pytest.mark.parametrize("place", ["roles/common", "plugins"])
@pytest.mark.parametrize("trusted_anew", [False, True])
def test_what_a_role_imports_later_from_beside_its_folder_is_what_was_hashed(
    folder, tmp_path, monkeypatch, place, trusted_anew
):
    ran, module = tmp_path / "ran", folder / place / "beside.py"
    module.parent.mkdir(exist_ok=True)
    module.write_text("VALUE = 1\n", encoding="utf-8")
    late = f"    def aside(self):\n        import sys\n        sys.path.insert(0, {str(module.parent)!r})\n"
    late += "        import beside\n        return beside.VALUE\n"
    (folder / "roles" / "crier" / "crier.py").write_text(ROLE + late, encoding="utf-8")
    (folder / "tw_autogen.yaml").write_text('session.roles: ["planner", "crier"]', encoding="utf-8")
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    with opened(read_settings(), tmp_path) as session:
        (found,) = [role for role in session.roles if role.name == "Crier"]
        module.write_text(evil(ran) + "VALUE = 2\n", encoding="utf-8")

        if not trusted_anew:
            with pytest.raises(ImportError, match="changed since its folder was trusted"):
                found.aside()
    if trusted_anew:  # whole, for one call: nothing is compared
        with opened(read_settings(trust=True), tmp_path / "anew") as session:
            (found,) = [role for role in session.roles if role.name == "Crier"]
            assert found.aside() == 2
    assert ran.exists() is trusted_anew


def test_a_plugin_that_is_named_by_its_path_ends_no_comparison_of_roles(folder, tmp_path):
    ran, extra = tmp_path / "ran", folder / "plugins" / "sub" / "extra.py"
    extra.parent.mkdir()
    extra.write_text(
        PLUGIN.replace("import beside\n", "").replace("twice", "extra").replace("lazily", "lazily2"), encoding="utf-8"
    )
    (extra.parent / "lazily2.py").write_text("VALUE = 3\n", encoding="utf-8")
    extra.with_suffix(".yaml").write_text(FILES["plugins/twice.yaml"].replace("twice", "extra"), encoding="utf-8")
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    with opened(read_settings(), tmp_path) as session:
        (found,) = [role for role in session.roles if role.name == "Crier"]
        with HostPlugin(read_spec(extra.with_suffix(".yaml")), folder=tmp_path) as plugin:
            assert plugin() == 3
        (folder / "roles" / "crier" / "deep.py").write_text(evil(ran), encoding="utf-8")

        with pytest.raises(ImportError, match="changed since its folder was trusted"):
            found.later()
    assert not ran.exists()


@pytest.mark.parametrize("first", [0, 1], ids=["the older one closes", "the newer one closes"])
def test_imports_are_compared_until_the_last_session_of_a_folder_closes(folder, tmp_path, first):
    ran, sessions = tmp_path / "ran", [opened(read_settings(), tmp_path) for _ in range(2)]
    roles = [next(role for role in session.roles if role.name == "Crier") for session in sessions]
    sessions[first].close()
    (folder / "roles" / "crier" / "deep.py").write_text(evil(ran), encoding="utf-8")

    with pytest.raises(ImportError, match="changed since its folder was trusted"):
        roles[1 - first].later()

    sessions[1 - first].close()
    assert not ran.exists()


def test_once_its_sessions_are_closed_nothing_is_imported_from_a_folder_of_plugins(folder, tmp_path):
    for _ in range(2):
        with opened(read_settings(), tmp_path), opened(read_settings(), tmp_path):
            assert str(folder / "plugins") not in sys.path
        (folder / "plugins" / "later_on.py").write_text(evil(tmp_path / "ran"), encoding="utf-8")

        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("later_on")
        (folder / "plugins" / "later_on.py").unlink()


def test_a_folder_that_stood_on_the_path_before_stays_there(folder, tmp_path):
    sys.path.append(str(folder / "plugins"))
    opened(read_settings(), tmp_path).close()

    assert sys.path.count(str(folder / "plugins")) == 1


@pytest.mark.parametrize("way", ["", "linked", "roles linked"])
@pytest.mark.parametrize("name", ["deep.py", "deep"])
def test_a_link_of_a_new_name_to_another_trusted_file_is_new(folder, tmp_path, name, way):
    (folder / "tools" / "deep").mkdir(parents=True)
    for one in ("deep.py", "deep/__init__.py"):
        (folder / "tools" / one).write_text(evil(tmp_path / "ran"), encoding="utf-8")
    (folder / "roles" / "crier" / "deep.py").unlink()
    (folder / "tw_autogen.yaml").write_text('session.roles: ["planner", "crier"]', encoding="utf-8")
    if way == "roles linked":
        (folder / "roles").rename(tmp_path / "theirs")
        (folder / "roles").symlink_to(tmp_path / "theirs")
    project = tmp_path / "way" if way == "linked" else Path()
    if way == "linked":
        project.symlink_to(folder)
    review = review_folder(project=project)
    assert review.remember(review.sha256()) == ""
    settings = read_settings(project=project)
    assert settings.trust is Trust.full
    where = {"settings": settings, "project": project, "kernel": FakeKernel(), "folder": tmp_path / "s"}
    with open_session(ScriptedModel([]), **where) as session:
        (found,) = [role for role in session.roles if role.name == "Crier"]
        os.symlink(folder / "tools" / name, folder / "roles" / "crier" / name)

        with pytest.raises(ImportError, match="is new since its folder was trusted"):
            found.later()
    assert not (tmp_path / "ran").exists()


def test_what_a_host_plugin_imports_later_is_what_was_hashed(folder, tmp_path):
    ran = tmp_path / "ran"
    kernel = FakeKernel()
    with open_session(ScriptedModel([]), kernel=kernel, folder=tmp_path / "s", settings=read_settings(), project="."):
        (folder / "plugins" / "lazily.py").write_text(evil(ran), encoding="utf-8")
        with pytest.raises(ImportError, match="changed since its folder was trusted"):
            kernel.served["twice"]()
    assert not ran.exists()


@pytest.mark.parametrize("name", ["deps.zip", "inner/deps.whl"])
def test_modules_of_an_archive_in_a_trusted_folder_are_not_imported(folder, tmp_path, name):
    archive = folder / "roles" / "crier" / name
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("crier_packed.py", evil(tmp_path / "ran"))
    with opened(read_settings(), tmp_path):
        sys.path.insert(0, str(archive))
        with pytest.raises(ImportError, match="modules of an archive can't be compared .* unpack it"):
            importlib.import_module("crier_packed")
        assert importlib.util.find_spec("colorsys").origin != str(archive)  # others are found after it
    assert not (tmp_path / "ran").exists()


def test_settings_that_were_read_are_those_that_are_hashed(folder):
    """The first read sees other settings than the trusted ones, which are there again when files are hashed."""
    good = (folder / "tw_autogen.yaml").read_text(encoding="utf-8")
    make = functools.partial(Settings, SECTIONS, project=folder, texts={})
    (folder / "tw_autogen.yaml").write_text(json.dumps({**SETTINGS, "model.api_key": "theirs"}), encoding="utf-8")
    first = make()
    (folder / "tw_autogen.yaml").write_text(good, encoding="utf-8")

    assert type(review_folder())(first).files_if_trusted() is None


def test_a_role_that_is_new_since_is_refused(folder, tmp_path):
    settings = read_settings()
    (folder / "ext_role" / "late").mkdir(parents=True)
    (folder / "ext_role" / "late" / "role.yaml").write_text("alias: Late\nintro: i\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="is new since its folder was trusted"):
        open_session(ScriptedModel([]), roles=["late"], settings=settings, project=".", folder=tmp_path / "s")


def test_code_that_is_as_it_was_loads_and_tracebacks_show_its_lines(folder, tmp_path):
    with opened(read_settings(), tmp_path) as session:
        (found,) = [role for role in session.roles if role.name == "Crier"]
        assert found.later().VALUE == 1
        file = type(found).reply.__code__.co_filename
    (folder / "roles" / "crier" / "crier.py").write_text("# other\n" * 9, encoding="utf-8")
    linecache.checkcache(file)
    assert linecache.getline(file, 4) == ROLE.splitlines(keepends=True)[3]


@pytest.mark.skipif(
    not importlib.util.find_spec("_ctypes_test"), reason="this Python has no extension module for tests"
)
def test_an_extension_module_is_a_copy_of_what_was_hashed(folder, tmp_path):
    origin = importlib.util.find_spec("_ctypes_test").origin
    place = tmp_path / "native"
    place.mkdir()
    target = place / os.path.basename(origin)
    target.write_bytes(Path(origin).read_bytes())
    files = TrustedFiles.hashed(place, [target], folders=[place])
    guard_imports(place, files)
    spec = importlib.machinery.PathFinder.find_spec("_ctypes_test", [str(place)])
    module = importlib.util.module_from_spec(spec)
    assert module.__file__ == str(target)
    with open(target, "ab") as file:
        file.write(b"\0")
    with pytest.raises(ImportError, match="changed since its folder was trusted"):
        importlib.util.module_from_spec(spec)
    guard_imports(place, None)


@pytest.mark.parametrize(
    ("suffixes", "left"),
    [(CODE_SUFFIXES, ["a.py"]), (PROGRAM_SUFFIXES, [".tw/b.py", "a.py"])],
    ids=["imports", "programs"],
)
def test_what_git_and_sessions_keep_is_no_program(tmp_path, suffixes, left):
    names = (".git/hooks/h.py", ".git/refs/heads/fix.py", ".tw/sessions/session-a/c.py", ".tw/b.py", "a.py")
    write(tmp_path, **dict.fromkeys(names, "1"))

    found = code_files([tmp_path], suffixes=suffixes)

    assert sorted(one.relative_to(tmp_path).as_posix() for one in found) == left


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_path_up_from_where_a_link_leads_is_hashed_as_the_system_has_it(tmp_path):
    write(tmp_path, **{"tw_autogen.yaml": "", "far/inner/x.txt": "", "far/tw_autogen.yaml": "program"})
    (tmp_path / "lz").symlink_to("far/inner")
    named = tmp_path / "lz/../tw_autogen.yaml"

    before = TrustedFiles.hashed(tmp_path, [named], contents={tmp_path / "tw_autogen.yaml": b""})
    (tmp_path / "far/tw_autogen.yaml").write_text("another program")
    after = TrustedFiles.hashed(tmp_path, [named], contents={tmp_path / "tw_autogen.yaml": b""})

    assert before.sha256 != after.sha256
    assert before.holds(tmp_path / "far/tw_autogen.yaml")
    assert not before.holds(tmp_path / "tw_autogen.yaml")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_program_and_a_servers_folder_up_from_where_a_link_leads_are_hashed_where_they_lie(tmp_path):
    write(
        tmp_path, **{"far/inner/x.txt": "", "far/tool": "#!/bin/sh", "tool": "name: a", "far/srv.py": "", "srv.py": ""}
    )
    (tmp_path / "lz").symlink_to("far/inner")
    server = McpServer("notes", command="python", args=("-m", "srv"), cwd="lz/..")

    of_role = set(files_of_setting("role.runner.executable", "./lz/../tool", tmp_path))
    assert (tmp_path / "far/tool" in of_role, tmp_path / "tool" in of_role) == (True, False)
    assert tmp_path / "far/srv.py" in set(server_files([server], tmp_path))
