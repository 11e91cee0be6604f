"""What of a project's folder code may read: Python files and packages with their data, never a dotfile."""

import ast
import os
import sys
from types import SimpleNamespace

import pytest

from tw_autogen.errors import SandboxError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.launcher import readable_files
from tw_autogen.kernel.launcher.readable_files import (
    LISTED,
    changed_at,
    editable_paths,
    environment_paths,
    readable_pieces,
)
from tw_autogen.kernel.pool import KernelPool

SECRET = "hunter2"


def make(root, *files):
    """Make files below a folder; `a -> b` is a link."""
    for file in files:
        name, _, target = file.partition(" -> ")
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if target:
            path.symlink_to(target)
        else:
            path.write_text("x = 1\n", encoding="utf-8")
    return root


def readable(root, granted):
    """Return the files below a folder that these grants let code read, as they do behind Landlock: links followed."""
    real = [os.path.realpath(one) for one in granted if not one.endswith(LISTED)]
    every = [path for path in root.rglob("*") if path.is_file()]
    return sorted(
        str(path.relative_to(root))
        for path in every
        if any(os.path.realpath(path) == one or os.path.realpath(path).startswith(f"{one}/") for one in real)
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([".env", ".git/config", "mod.py"], ["mod.py"]),
        (["secrets.json", "data/customers.csv", "mod.py"], ["mod.py"]),
        (["pkg/__init__.py", "pkg/data.csv", ".env"], ["pkg/__init__.py", "pkg/data.csv"]),
        (["pkg/__init__.py", "pkg/.env", "pkg/sub/.git/config", "pkg/sub/a.txt"], ["pkg/__init__.py", "pkg/sub/a.txt"]),
        (["space/pkg/__init__.py", "space/pkg/a.csv", "space/notes.txt"], ["space/pkg/__init__.py", "space/pkg/a.csv"]),
        (["space/mod.py", "space/table.csv", "space/.env"], ["space/mod.py", "space/table.csv"]),
        (["pkg/__init__.py", "pkg/.libs/lib.so", "pkg/.dylibs/lib.so"],
         ["pkg/.dylibs/lib.so", "pkg/.libs/lib.so", "pkg/__init__.py"]),
        (["thing.egg-info/PKG-INFO", "thing-1.egg-info/.env", "my-data/a.csv", "fast.so"],
         ["fast.so", "thing.egg-info/PKG-INFO"]),
        ([".env", "env.py -> .env", "mod.py"], ["mod.py"]),
        ([".git/config", "pkg/__init__.py", "pkg/git -> ../.git", "pkg/.env"], ["pkg/__init__.py"]),
        ([".venv/lib/site.py", ".github/run.py", "node_modules/.bin/a.py"], []),
        ([f"{'d/' * 60}mod.py", ".env"], []),
        ([], []),
    ],
)  # fmt: skip
def test_of_a_project_python_files_and_packages_are_granted_and_nothing_dotted(tmp_path, files, expected):
    make(tmp_path, *files)

    assert readable(tmp_path, readable_pieces(str(tmp_path))) == expected


def test_of_a_plugins_folder_all_but_dotfiles_is_granted(tmp_path):
    make(tmp_path, ".env", "thrice.py", "prices.csv", "models/a.bin", "models/.cache/b")

    granted = readable_pieces(str(tmp_path), package=True)

    assert readable(tmp_path, granted) == ["models/a.bin", "prices.csv", "thrice.py"]
    assert f"{tmp_path}{LISTED}" in granted


def test_code_sees_no_other_sessions_that_lie_beside_a_plugin(tmp_path):
    for one in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        one.chmod(0o755)  # as root, code is another user, who must be able to pass
    make(tmp_path, "thrice.py", "prices.csv", "sessions/one/files/salary.csv", "sessions/two/files/own.csv")
    text = "from tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef thrice(x):\n    return 3 * x\n"
    look = (
        "import glob; "
        f"print(sorted(p.split('/')[-1] for p in glob.glob({str(tmp_path)!r} + '/**/*.*', recursive=True)))"
    )

    with LocalKernel(tmp_path / "sessions/two/files") as kernel:
        kernel.load(Loadable("thrice", text, path=tmp_path / "thrice.py"))
        found = kernel.execute(look, seconds=60).stdout

    assert "salary.csv" not in found, found
    assert {"prices.csv", "own.csv"} <= set(ast.literal_eval(found)), found


@pytest.mark.parametrize("package", [True, False])
def test_a_folder_of_nothing_else_is_granted_as_one(tmp_path, package):
    make(tmp_path, "a.py", "pkg/__init__.py", "pkg/data.csv", "__pycache__/a.pyc")

    assert readable_pieces(str(tmp_path), package=package) == [str(tmp_path)]


INSTALLED = ["thing-1.dist-info/METADATA", "thing/__init__.py", "thing.libs/a.so.1", "bin/thing"]


def test_installed_packages_are_granted_as_one(tmp_path):
    make(tmp_path, *INSTALLED)

    assert readable_pieces(str(tmp_path)) == [str(tmp_path)]


def test_a_project_with_installed_packages_in_it_shows_these_and_its_python_only(tmp_path):
    make(tmp_path, *INSTALLED, ".env", ".ssh/id", "secrets.json", "src.py", "conf/.env")

    assert readable(tmp_path, readable_pieces(str(tmp_path))) == sorted([*INSTALLED, "src.py"])


@pytest.mark.parametrize("package", [True, False])
def test_what_is_not_looked_at_is_not_granted(tmp_path, monkeypatch, package):
    monkeypatch.setattr(readable_files, "_MAX_ENTRIES", 20)
    for number in range(30):
        make(tmp_path, f"a{number}/b/c.csv")
    make(
        tmp_path, "mod.py", "shop/__init__.py", "shop/conf/.env", "shop/conf/a.py", "z/projects/.env", "z/projects/a.py"
    )

    granted = readable(tmp_path, readable_pieces(str(tmp_path), package=package))

    assert {"mod.py", "shop/__init__.py"} <= set(granted)
    assert not [one for one in granted if one.endswith(".env")]


@pytest.mark.parametrize("inner", ["pyvenv.cfg", "lib/python3/os.py"])
def test_an_interpreter_where_programs_keep_keys_shows_its_own_only(tmp_path, inner):
    keys = ["share/jupyter/runtime/kernel-1.json", "share/keyrings/login.keyring", "state/tw-autogen/trust/key"]
    make(tmp_path / ".local", inner, "bin/python", *keys)

    granted = environment_paths([], str(tmp_path), [str(tmp_path / ".local")])

    assert readable(tmp_path, granted) == sorted([f".local/{inner}", ".local/bin/python"])


def test_a_folder_of_many_files_makes_few_pieces_and_python_files_come_first(tmp_path):
    for number in range(3000):
        (tmp_path / f"a{number}.csv").touch()
        (tmp_path / f"b{number}.txt").touch()
    make(tmp_path, ".env", "z.py", "pkg/__init__.py")

    assert readable_pieces(str(tmp_path)) == [f"{tmp_path}{LISTED}", str(tmp_path / "z.py"), str(tmp_path / "pkg")]
    as_plugin = readable_pieces(str(tmp_path), package=True)
    assert len(as_plugin) <= 2001
    assert as_plugin[1:3] == [str(tmp_path / "z.py"), str(tmp_path / "pkg")]


def test_home_and_root_on_the_path_are_not_granted_and_an_interpreter_in_a_dotted_folder_is(tmp_path):
    home = make(tmp_path / "me", "project/.env", "project/mod.py", "project/.venv/lib/python3/os.py")
    prefix = home / "project" / ".venv"
    paths = [str(home), "/", str(tmp_path), "", str(home / "project"), str(prefix / "lib" / "python3")]

    granted = environment_paths(paths, str(home), [str(prefix)])

    assert readable(home, granted) == ["project/.venv/lib/python3/os.py", "project/mod.py"]
    assert not {"/", str(home), str(tmp_path)} & {one.removesuffix(LISTED) for one in granted}


def test_a_project_that_is_the_interpreters_folder_too_shows_no_dotfiles(tmp_path):
    make(tmp_path, ".env", ".git/config", "bin/python", "lib/python3/os.py", "pyvenv.cfg")

    granted = environment_paths([], "/nobody", [str(tmp_path)])

    assert readable(tmp_path, granted) == ["bin/python", "lib/python3/os.py", "pyvenv.cfg"]


def test_what_comes_later_to_an_environment_is_looked_at_again(tmp_path):
    make(tmp_path, "bin/python", "lib/python3/os.py", "pyvenv.cfg")
    os.utime(tmp_path, (1, 1))
    seen = {}
    assert environment_paths([], "/nobody", [str(tmp_path)], seen=seen) == [str(tmp_path)]
    assert all(changed_at(one) == when for one, when in seen.items())

    make(tmp_path, ".tw/sessions/a.csv")

    assert any(changed_at(one) != when for one, when in seen.items())
    assert str(tmp_path) not in environment_paths([], "/nobody", [str(tmp_path)], seen=seen)


def test_an_environment_in_a_projects_folder_shows_its_own_only(tmp_path):
    own = ["bin/python", "lib/python3/site-packages/a.py", "pyvenv.cfg", "share/jupyter/kernels/a.json"]
    make(
        tmp_path, *own, ".aws/credentials", ".tw/sessions/a.csv", "data.csv", "share/a.csv", "src/x/.env", "src/mod.py"
    )
    paths = [str(tmp_path / "lib/python3/site-packages"), str(tmp_path / "src")]

    granted = environment_paths(paths, "/nobody", [str(tmp_path)])

    assert readable(tmp_path, granted) == sorted([*own, "src/mod.py"])


def test_files_of_tools_keep_nothing_back_and_links_in_their_place_do(tmp_path):
    make(tmp_path / "a", "__init__.py", ".gitignore", "tests/.f2py_f2cmap", "tests/.DS_Store", "tests/mod.py")
    make(tmp_path / "b", "__init__.py", ".gitkeep/token", "mod.py")
    make(tmp_path / "c", "__init__.py", "mod.py")
    (tmp_path / "c" / ".gitignore").symlink_to("/etc/passwd")

    assert readable_pieces(str(tmp_path / "a")) == [str(tmp_path / "a")]
    assert readable(tmp_path, readable_pieces(str(tmp_path))) == [
        *("a/.gitignore", "a/__init__.py", "a/tests/.DS_Store", "a/tests/.f2py_f2cmap", "a/tests/mod.py"),
        *("b/__init__.py", "b/mod.py", "c/__init__.py", "c/mod.py"),
    ]


@pytest.mark.parametrize("besides", ["", "notes.csv"])
def test_what_packages_of_conda_bring_along_is_their_environments(tmp_path, besides):
    brought = [
        *("bin/python", "conda-meta/history", "etc/OpenCL/vendors/a.icd", "fonts/a.ttf", "share/udunits/a.xml"),
        "x86_64-conda-linux-gnu/sysroot/usr/lib/libc.so",
    ]
    make(tmp_path, *brought, *((besides, "etc/conda/activate.d/keys.sh") if besides else ()))

    granted = environment_paths([], "/nobody", [str(tmp_path)])

    assert readable(tmp_path, granted) == sorted(brought)
    assert (granted == [str(tmp_path)]) == (not besides)


def test_a_projects_folder_is_no_package_of_the_interpreter(tmp_path):
    make(tmp_path, "__init__.py", ".env", "bin/python", "pyvenv.cfg", "conda-meta/history", ".netrc", "data.csv")

    assert readable(tmp_path, environment_paths([], "/nobody", [str(tmp_path)])) == [
        "bin/python",
        "conda-meta/history",
        "pyvenv.cfg",
    ]
    assert environment_paths([], "/nobody", packages=[str(tmp_path)]) == [str(tmp_path)]


@pytest.mark.parametrize("package", [True, False])
def test_sessions_in_a_package_are_left_out(tmp_path, package):
    make(tmp_path, "svc/__init__.py", "svc/data.csv", "svc/events/events.jsonl")
    make(tmp_path / "svc/sessions/session-1", "events.jsonl", "files/secret.csv")
    make(tmp_path / "svc/sessions/session-2", "events.jsonl", "made_here")

    granted = readable_pieces(str(tmp_path), package=package)

    assert readable(tmp_path, granted) == ["svc/__init__.py", "svc/data.csv", "svc/events/events.jsonl"]


def test_a_folder_that_is_only_named_as_installed_packages_are_is_looked_at(tmp_path):
    make(tmp_path / "my-packages", ".env", "secrets.json", "mod.py")

    assert readable(tmp_path, environment_paths([str(tmp_path / "my-packages")], "/nobody")) == ["my-packages/mod.py"]


@pytest.mark.parametrize("link", ["current", "pkg/current"])
def test_a_link_to_a_folder_shows_nothing_that_its_target_does_not(tmp_path, link):
    make(tmp_path, "projects/shop/.env", "projects/shop/a.csv", "projects/b/__init__.py", "pkg/__init__.py")
    (tmp_path / link).symlink_to(tmp_path / "projects/shop")
    (tmp_path / "b").symlink_to(tmp_path / "projects/b")
    (tmp_path / "again").symlink_to(tmp_path)

    granted = readable_pieces(str(tmp_path))

    assert readable(tmp_path, granted) == ["pkg/__init__.py", "projects/b/__init__.py"]
    assert str(tmp_path / "b") in granted


def test_a_dotfile_that_comes_later_is_not_granted(tmp_path):
    make(tmp_path, "thrice.py", "app/core/a.py")
    assert readable_pieces(str(tmp_path), package=True) == [str(tmp_path)]
    make(tmp_path, "app/core/.env")

    assert readable(tmp_path, readable_pieces(str(tmp_path), package=True)) == ["app/core/a.py", "thrice.py"]


def test_packages_behind_a_finder_of_an_editable_install_are_granted(tmp_path):
    make(tmp_path, "src/pkg/__init__.py", "src/pkg/.env", "src/mod.py", "src/other.py")
    finder = SimpleNamespace(MAPPING={"pkg": str(tmp_path / "src/pkg"), "mod": str(tmp_path / "src/mod"), "no": "/no"})

    granted = editable_paths({"__editable___pkg_1_finder": finder, "json": SimpleNamespace(MAPPING={"a": "/etc"})})

    assert readable(tmp_path, granted) == ["src/mod.py", "src/pkg/__init__.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
@pytest.mark.parametrize("level", ["namespaces", "landlock", "bubblewrap"])
def test_code_imports_from_a_project_on_the_path_and_reads_no_secret_beside(tmp_path, monkeypatch, level):
    project = make(tmp_path / "project", "helper.py", "pkg/__init__.py", "space/mod.py")
    for name in (".env", "pkg/.env", "pkg/table.csv", "keys.json", "space/.env"):
        (project / name).write_text(SECRET, encoding="utf-8")
    for one in (tmp_path, project):
        one.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(project))
    code = f"""
import ast
import os
import helper, pkg, space.mod
found = []
for name in (".env", "pkg/.env", "keys.json", "space/.env", "pkg/table.csv"):
    try:
        found.append((name, open(os.path.join({str(project)!r}, name)).read()))
    except OSError:
        pass
sorted(found), {{"helper.py", "pkg", "space"}} <= set(os.listdir({str(project)!r}))"""
    settings = KernelSettings(sandbox=level, preload=(), warm=0, fork=False)
    with KernelPool() as pool, LocalKernel(tmp_path / "session", settings=settings, pool=pool) as kernel:
        try:
            execution = kernel.execute(code, seconds=60)
        except SandboxError as error:
            pytest.skip(str(error))

    assert execution.result == f"([('pkg/table.csv', {SECRET!r})], True)", execution.error
