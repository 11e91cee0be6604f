"""The names under which code sees the files of a request. Scripted models, fake kernels."""

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.errors import ConfigError
from tw_autogen.planner import Planner
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import Session, open_session, read_settings
from tw_autogen.session.request_inputs import checked_inputs, opened_as_given, place_inputs
from tw_autogen.session.working_copies import working_names
from tw_autogen.testing import FakeKernel, ScriptedModel, plans


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/d/a.csv", "/d/b.csv"], ["a.csv", "b.csv"]),
        (["/d/north/a.csv", "/d/south/a.csv", "/d/b.csv"], ["north_a.csv", "south_a.csv", "b.csv"]),
        (["/north/2023/a.csv", "/south/2023/a.csv"], ["north_2023_a.csv", "south_2023_a.csv"]),
        (["/x/2023/a.csv", "/x/2024/a.csv", "/y/2024/a.csv"], ["2023_a.csv", "x_2024_a.csv", "y_2024_a.csv"]),
        (["/a.csv", "/south/a.csv"], ["a.csv", "south_a.csv"]),
        (["/d/north/a.csv", "/d/south/a.csv", "/d/north_a.csv"], ["d_north_a.csv", "south_a.csv", "north_a.csv"]),
        (["/d/one/../a.csv", "/d/two/a.csv"], ["d_a.csv", "two_a.csv"]),
        (
            [f"/北{'年' * 30}/{'月' * 60}.csv", f"/{'南' * 4}/{'月' * 60}.csv"],
            [f"{'年' * 23}_{'月' * 60}.csv", f"{'南' * 4}_{'月' * 60}.csv"],
        ),
    ],
)
def test_files_of_one_name_get_their_folders_names_in_front(paths, names):
    assert working_names([Path(path) for path in paths]) == names


def test_names_of_many_files_take_linear_time(cpu_seconds):
    paths = [Path(f"/d/{place}/m{number}.csv") for place in ("north", "south") for number in range(5000)]
    started = cpu_seconds()

    names = working_names(paths)

    assert (names[0], len(set(names))) == ("north_m0.csv", 10_000)
    assert cpu_seconds() - started < 5


def test_names_that_folders_do_not_tell_apart_are_an_error_with_a_remedy():
    paths = [Path("/a/b_c.csv"), Path("/a_b/c.csv"), Path("/x/a_b/c.csv"), Path("/a_b_c.csv")]

    with pytest.raises(
        ConfigError, match=r"'/a_b/c\.csv' and '/a_b_c\.csv' would both be 'a_b_c\.csv'.*let code read their folder"
    ):
        working_names(paths)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("sum", "'sum' can't be a variable: it would hide Python's own 'sum'; call it 'sum_', for instance"),
        ("list", "call it 'list_'"),
        ("print", "call it 'print_'"),
        ("display", "call it 'display_'"),
        ("ValueError", "call it 'ValueError_'"),
        ("for", "it is no Python identifier; use letters, digits and underscores"),
        ("2nd", "it is no Python identifier"),
        (5, "it is no Python identifier"),
    ],
)
def test_a_variable_that_would_hide_a_name_of_pythons_is_an_error_with_another_name(name, problem):
    with pytest.raises(ConfigError, match=re.escape(problem)):
        checked_inputs([], {name: 1})


PRIVATE = [
    ".ssh/id_rsa", ".config/x/y.json", "work/.env", "tables/credentials.json", "tables/mine.pem", "secrets/db.txt",
    "tables/id_rsa", "tables/site.ovpn",
]  # fmt: skip
SHOWN = [
    "data/sales-2024.csv", "mounted/..2024_11_28/sales.csv", "repo/.git/annex/objects/x/y.csv",
    "repo/.dvc/cache/files/x.csv",
]  # fmt: skip


@pytest.mark.parametrize("start", ["", "Downloads", "Downloads/sales", "elsewhere"])
@pytest.mark.parametrize("target", [*PRIVATE, *SHOWN])
def test_a_link_to_what_is_hidden_is_not_taken_for_the_file_that_its_name_says(tmp_path, monkeypatch, target, start):
    home = tmp_path.resolve() / ".homes" / "me"  # which hidden folder the home lies in says nothing
    for one in (home / target, home / "Downloads/sales/x", home / "elsewhere/x"):
        one.parent.mkdir(parents=True, exist_ok=True)
        one.touch()
    link = home / "Downloads" / "sales" / "data.csv"
    link.symlink_to(os.path.relpath(home / target, link.parent))
    (tmp_path / "me").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / start)

    for named in (tmp_path / "me" / "Downloads" / "sales" / "data.csv", Path(os.path.relpath(link, home / start))):
        if target in SHOWN:
            assert checked_inputs([named], {}) == [named]
        else:
            with pytest.raises(
                ConfigError, match=rf"a link to {home / target}, which is hidden or named like a secret"
            ):
                checked_inputs([named], {})
    assert checked_inputs([home / target], {}) == [home / target]


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="only Linux shows a program's variables so")
@pytest.mark.parametrize("target", ["/proc/self/environ", "/proc/self/task/../environ", "/proc/self/fd/0"])
def test_no_link_leads_to_what_this_program_holds(tmp_path, target):
    (tmp_path / "data.csv").symlink_to(target)

    with pytest.raises(ConfigError, match=r"data\.csv: (a link to /proc/\d+/\S+, which is of the system|not a file)"):
        checked_inputs([tmp_path / "data.csv"], {})


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="only Linux has a folder in memory there")
def test_a_folder_in_memory_is_a_folder_of_data(tmp_path):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        Path(memory, "sales.csv").touch()
        (tmp_path / "data.csv").symlink_to(Path(memory, "sales.csv"))

        assert checked_inputs([tmp_path / "data.csv"], {}) == [tmp_path / "data.csv"]


def test_a_url_is_no_file_and_says_so():
    with pytest.raises(ConfigError, match=r"https://x\.org/a\.csv: a URL; download it, and name the file"):
        checked_inputs("https://x.org/a.csv", {})


def test_a_folder_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(
        ConfigError, match=r"a folder; settings={'kernel\.read': \['.*'\]} lets code read a whole folder"
    ):
        checked_inputs([tmp_path], {})


LINKS = {
    "a link to a file outside": ("out.csv", False),
    "a link in a folder below": ("sub/out.csv", False),
    "a folder that is a link": ("linked/other.csv", False),
    "the same by its whole path": ("{here}/out.csv", False),
    "a link within the folder": ("within.csv", True),
    "a link elsewhere": ("{elsewhere}/link.csv", True),
    "a file that is no link": ("sub/data.csv", True),
}


@pytest.mark.parametrize(("name", "passes"), LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("way", ["nobody has named or trusted the folder", "trusted", "named"])
def test_a_link_out_of_a_folder_that_is_not_trusted_is_not_read(name, passes, way, tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (here / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    for one in (elsewhere / "other.csv", here / "sub/data.csv"):
        one.write_text("canary\n1\n", encoding="utf-8")
    for link, target in (("here/out.csv", "elsewhere/other.csv"), ("here/sub/out.csv", "elsewhere/other.csv"),
                         ("here/linked", "elsewhere"), ("here/within.csv", "here/sub/data.csv"),
                         ("elsewhere/link.csv", "elsewhere/other.csv")):  # fmt: skip
        (tmp_path / link).symlink_to(tmp_path / target)
    monkeypatch.chdir(here)
    path = name.format(here=here, elsewhere=elsewhere)
    passes = passes or way != "nobody has named or trusted the folder"
    settings = read_settings({"session.workspace": str(tmp_path / "ws")}, trust=way == "trusted",
                             project=here if way == "named" else None)  # fmt: skip
    with (
        ScriptedModel([plans("Read.", to="User")] * passes) as model,
        open_session(kernel=FakeKernel(folder=tmp_path / "kernel"), settings=settings, model=model) as session,
    ):
        if passes:
            session.ask("look", files=[path])
            assert "canary" in str(model.calls)
        else:
            with pytest.raises(ConfigError, match=r"out of .*here, which is not trusted, to .*other\.csv; name"):
                session.ask("look", files=[path])


def test_files_may_be_given_by_a_generator(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")

    with open_session(ScriptedModel([plans("1", to="User")]), folder=tmp_path / "work", kernel=None) as session:
        session.ask("sum them", files=tmp_path.glob("*.csv"))

        assert (session.folder / "a.csv").read_text(encoding="utf-8") == "x\n1\n"


def test_a_file_that_is_given_again_is_copied_again_only_if_it_or_its_copy_has_changed(tmp_path):
    given = tmp_path / "a.csv"
    given.write_text("x\n1\n", encoding="utf-8")
    model = ScriptedModel([plans("1", to="User")] * 5)
    with open_session(model, folder=tmp_path / "work", kernel=None) as session:
        copy, inodes = session.folder / "a.csv", []
        for happens in (lambda: None, lambda: None, lambda: given.write_text("x\n23\n"), lambda: copy.unlink()):
            happens()
            session.ask("sum it", files=given)
            inodes.append(copy.stat().st_ino)
            assert copy.read_text(encoding="utf-8") == given.read_text(encoding="utf-8")
            assert not copy.stat().st_mode & 0o222
        copy.chmod(0o600)
        copy.write_text("of code", encoding="utf-8")
        session.ask("sum it", files=given)

        assert copy.read_text(encoding="utf-8") == "x\n23\n"
    assert inodes[0] == inodes[1] != inodes[2]


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use can't be removed there")
def test_folders_that_are_gone_are_named(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    gone = tmp_path / "gone"
    gone.mkdir()
    settings = read_settings()
    with open_session(ScriptedModel([]), folder=tmp_path / "work", kernel=None) as session:
        monkeypatch.chdir(gone)
        gone.rmdir()
        with pytest.raises(ConfigError, match="the current folder is gone"):
            session.ask("sum", files=tmp_path / "a.csv")
        with pytest.raises(ConfigError, match="the current folder is gone"):
            open_session(ScriptedModel([]), folder=tmp_path / "other", kernel=None)
        with pytest.raises(ConfigError, match="the current folder is gone"):
            open_session(ScriptedModel([]), folder=tmp_path / "other", settings=settings)
        monkeypatch.chdir(tmp_path)
        session.folder.rmdir()
        with pytest.raises(ConfigError, match=r"a\.csv: can't be put into the working folder: No such file"):
            session.ask("sum", files=tmp_path / "a.csv")


def test_code_and_models_see_both_files_of_one_name(tmp_path):
    for folder in ("north", "south"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "Alabama.csv").write_text(f"{folder}ern;x\n1;2,5\n", encoding="utf-8")
    given = [tmp_path / "north" / "Alabama.csv", tmp_path / "south" / "Alabama.csv", tmp_path / "north" / "Alabama.csv"]
    with ScriptedModel([plans("Two.", to="User"), plans("One.", to="User")]) as model, ScriptedModel([]) as coder:
        worker = CodeInterpreter(coder, FakeKernel([], folder=tmp_path))
        with Session([Planner(model, [worker]), worker], folder=tmp_path / "session") as session:
            session.ask("compare", files=given)
            found = {path.name: path.read_text(encoding="utf-8") for path in session.folder.glob("*.csv")}
            session.ask("and again", files=given[:1])

    told = model.calls[0][-1]["content"]
    assert set(found) == {"north_Alabama.csv", "south_Alabama.csv"}
    assert "southern" in found["south_Alabama.csv"]
    assert told.count("- north_Alabama.csv: ") == 1
    assert "pd.read_csv('south_Alabama.csv', sep=';'" in told
    assert "- Alabama.csv: " in model.calls[1][-1]["content"]


def test_a_later_file_of_the_same_name_replaces_no_other_ones_copy(tmp_path):
    files = {name: tmp_path / name / "a.csv" for name in ("north", "south")}
    for name, path in files.items():
        path.parent.mkdir()
        path.write_text(f"{name}\n1\n", encoding="utf-8")
    model = ScriptedModel([plans("Read.", to="User")] * 5)
    with Session([Planner(model)], folder=tmp_path / "session") as session:

        def ask(path):
            session.ask("look", files=[path])
            return {one.name: one.read_text(encoding="utf-8").split()[0] for one in session.folder.iterdir()}

        assert ask(files["north"]) == {"a.csv": "north"}
        assert ask(files["south"]) == {"a.csv": "north", "south_a.csv": "south"}
        assert "- south_a.csv: " in model.calls[-1][-1]["content"]
        files["north"].write_text("new\n1\n", encoding="utf-8")
        assert ask(files["north"]) == {"a.csv": "new", "south_a.csv": "south"}
        files["south"].write_text("newer\n1\n", encoding="utf-8")
        assert ask(files["south"]) == {"a.csv": "new", "south_a.csv": "newer"}
        assert ask(session.folder / "a.csv") == {"a.csv": "new", "south_a.csv": "newer"}


def test_what_is_exchanged_for_a_link_after_the_check_is_not_copied_from_a_folder_that_is_not_trusted(tmp_path):
    here, folder, secret = tmp_path / "here", tmp_path / "session", tmp_path / "secret.csv"
    here.mkdir()
    folder.mkdir()
    secret.write_text("SECRET")
    (here / "data.csv").write_text("x")
    with SafeFolder(here) as opened:
        paths = checked_inputs(here / "data.csv", {}, distrusted=[opened])
        (here / "data.csv").unlink()
        (here / "data.csv").symlink_to(secret)

        with pytest.raises(ConfigError, match=r"data\.csv: a link out of"):
            place_inputs(paths, folder, lambda path: False, distrusted=[opened])
    assert list(folder.iterdir()) == []


def test_a_link_within_a_folder_that_is_not_trusted_is_followed(tmp_path):
    here, folder = tmp_path / "here", tmp_path / "session"
    here.mkdir()
    folder.mkdir()
    (here / "real.csv").write_text("rows")
    (here / "data.csv").symlink_to("real.csv")

    with SafeFolder(here) as opened:
        paths = checked_inputs(here / "data.csv", {}, distrusted=[opened])

        assert place_inputs(paths, folder, lambda path: False, distrusted=[opened])[0].read_text() == "rows"


@pytest.mark.parametrize("mark", [False, True])
def test_a_file_that_is_too_large_to_be_copied_is_refused_before_a_byte_of_it_is_written(tmp_path, mark):
    """A few bytes on the disk can stand for many; from a folder that looks like a session's files are always copied."""
    folder, users = tmp_path / "session", tmp_path / "users"
    (users / "files").mkdir(parents=True)
    folder.mkdir()
    with open(users / "files/big.csv", "wb") as file:
        file.truncate(200 << 30)
    if mark:
        (users / "events.jsonl").write_text('{"seq": 0, "event": "SessionOpened"}', encoding="utf-8")

    with pytest.raises(
        ConfigError, match=r"big\.csv: can't be put into the working folder: File too large; let code read"
    ):
        place_inputs([users / "files/big.csv"], folder, lambda path: mark)

    assert list(folder.iterdir()) == []


SIZES = {
    "together too long": (
        {"a.csv": 700 << 10, "b.csv": 700 << 10},
        1,
        "'a.csv', 'b.csv': 2 MB together, and at most 1",
    ),
    "by length, not by what they take": ({f"{n}.csv": 1000 << 20 for n in range(5)}, 4096, "5000 MB together, .* 4096"),
    "short enough": ({"a.csv": 500 << 10, "b.csv": 500 << 10}, 1, ""),
    "no limit": ({"a.csv": 700 << 10, "b.csv": 700 << 10}, 0, ""),
    "one that lies there already": ({"a.csv": 700 << 10, "own/b.csv": 700 << 10}, 1, ""),
    "one that code reads at its place": ({"a.csv": 700 << 10, "big.csv": 60 << 20}, 1, ""),
}


@pytest.mark.parametrize("case", SIZES)
def test_the_copies_for_one_request_are_bounded_together_before_the_first_is_made(tmp_path, case):
    files, limit_mb, problem = SIZES[case]
    own = tmp_path / "own"
    own.mkdir()
    for name, size in files.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    before = sorted(own.iterdir())
    paths = checked_inputs([tmp_path / name for name in files], {})

    if problem:
        with pytest.raises(ConfigError, match=rf"{problem} MB \(kernel\.disk_mb\) are copied .*give fewer"):
            place_inputs(paths, own, lambda path: False, limit_mb=limit_mb)
        assert sorted(own.iterdir()) == before
    else:
        placed = place_inputs(paths, own, lambda path: path.name == "big.csv", limit_mb=limit_mb)
        assert [one.name for one in placed] == [Path(name).name for name in files]
        assert all(one.parent == own for one in placed if one.name != "big.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without FIFOs")
def test_what_is_exchanged_for_a_pipe_after_the_check_is_not_waited_for(tmp_path):
    (tmp_path / "s").mkdir()
    os.mkfifo(tmp_path / "a.csv")

    with pytest.raises(ConfigError, match=r"a\.csv: can't be read: it is no plain file"):
        opened_as_given(tmp_path / "a.csv", tmp_path / "s")


def test_a_request_of_any_length_is_refused_before_anything_runs():
    with ScriptedModel([]) as model, Session([Planner(model, [])]) as session:
        with pytest.raises(ConfigError, match=r"the request has 1,000,001 characters, over 1,000,000; give data as a "):
            session.ask("z" * 1_000_001)

        assert session.rounds == []
