"""What a plugin's folder and the settings let code read: never the home folder, and nothing that it could not read."""

import os
import shutil
import sys
import tempfile

import pytest

from tw_autogen.errors import ConfigError, PluginLoadError, SandboxError
from tw_autogen.kernel import KernelSettings, Loadable, LocalKernel
from tw_autogen.kernel.path_policy import checked_kernel_folder, too_broad_reason
from tw_autogen.safe_folder import protected_below

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox yet")
PLUGIN = (
    "from taskweaver.plugin import register_plugin\n{more}\n@register_plugin\ndef thrice(x):\n    return x * {by}\n"
)
SECONDS = 60
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root's code becomes another user"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give a home folder with a secret in it, that others may pass."""
    folder = tmp_path / "me"
    folder.mkdir()
    for one in (tmp_path, folder):
        one.chmod(0o755)
    (folder / "secret.txt").write_text("hunter2", encoding="utf-8")
    (folder / "secret.txt").chmod(0o644)
    (folder / "helper.py").write_text("BY = 3\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(params=["namespaces", "landlock"])
def kernel(request, tmp_path_factory):
    """Give what makes a kernel in one sandbox; skips where it can't be set up."""
    made = []

    def make(**settings):
        folder = tmp_path_factory.mktemp("session")
        made.append(LocalKernel(folder, settings=KernelSettings(sandbox=request.param, **settings)))
        made[-1].level = request.param
        return made[-1]

    yield make
    for one in made:
        one.close()


def run(kernel, code):
    try:
        return kernel.execute(code, seconds=SECONDS)
    except SandboxError as error:
        pytest.skip(str(error))


def load(kernel, path, more="", by="3"):
    path.write_text(PLUGIN.format(more=more, by=by), encoding="utf-8")
    try:
        kernel.load(Loadable("thrice", path.read_text(encoding="utf-8"), path=path))
    except SandboxError as error:
        pytest.skip(str(error))


def test_a_plugin_in_the_home_folder_works_and_shows_code_nothing_else_of_it(kernel, home):
    mine = kernel()
    load(mine, home / "thrice.py")

    ran = run(mine, f"import os\nthrice(14), os.path.exists({str(home / 'thrice.py')!r})")
    assert ran.result == "(42, True)"
    for code in (f"open({str(home / 'secret.txt')!r}).read()", f"'secret.txt' in os.listdir({str(home)!r}) or 1 / 0"):
        refused = run(mine, f"import os\n{code}")
        assert not refused.ok
        assert "hunter2" not in str(refused)


def test_a_plugin_in_a_folder_of_its_own_imports_what_lies_beside_it(kernel, home):
    (home / "plugins").mkdir(mode=0o755)
    (home / "helper.py").rename(home / "plugins" / "helper.py")
    mine = kernel()
    load(mine, home / "plugins" / "thrice.py", more="from helper import BY", by="BY")

    assert run(mine, "thrice(14)").result == "42"
    assert not run(mine, f"open({str(home / 'secret.txt')!r}).read()").ok


def test_of_what_lies_beside_a_plugin_code_reads_all_but_dotfiles(kernel, home):
    folder = home / "project"
    (folder / ".git").mkdir(parents=True, mode=0o755)
    for name in (".env", ".git/config"):
        (folder / name).write_text("hunter2", encoding="utf-8")
    (folder / "prices.csv").write_text("42", encoding="utf-8")
    (home / "helper.py").rename(folder / "helper.py")
    folder.chmod(0o755)
    mine = kernel()
    load(mine, folder / "thrice.py", more="from helper import BY", by="BY")

    assert run(mine, f"thrice(14), open({str(folder / 'prices.csv')!r}).read()").result == "(42, '42')"
    for name in (".env", ".git/config"):
        refused = run(mine, f"open({str(folder / name)!r}).read()")
        assert not refused.ok
        assert "hunter2" not in str(refused)


def test_a_plugin_in_the_home_folder_that_imports_from_there_is_told_to_move(kernel, home):
    with pytest.raises(PluginLoadError, match=r"helper'; code can't read what .* is your home folder: put the plugin"):
        load(kernel(), home / "thrice.py", more="from helper import BY", by="BY")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".ssh", "keys"),
        (".config", "keys"),
        (".config/gcloud", "keys"),
        ("Library/Keychains", "keys"),
        (".local", "keys"),
        (".local/share/project", ""),
        ("project", ""),
        (".hidden", ""),
        ("/etc/ssl", "system"),
        ("/var/lib", "system"),
        ("/var/www/project", ""),
        ("/home/somebody", "another user"),
    ],
)
def test_folders_of_keys_are_too_much(home, name, why):
    assert why in too_broad_reason(home / name)
    assert bool(too_broad_reason(home / name)) == bool(why)


@root
@pytest.mark.parametrize(("key", "mode"), [("read", 0o700), ("read", 0o750), ("write", 0o755)])
def test_a_granted_folder_that_is_closed_to_the_kernels_user_is_told_before_anything_runs(tmp_path, key, mode):
    shut = tmp_path / "shut"
    shut.mkdir()
    shut.chmod(mode)
    word = "rwx" if key == "write" else "rx"
    settings = KernelSettings(sandbox="namespaces", **{key: (str(shut),)})
    with (
        LocalKernel(tmp_path / "session", settings=settings) as kernel,
        pytest.raises(ConfigError, match=rf"kernel\.{key}: {shut} is closed to others \(mode .*chmod o\+{word} {shut}"),
    ):
        run(kernel, "1")

    shut.chmod(0o777)
    with LocalKernel(tmp_path / "other", settings=settings) as kernel:
        assert run(kernel, f"import os\nos.listdir({str(shut)!r})").result == "[]"


@root
def test_a_closed_folder_inside_a_granted_one_is_named(tmp_path):
    (tmp_path / "open" / "shut").mkdir(parents=True)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "open" / "shut").chmod(0o700)
    path = tmp_path / "open" / "shut" / "a.txt"
    path.write_text("x", encoding="utf-8")
    settings = KernelSettings(sandbox="namespaces", read=(str(tmp_path / "open"),))
    with LocalKernel(tmp_path / "session", settings=settings) as kernel:
        ran = run(kernel, f"open({str(path)!r}).read()")

    assert ran.error.splitlines()[-1].endswith(f"who may not read {path.parent}.")


@root
def test_a_plugin_whose_folder_is_closed_says_so_where_it_misses_what_lies_there(tmp_path):
    place = tmp_path / "plugins"
    place.mkdir()
    place.chmod(0o700)
    (place / "helper.py").write_text("BY = 3\n", encoding="utf-8")
    with (
        LocalKernel(tmp_path / "session", settings=KernelSettings(sandbox="namespaces")) as kernel,
        pytest.raises(
            PluginLoadError, match=rf"helper.*{place} is closed to others \(mode 0700\).*chmod o\+rx {place}"
        ),
    ):
        load(kernel, place / "thrice.py", more="from helper import BY", by="BY")


@root
@pytest.mark.parametrize("shut", [".", "between"])
@pytest.mark.parametrize("mode", [0o700, 0o711])
def test_a_kernel_works_below_a_plugins_folder_that_its_user_cant_read(tmp_path, shut, mode):
    place = tmp_path / "project"
    (place / "between").mkdir(parents=True)
    (place / shut).chmod(mode)
    settings = KernelSettings(sandbox="namespaces")
    with LocalKernel(place / "between" / "session", settings=settings) as kernel:
        load(kernel, place / "thrice.py")

        assert run(kernel, "thrice(2)").result == "6"


@root
def test_a_plugin_reads_what_lies_beside_it_by_name_where_the_folder_can_be_passed_but_not_listed(tmp_path):
    place = tmp_path / "plugins"
    place.mkdir()
    (place / "words.txt").write_text("3", encoding="utf-8")
    place.chmod(0o711)
    with LocalKernel(tmp_path / "session", settings=KernelSettings(sandbox="namespaces")) as kernel:
        load(kernel, place / "thrice.py", more=f"BY = int(open({str(place / 'words.txt')!r}).read())", by="BY")

        assert run(kernel, "thrice(2)").result == "6"


@root
def test_a_granted_folder_that_would_hide_the_kernels_own_is_told_before_anything_runs(tmp_path):
    place = tmp_path / "project"
    (place / "shut").mkdir(parents=True)
    place.chmod(0o755)
    (place / "shut").chmod(0o700)
    settings = KernelSettings(sandbox="namespaces", read=(str(place),))
    with (
        LocalKernel(place / "shut" / "session", settings=settings) as kernel,
        pytest.raises(ConfigError, match=rf"{place} holds .*session, where code runs, and {place}/shut is closed to"),
    ):
        run(kernel, "1")


@pytest.mark.parametrize("name", ["", "..", ".ssh", ".aws/cli"])
def test_no_kernel_works_in_the_home_folder_above_it_or_among_keys(home, name):
    (home / name).mkdir(parents=True, exist_ok=True)

    with pytest.raises(ConfigError, match=r"no kernel works here, because it is .*; give it one of its own"):
        LocalKernel(home / name)
    checked_kernel_folder(home / name, KernelSettings(sandbox="off"))
    checked_kernel_folder(home / "project", KernelSettings())


def owners(folder):
    return {
        path.relative_to(folder).as_posix(): (path.lstat().st_uid, path.lstat().st_gid) for path in folder.rglob("*")
    }


@root
def test_a_folder_and_all_in_it_is_given_back_when_its_last_kernel_is_closed(tmp_path):
    folder, secret = tmp_path / "work", tmp_path / "secret.txt"
    (folder / "inner").mkdir(parents=True)
    for name in ("mine.txt", "inner/groups.txt", "theirs.txt"):
        (folder / name).write_text("x", encoding="utf-8")
    secret.write_text("x", encoding="utf-8")
    os.chown(secret, 4321, 4321)
    os.chown(folder / "inner/groups.txt", 0, 1234)
    os.chown(folder / "theirs.txt", 4321, 4321)
    os.chown(folder, 4321, 4321)
    links = KernelSettings(allow_symlinks=True)
    with LocalKernel(folder) as kernel, LocalKernel(folder, settings=links) as second:
        run(kernel, "open('inner/made.txt', 'w').write('x')\nimport os\nos.makedirs('made')")
        assert run(second, f"import os\nos.symlink({str(secret)!r}, 'made/link')").ok
        second.close()
        user = folder.stat().st_uid
        ran = run(kernel, "open('mine.txt', 'a').write('y')")
        assert ran.ok, ran.error

    assert user not in (0, 4321)
    assert folder.stat().st_uid == folder.stat().st_gid == 4321
    found = owners(folder)
    assert (found.pop("inner/groups.txt"), found.pop("theirs.txt")) == ((0, 1234), (4321, 4321))
    assert {"inner/made.txt", "made/link", "mine.txt"} <= set(found)
    assert set(found.values()) == {(0, 0)}
    assert secret.stat().st_uid == 4321


@root
def test_a_folder_given_back_is_taken_again_by_the_next_kernel_with_what_the_last_one_made(tmp_path):
    for text in ("a", "ab"):
        with LocalKernel(tmp_path / "work") as kernel:
            ran = run(kernel, f"open('kept.txt', 'a').write({text[-1]!r})\nopen('kept.txt').read()")
            kernel.restart()
            assert ran.result == repr(text)
            assert run(kernel, "open('kept.txt', 'a').close()").ok


@pytest.mark.parametrize("key", ["read", "write"])
def test_a_path_that_does_not_exist_is_no_silent_grant(tmp_path, key):
    settings = KernelSettings(**{key: (str(tmp_path / "gone"),)})
    with (
        LocalKernel(tmp_path / "session", settings=settings) as kernel,
        pytest.raises(ConfigError, match=rf"kernel\.{key}: {tmp_path}/gone does not exist; make it, correct the path"),
    ):
        run(kernel, "1")


HOOKS = ("conftest.py", ".env", "tw_autogen.yaml", "pkg/x.pth", "pkg/deep/Makefile")


@pytest.fixture
def granted(tmp_path):
    """Give a folder of the user's with hooks in it, that any user may write to."""
    folder = tmp_path / "mine"
    for name in ("", ".git", ".git/hooks", "pkg", "pkg/deep"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    for above in (folder.parent, folder.parent.parent):
        above.chmod(above.stat().st_mode | 0o011)
    for name in (*HOOKS, ".git/config", "data.csv"):
        (folder / name).write_text("mine", encoding="utf-8")
        (folder / name).chmod(0o666)
    return folder


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
def test_settings_files_and_hooks_stay_read_only_where_code_may_write(level, granted, tmp_path_factory):
    settings = KernelSettings(sandbox=level, write=(str(granted),))
    attempts = """
import os
os.chdir({folder!r})
open('data.csv', 'w').write('code'); open('pkg/deep/new.csv', 'w').write('code')
went = []
for name in {names!r}:
    ways = (lambda: open(name, 'a').write('code'), lambda: os.remove(name), lambda: os.rename(name, name + '2'),
            lambda: os.replace('data.csv', name), lambda: os.chmod(name, 0o777))
    for number, way in enumerate(ways):
        try:
            way()
            went.append((name, number))
        except OSError:
            pass
for name in ('.git', 'pkg', 'pkg/deep'):
    try:
        os.rename(name, 'moved')
        went.append(name)
    except OSError:
        pass
went
""".format(folder=str(granted), names=[*HOOKS, ".git/config"])
    with LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel:
        ran = run(kernel, attempts)
        told = run(kernel, f"open({str(granted / 'conftest.py')!r}, 'w')")

    assert (ran.ok, ran.result, ran.error) == (True, "[]", "")
    assert "conftest.py stays read-only, as settings files, hooks and" in told.error
    assert (granted / "data.csv").read_text(encoding="utf-8") == "code"
    assert {(granted / name).read_text(encoding="utf-8") for name in (*HOOKS, ".git/config")} == {"mine"}


def test_a_repository_stays_read_only_whatever_it_is_called(granted, tmp_path_factory):
    for name in ("HEAD", "config", "objects/x", "refs/x", "hooks/post-checkout"):
        (granted / ".bare" / name).parent.mkdir(parents=True, exist_ok=True)
        (granted / ".bare" / name).write_text("mine", encoding="utf-8")
    for path in (granted / ".bare", *(granted / ".bare").rglob("*")):
        path.chmod(0o777)
    settings = KernelSettings(sandbox="namespaces", write=(str(granted),))
    with LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel:
        for name in ("config", "hooks/post-checkout", "hooks/new"):
            assert "Read-only" in run(kernel, f"open({str(granted / '.bare' / name)!r}, 'w')").error


def test_a_folder_that_is_a_repository_is_refused_and_one_that_becomes_one_is_reported(granted, tmp_path_factory):
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        (granted / name).parent.mkdir(exist_ok=True)
        (granted / name).write_text("mine", encoding="utf-8")
    settings = KernelSettings(sandbox="namespaces", write=(str(granted),))
    with (
        LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel,
        pytest.raises(ConfigError, match=r"kernel\.write: .* can't be granted: it is a git repository"),
    ):
        kernel.execute("1", seconds=SECONDS)
    (granted / "HEAD").unlink()
    before = {path for path, _ in protected_below(str(granted))}
    (granted / "HEAD").write_text("code's", encoding="utf-8")
    assert {path for path, _ in protected_below(str(granted))} - before == {
        str(granted / name) for name in ("HEAD", "objects", "refs")
    }


def test_landlock_refuses_to_grant_a_folder_whose_hooks_it_could_not_keep(granted, tmp_path_factory):
    settings = KernelSettings(sandbox="landlock", write=(str(granted),))
    with LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel:
        try:
            with pytest.raises(ConfigError, match=r"kernel\.write: .* landlock can't keep .* read-only there"):
                kernel.execute("1", seconds=SECONDS)
        except SandboxError as error:
            pytest.skip(str(error))


def test_a_hook_that_is_a_link_is_refused(granted, tmp_path_factory):
    (granted / ".envrc").symlink_to(granted / "data.csv")
    settings = KernelSettings(write=(str(granted),))
    with (
        LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel,
        pytest.raises(ConfigError, match=r"kernel\.write: .*\.envrc is a link, which can't be kept read-only"),
    ):
        kernel.execute("1", seconds=SECONDS)


def test_a_file_is_shown_at_its_own_place_until_a_cell_has_run(granted, tmp_path_factory):
    paths = [granted.resolve() / name for name in ("data.csv", "other.csv")]
    paths[1].write_text("other", encoding="utf-8")
    paths[1].chmod(0o644)
    with LocalKernel(tmp_path_factory.mktemp("session")) as kernel:
        assert kernel.show(paths[0])
        ran = run(kernel, f"open({str(paths[0])!r}).read()")
        assert ran.result == "'mine'", ran.error
        assert (kernel.show(paths[0]), kernel.show(paths[1])) == (True, False)


def test_a_hook_itself_is_never_granted(granted, tmp_path_factory):
    for name in (".git", ".git/hooks", "conftest.py"):
        settings = KernelSettings(write=(str(granted / name),))
        with (
            LocalKernel(tmp_path_factory.mktemp("session"), settings=settings) as kernel,
            pytest.raises(ConfigError, match=r"can't be granted: settings files and hooks stay read-only"),
        ):
            kernel.execute("1", seconds=SECONDS)


LINKS = {
    "the last": (["sub/data"], {"sub/data": "../../private"}, "sub/data"),
    "one above": (["sub/data"], {"sub": "../private"}, "sub"),
    "the second of two": (["../outer"], {"other": "{top}/private", "../outer": "work/other"}, "other"),
    "one that stays": (["sub/data"], {"sub/data": "../stays"}, ""),
}


@pytest.mark.parametrize("key", ["read", "write"])
@pytest.mark.parametrize("case", LINKS)
def test_what_lies_in_a_folder_that_code_writes_is_not_granted_over_a_link_out_of_it(tmp_path, case, key):
    granted, links, led = LINKS[case]
    work = tmp_path / "work"
    for one in (work / "sub", work / "stays", tmp_path / "private" / "data"):
        one.mkdir(parents=True)
    for name, target in links.items():
        if (work / name).is_dir():
            shutil.rmtree(work / name)
        (work / name).symlink_to(target.format(top=tmp_path))
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o777)
    paths = [str(work / one) for one in granted]
    granted = {"read": (), "write": (str(work),)}
    settings = KernelSettings(**{**granted, key: (*granted[key], *paths)})

    if not led:
        LocalKernel.check_settings(settings)
        return
    with pytest.raises(ConfigError, match=rf"kernel\.{key}: .* over the link {work / led} to "):
        LocalKernel.check_settings(settings)


def place_of_trust(tmp_path, monkeypatch, variable):
    """Let the user's settings or state lie in a folder that is granted, as in some development containers."""
    project = tmp_path / "project"
    (project / "in").mkdir(parents=True)
    for folder in (tmp_path, project, project / "in"):
        folder.chmod(0o777)  # root's code runs as another user
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, str(project / ".own"))
    return project


def test_code_reads_no_folder_in_which_kernels_keep_keys(tmp_path, monkeypatch):
    project = place_of_trust(tmp_path, monkeypatch, "TMPDIR")
    (project / ".own").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)

    for folder in (str(project), str(project / ".own"), "/var/tmp"):
        with pytest.raises(ConfigError, match=f"kernel.read: {folder} can't be granted: a folder for temporary files"):
            LocalKernel.check_settings(KernelSettings(read=(folder,)), tmp_path / "session")
    assert f"above {project / '.own'}, where programs keep temporary files" in too_broad_reason(project)
    LocalKernel.check_settings(KernelSettings(read=(str(project / "in"),)), tmp_path / "session")


def test_code_writes_no_folder_in_which_this_program_keeps_caches(tmp_path, monkeypatch):
    project = place_of_trust(tmp_path, monkeypatch, "XDG_CACHE_HOME")

    for folder in (project, project / ".own", project / ".own" / "tw-autogen"):
        (project / ".own" / "tw-autogen").mkdir(parents=True, exist_ok=True)
        with pytest.raises(ConfigError, match="this program keeps caches in .*own/tw-autogen"):
            LocalKernel.check_settings(KernelSettings(write=(str(folder),)), tmp_path / "session")
    LocalKernel.check_settings(KernelSettings(write=(str(project / "in"),)), tmp_path / "session")


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_code_reads_and_writes_nowhere_where_trust_and_the_users_settings_are_kept(tmp_path, monkeypatch, variable):
    project = place_of_trust(tmp_path, monkeypatch, variable)
    own = project / ".own" / "tw-autogen"
    (own / "trust").mkdir(parents=True)

    for folder in (project, own.parent, own, own / "trust"):
        with pytest.raises(ConfigError, match="where this program keeps your settings and what you trust"):
            LocalKernel.check_settings(KernelSettings(write=(str(folder),)), tmp_path / "session")
        with pytest.raises(ConfigError, match="where this program keeps your settings and what you trust"):
            checked_kernel_folder(folder, KernelSettings())
        with pytest.raises(ConfigError, match="where this program keeps your settings and what you trust"):
            LocalKernel.check_settings(KernelSettings(read=(str(folder),)), tmp_path / "session")
        assert "where this program keeps" in too_broad_reason(folder)
    assert too_broad_reason(project / "in") == ""
    inner = (str(project / "in"),)
    LocalKernel.check_settings(KernelSettings(read=inner, write=inner), tmp_path / "session")


def test_the_folder_in_which_states_of_programs_lie_is_too_much(home):
    assert too_broad_reason(home / ".local" / "state") == "where programs keep keys and settings of yours"
