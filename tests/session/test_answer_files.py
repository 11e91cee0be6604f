"""Files of an answer are copied to where the user is: those that are named, never over a file or through a link."""

import os
import re
import stat
import sys
import time
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.conversation import Round, folders_named
from tw_autogen.errors import ConfigError
from tw_autogen.events import HooksMade, SessionClosed
from tw_autogen.kernel import Artifact, Execution, KernelSettings
from tw_autogen.model import Usage
from tw_autogen.safe_folder import SafeFolder, is_protected
from tw_autogen.session import Answer, AnswerFiles, Session, answer_files
from tw_autogen.session.answer_files import save_files
from tw_autogen.session.export import export_session
from tw_autogen.session.notebook_export import write_notebook
from tw_autogen.session.path_grants import Grants
from tw_autogen.testing import FakeKernel, ScriptedModel
from tw_autogen.trusted_files import guard_imports

NAMED = [
    ("chart.png", "plot it, save as chart.png"),
    ("chart.png", "save 'chart.png'."),
    ("chart.png", "Save as Chart.PNG, please"),
    ("my chart.png", "save as my chart.png"),
    ("a.csv.gz", "pack it into a.csv.gz"),
    ("chart.png", "save as ./chart.png"),
    ("图表.png", "保存为 图表.png"),
    ("结果.csv", "把结果保存为结果.csv，并画图保存为图.png。"),
    ("图.png", "把结果保存为结果.csv，并画图保存为图.png。"),
    ("결과.csv", "결과를 결과.csv로 저장해"),
    ("Ergebnis.csv", "Lege eine Ergebnis.csv-Datei an"),
    ("Ergebnis neu.xlsx", "Schreib es nach „Ergebnis neu.xlsx“."),
]
NOT_NAMED = [
    ("chart.png", "plot it"),
    ("chart.png", "see barchart.png"),
    ("chart.png", "see chart.png.bak"),
    ("chart.png", "see /data/chart.png"),
    ("chart.png", "chart.pngs"),
    ("a.csv", "read data.a.csv"),
    ("clean.py", "write clean.py"),
    ("run.sh", "write run.sh"),
    (".env", "write .env"),
    (".hidden.csv", "write .hidden.csv"),
    ("conftest.py", "write conftest.py"),
    ("package.json", "write package.json"),
    ("CLAUDE.md", "write CLAUDE.md"),
    ("mcp.json", "write mcp.json"),
    ("deno.json", "write deno.json"),
    ("x.pkl", "write x.pkl"),
]


@pytest.fixture
def made(tmp_path):
    """Give what makes files of an answer: names to artifacts."""
    folder = tmp_path.resolve() / "session"
    folder.mkdir()

    def make(*names, text=""):
        found = []
        for name in names:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text or f"made: {name}", encoding="utf-8")
            path.chmod(0o600)
            found.append(Artifact(path.name, "file", path))
        return found

    return make


LIMITS = {
    "one too large": ((5,), 4, [False]),
    "too much together": ((3, 3, 1), 4, [True, False, True]),
    "just fitting": ((2, 2), 4, [True, True]),
    "no limit": ((5,), 0, [True]),
}


@pytest.mark.parametrize(("sizes", "limit_mb", "copied"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("way", ["save_files", "--out"])
def test_files_that_take_no_room_are_copied_up_to_what_they_seem_to_take(sizes, limit_mb, copied, way, made, tmp_path):
    artifacts, target = made(*(f"{number}.csv" for number, _ in enumerate(sizes))), tmp_path / "out"
    for artifact, size in zip(artifacts, sizes, strict=True):
        os.truncate(artifact.path, size << 20)
    if way == "--out":
        saved = AnswerFiles(tmp_path, out=target, limit_mb=limit_mb).land(artifacts, "")
    else:
        saved = save_files(artifacts, target, limit_mb=limit_mb)

    assert [one.path is not None for one in saved] == copied
    assert sorted(path.name for path in target.iterdir()) == [one.source.name for one in saved if one.path]
    said = r"\d\.csv: \d MB, and of the 4 MB that an answer's files may take together \(kernel\.disk_mb\) \d are left"
    assert all(re.fullmatch(said, one.problem) for one in saved if one.path is None)


@pytest.fixture
def target(tmp_path):
    folder = tmp_path.resolve() / "mine"
    folder.mkdir()
    return folder


def answer(artifacts):
    return Answer("done", tuple(artifacts), "Completed", Usage(), Round("q"))


def test_a_home_folder_is_written_as_a_tilde(made, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "session")

    assert answer(made("a.csv")).save_files("~/out") == [tmp_path / "out" / "a.csv"]


@pytest.mark.parametrize(("name", "text"), NAMED)
def test_a_plain_name_in_the_users_words_names_a_document(name, text):
    assert "" in folders_named(name, text)


@pytest.mark.parametrize(("name", "text"), NOT_NAMED)
def test_other_words_and_files_that_programs_obey_name_none(name, text):
    assert "" not in folders_named(name, text)


def test_only_named_files_land_where_the_user_is(made, target):
    landing = AnswerFiles(target)

    saved = landing.land(made("chart.png", "scratch.csv", "sub/odd.csv"), "save chart.png and odd.csv")

    assert [one.path for one in saved] == [target / "chart.png", target / "odd.csv"]
    assert sorted(os.listdir(target)) == ["chart.png", "odd.csv"]


def test_a_named_file_of_another_kind_is_said_not_to_be_saved(made, target):
    landing = AnswerFiles(target)

    saved = landing.land(
        made("run.py", "a.csv", "other.py", "b.xls"), "as run.py, with a.csv and b.xls; see another.py"
    )

    assert [(one.path, one.problem.partition(";")[0]) for one in saved] == [
        (target / "a.csv", ""),
        *(
            (None, f"{name}: only data, pictures and documents are copied to {target}, and none that may hold macros")
            for name in ("b.xls", "run.py")
        ),
    ]
    assert [one.source.name for one in landing.land(made("b.sh"), "make b.sh")] == ["b.sh"]


@pytest.mark.parametrize(
    ("users", "name", "holds"),
    [
        ("left alone", "chart.png", {"chart.png": "red"}),
        ("changed", "chart (2).png", {"chart.png": "mine", "chart (2).png": "red"}),
        ("replaced", "chart (2).png", {"chart.png": "blue", "chart (2).png": "red"}),
        ("removed", "chart.png", {"chart.png": "red"}),
        ("changed meanwhile", "chart (2).png", {"chart.png": "mine", "chart (2).png": "red"}),
    ],
)
@pytest.mark.parametrize("turn", ["this answer", "earlier"])
def test_a_copied_file_that_code_changed_again_replaces_its_copy(users, name, holds, turn, made, target, monkeypatch):
    landing = AnswerFiles(target)
    first = made("chart.png", text="blue")
    assert [one.path for one in landing.land(first, "save it as chart.png")] == [target / "chart.png"]
    if users == "changed":
        (target / "chart.png").write_text("mine", encoding="utf-8")
    elif users == "replaced":
        (target / "new").write_text("blue", encoding="utf-8")
        (target / "new").replace(target / "chart.png")
    elif users == "removed":
        (target / "chart.png").unlink()
    changed = made("chart.png", "scratch.csv", text="red")
    os.utime(changed[0].path, ns=(1, 1))

    copy = answer_files._copy

    def copied_slowly(given, folder, name, size):
        copy(given, folder, name, size)
        if name.endswith(".part"):
            (target / "chart.png").write_text("mine", encoding="utf-8")

    if users == "changed meanwhile":
        monkeypatch.setattr(answer_files, "_copy", copied_slowly)
    given = (changed, ()) if turn == "this answer" else ([], first)
    saved = landing.land(given[0], "make it red", earlier=given[1])

    assert [one.path for one in saved] == [target / name]
    assert {path.name: path.read_text(encoding="utf-8") for path in target.iterdir()} == holds
    assert landing.saved_as(changed[0].path) == target / name
    assert landing.land(changed, "and now?") == []


@pytest.mark.parametrize("left", [False, True], ids=["removed", "changed"])
def test_what_replaces_a_copy_that_the_user_has_changed_or_removed_is_copied_to_the_same_folder(left, made, target):
    landing = AnswerFiles(target)
    landing.land(made("chart.png", text="blue"), "save it as out/chart.png")
    if left:
        (target / "out" / "chart.png").write_text("mine", encoding="utf-8")
    else:
        (target / "out" / "chart.png").unlink()

    changed = made("chart.png", text="a red one")
    saved = landing.land(changed, "make it red")

    assert [one.path for one in saved] == [target / "out" / ("chart (2).png" if left else "chart.png")]
    assert sorted(os.listdir(target)) == ["out"]


PLACES = {
    "made there": ("out/msft.csv", "Save it in a subfolder: out/msft.csv", "out/msft.csv"),
    "made under its plain name": ("msft.csv", "save it as ./out/deep/msft.csv.", "out/deep/msft.csv"),
    "taken": ("taken/msft.csv", "save it as taken/msft.csv", "taken/msft (2).csv"),
    "only read": ("msft.csv", "read taken/msft.csv", None),
    "above": ("msft.csv", "save it as ../msft.csv", None),
    "elsewhere": ("msft.csv", "save it as /tmp/msft.csv", None),
    "at home": ("msft.csv", "save it as ~/out/msft.csv", None),
    "above, later": ("msft.csv", "save it as out/../../msft.csv", None),
    "hidden": ("msft.csv", "save it as .git/msft.csv", None),
    "hidden, later": ("msft.csv", "save it as out/.git/msft.csv", None),
    "an address": ("msft.csv", "read https://host/out/msft.csv", None),
}


@pytest.mark.parametrize(("made_as", "text", "place"), PLACES.values(), ids=PLACES)
def test_a_file_named_in_a_subfolder_lands_there(made_as, text, place, made, target):
    (target / "taken").mkdir()
    (target / "taken" / "msft.csv").write_text("mine", encoding="utf-8")

    saved = AnswerFiles(target).land(made(made_as), text)

    assert [one.path for one in saved] == ([target / place] if place else [])
    assert (target / "taken" / "msft.csv").read_text(encoding="utf-8") == "mine"
    assert len([path for path in target.parent.rglob("msft*.csv") if path.is_file()]) == 2 + bool(place)


@pytest.mark.parametrize("folder", ["link", "venv", "file"])
def test_a_subfolder_that_is_a_link_or_obeyed_gets_no_file(folder, made, target):
    elsewhere = target.parent / "elsewhere"
    elsewhere.mkdir()
    (target / "link").symlink_to(elsewhere)
    (target / "file").write_text("x", encoding="utf-8")

    (saved,) = AnswerFiles(target).land(made(f"{folder}/msft.csv"), f"save it as {folder}/msft.csv")

    assert saved.path is None
    assert saved.problem
    assert os.listdir(elsewhere) == []


def test_nothing_is_written_over_and_the_mode_is_that_of_any_new_file(made, target):
    (target / "chart.png").write_text("mine", encoding="utf-8")
    (target / "a.csv.gz").write_text("mine", encoding="utf-8")
    before = os.umask(0o022)
    try:
        paths = answer(made("chart.png", "a.csv.gz")).save_files(target)
        more = answer(made("chart.png")).save_files(str(target))
    finally:
        os.umask(before)

    assert [one.name for one in (*paths, *more)] == ["chart (2).png", "a (2).csv.gz", "chart (3).png"]
    assert (target / "chart.png").read_text(encoding="utf-8") == "mine"
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o644


def test_a_second_copy_of_a_long_name_is_shortened_by_bytes(made, target):
    name = f"{'データ' * 27}デ.csv.gz"  # 253 of 255 bytes
    (first,), (second,) = (answer(made(name)).save_files(target) for _ in range(2))

    assert (first.name, second.name) == (name, f"{'データ' * 27} (2).csv.gz")


def test_no_link_is_followed_on_either_side(made, target, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("secret", encoding="utf-8")
    (made_file,) = made("odd.csv")
    made_file.path.unlink()
    made_file.path.symlink_to(secret)
    (target / "chart.png").symlink_to(tmp_path / "elsewhere.png")  # dangling

    saved = AnswerFiles(target).land([made_file, *made("chart.png")], "save odd.csv and chart.png")

    assert (saved[0].path, "link" in saved[0].problem) == (None, True)
    assert saved[1].path == target / "chart (2).png"
    assert not (tmp_path / "elsewhere.png").exists()
    assert not (target / "odd.csv").exists()


@pytest.mark.parametrize("name", ["results", "results/deeper", "sub/../results/deeper"])
@pytest.mark.parametrize("absolute", [False, True])
def test_no_link_below_the_current_folder_leads_the_landing_elsewhere(made, target, monkeypatch, name, absolute):
    elsewhere = target.parent / "elsewhere"
    elsewhere.mkdir()
    (target / "results").symlink_to(elsewhere)
    monkeypatch.chdir(target)
    out = target / name if absolute else Path(name)

    (saved,) = AnswerFiles(Path(), out=out).land(made("chart.png"), "plot")
    with pytest.raises(PermissionError, match="results is a link"):
        answer(made("chart.png")).save_files(out)

    assert saved.path is None
    assert f"{target}/results is a link" in saved.problem
    assert os.listdir(elsewhere) == []


def test_the_last_component_is_held_everywhere_and_all_below_a_folder_that_code_may_write_to(made, target, monkeypatch):
    elsewhere = target.parent / "elsewhere"
    elsewhere.mkdir()
    (target / "results").symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="results is a link"):
        save_files(made("chart.png"), target / "results")
    (saved,) = AnswerFiles(Path(), out=target / "results" / "deeper", project=target).land(made("chart.png"), "plot")
    assert "results is a link" in saved.problem
    monkeypatch.setattr("tw_autogen.safe_folder.open_without_links.KERNEL_FOLDERS", {target})
    with pytest.raises(PermissionError, match="results is a link"):
        save_files(made("chart.png"), target / "results" / "deeper")

    assert os.listdir(elsewhere) == []


def test_a_users_own_links_above_are_followed(made, target, monkeypatch):
    home = target.parent / "home"
    home.symlink_to(target)
    monkeypatch.chdir(home)

    paths = [save_files(made("chart.png"), home / "a" / one)[0].path for one in ("b", "")]
    (outside,) = save_files(made("chart.png"), Path("..", "home", "c"))

    assert paths == [home / "a" / "b" / "chart.png", home / "a" / "chart.png"]
    assert (target / "a" / "b" / "chart.png").is_file()
    assert (target / "c" / "chart.png").is_file()
    assert outside.path is not None


def test_the_folder_of_the_user_is_the_one_that_it_was(made, target):
    landing = AnswerFiles(target)
    elsewhere = target.parent / "elsewhere"
    elsewhere.mkdir()
    target.rename(target.parent / "moved")
    target.symlink_to(elsewhere)

    (saved,) = landing.land(made("chart.png"), "save chart.png")

    assert (saved.path, os.listdir(elsewhere)) == (None, [])


@pytest.mark.parametrize("saved_before", [False, True])
@pytest.mark.parametrize("name", ["out", "../beside", "deep/er/out"])
def test_out_is_reached_over_no_link_that_comes_when_the_current_folder_is_moved(
    made, target, monkeypatch, name, saved_before
):
    """Plays what code of another process's kernel, which may write above the current folder, can do meanwhile."""
    above, elsewhere = target / "sub", target.parent / "elsewhere"
    (above / "docs").mkdir(parents=True)
    (elsewhere / "docs").mkdir(parents=True)
    monkeypatch.chdir(above / "docs")
    landing = AnswerFiles(Path(), out=Path(name))
    if saved_before:
        (first,) = landing.land(made("chart.png"), "plot")
        assert first.path == Path(os.path.abspath(name)) / "chart.png"
    above.rename(target / "moved")
    above.symlink_to(elsewhere)

    (saved,) = landing.land(made("other.png"), "plot")

    assert saved.path is None
    assert f"{above} is a link, which code may have made" in saved.problem
    assert os.listdir(elsewhere) == ["docs"]
    assert os.listdir(elsewhere / "docs") == []


def test_a_copy_is_made_anew_when_its_folder_is_moved_while_it_is_looked_for(made, target, monkeypatch):
    landing = AnswerFiles(target, out=target / "out")
    landing.land(made("chart.png"), "plot")
    files, named = made("chart.png", text="changed"), SafeFolder.name_of
    looks = []
    monkeypatch.setattr(
        SafeFolder, "name_of",
        lambda self, path: "" if str(path).endswith("chart.png") and looks.append(1) is None and len(looks) > 1
        else named(self, path),
    )  # fmt: skip

    (saved,) = landing.land(files, "plot")

    assert saved.path == target / "out" / "chart (2).png"


def test_a_link_above_out_is_followed_once(made, target, monkeypatch):
    home, other = target.parent / "home", target.parent / "other"
    other.mkdir()
    home.symlink_to(target)
    landing = AnswerFiles(Path(), out=home / "new" / "out")
    home.unlink()
    home.symlink_to(other)

    (saved,) = landing.land(made("chart.png"), "plot")

    assert saved.path == home / "new" / "out" / "chart.png"
    assert (target / "new" / "out" / "chart.png").is_file()
    assert os.listdir(other) == []


def test_names_that_programs_obey_are_saved_nowhere(made, target, caplog):
    names = ("conftest.py", "Makefile", "x.pth", "tw_autogen.yaml", "Report.desktop", "uv.toml", "note.txt", "clean.py",
             "jupyter_server_config.py", "jupyter_config.json", "Pipfile", "--checkpoint-action=exec=sh m.csv",
             "Directory.Build.props", "App.csproj", "libz.so.1",
             "-", "a\x1b[2J.csv", "\u202evsc.txt", "two\nlines.csv")  # fmt: skip

    paths = answer(made(*names)).save_files(target / "new" / "folder")

    assert [path.name for path in paths] == ["note.txt", "clean.py"]
    assert "conftest.py: programs run or obey files of this name" in caplog.text
    assert all(map(is_protected, names[:6]))


def test_a_python_module_is_not_saved_beside_a_plugin_that_was_loaded(made, target):
    (target / "code").mkdir()
    guard_imports(target / "code", None)
    (module,) = made("helper.py")

    (saved,) = save_files([Artifact("helper.py", "file", module.path)], target / "code")

    assert "helper.py: Python imports modules from" in saved.problem


@pytest.mark.parametrize("way", ["current", "on the path", "elsewhere", "out", "grant"])
def test_a_python_module_is_saved_nowhere_that_python_imports_from(made, target, monkeypatch, way):
    (target / "sub").mkdir()
    monkeypatch.chdir(target if way != "on the path" else target / "sub")
    monkeypatch.setattr(sys, "path", [*sys.path, str(target)] if way == "on the path" else sys.path)
    files = made("pandas.py", "markdown_it.pyc", "json.pyd", "run.sh")

    if way in ("out", "grant"):
        landing = AnswerFiles(target, out=Path("sub/..") if way == "out" else None)
        landing.grant(always=True)
        saved = landing.land(files, "make a module")
    else:
        saved = save_files(
            [Artifact(file.name, "file", file.path) for file in files],
            target / "sub" / ".." if way != "elsewhere" else target / "sub",
        )

    kept = [one.path.name for one in saved if one.path]
    assert kept == ([file.name for file in files] if way == "elsewhere" else ["run.sh"])
    assert way == "elsewhere" or "pandas.py: Python imports modules from" in saved[0].problem


@pytest.mark.parametrize("way", ["save", "out", "export", "notebook"])
def test_nothing_is_written_over_a_link_to_a_hidden_folder(made, tmp_path, monkeypatch, way):
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    (home / ".ipython" / "startup").mkdir(parents=True)
    (home / "Downloads").mkdir()
    (home / "Downloads" / "results").symlink_to(home / ".ipython")
    place = home / "Downloads" / "results" / "startup"

    chart = [Artifact(one.name, "file", one.path) for one in made("chart.png")]
    write = {
        "save": lambda: save_files(chart, place),
        "out": lambda: AnswerFiles(home, out=place),
        "export": lambda: export_session(tmp_path, place / "x.py"),
        "notebook": lambda: write_notebook([], place / "x.ipynb"),
    }

    with pytest.raises(ConfigError, match=r"results/startup: a link to .*\.ipython/startup, which is hidden"):
        write[way]()
    assert os.listdir(home / ".ipython" / "startup") == []


def test_out_and_a_grant_take_all_files_and_an_unchanged_one_is_copied_once(made, target, tmp_path):
    files = made("chart.png", "clean.py")
    out = AnswerFiles(target, out=tmp_path / "out")
    granted = AnswerFiles(target)

    assert [one.path.name for one in out.land(files, "plot")] == ["chart.png", "clean.py"]
    assert "saved in" not in granted.sentence
    granted.grant(always=False)
    assert "saved in" in granted.sentence
    assert [one.path.name for one in granted.land(files, "plot")] == ["chart.png", "clean.py"]
    granted.begin_request()
    assert granted.land([], "and chart.png?", earlier=files) == []
    assert granted.land(made("other.csv"), "again", earlier=files) == []
    granted.grant(always=True)
    granted.begin_request()
    assert [one.path.name for one in granted.land(made("other.csv"), "again", earlier=files)] == ["other.csv"]
    assert sorted(os.listdir(target)) == ["chart.png", "clean.py", "other.csv"]


def test_a_folder_that_cannot_be_written_to_is_told_and_no_error(made, target):
    (target / "file").write_text("x", encoding="utf-8")

    (saved,) = AnswerFiles(target, out=target / "file" / "below").land(made("chart.png"), "chart.png")

    assert saved.path is None
    assert "below" in saved.problem


def test_new_hooks_in_a_granted_folder_are_named_once(target):
    (target / "conftest.py").touch()
    (target / "pkg").mkdir()
    grants = Grants(KernelSettings(write=(str(target),)))
    assert grants.take_new_hooks() == [str(target / "conftest.py")]
    for name in ("pkg/sitecustomize.py", ".envrc", "data.csv"):
        (target / name).touch()

    assert grants.take_new_hooks() == [str(target / ".envrc"), str(target / "pkg" / "sitecustomize.py")]
    assert grants.take_new_hooks() == []
    assert Grants().take_new_hooks() == []


@pytest.mark.parametrize(("granted", "may"), [("", True), ("inner", False), ("..", True)])
def test_code_may_write_in_a_folder_that_is_granted_whole(granted, may, target):
    (target / "inner").mkdir()

    assert Grants(KernelSettings(write=(str(target / granted),))).may_write(str(target)) is may


def test_of_very_many_new_hooks_their_folder_is_named_once(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "conftest.py").touch()
    grants = Grants(KernelSettings(write=(str(target),)))
    assert grants.take_new_hooks() == [str(target / "conftest.py")]
    for number in range(500):
        (target / f"{number}.pth").touch()

    assert grants.take_new_hooks() == [str(target)]
    (target / "0.pth").unlink()
    assert len(grants.take_new_hooks()) == 499


LATE = """
import os, threading, time

def wait_and_write():
    while not os.path.exists({go!r}):
        time.sleep(0.01)
    open({hook!r}, "w").write("x")

threading.Thread(target=wait_and_write).start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no code runs there in a sandbox")
def test_a_hook_that_a_thread_of_code_makes_after_the_last_answer_is_named_at_the_end(target, tmp_path):
    target.chmod(0o777)  # as root code runs as another user
    hook, events = target / "conftest.py", []
    settings = {"kernel.write": str(target)}
    with open_session(ScriptedModel([]), folder=tmp_path / "s", settings=settings, handlers=[events.append]) as session:
        session.run_code(LATE.format(go=str(target / "go"), hook=str(hook)))
        (target / "go").touch()
        deadline = time.monotonic() + 30
        while not hook.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not [event for event in events if isinstance(event, HooksMade)]

    assert events[-2:] == [HooksMade(session.rounds[-1].id, [str(hook)]), SessionClosed(session.id)]


def test_hooks_are_looked_for_after_the_end_of_what_a_session_owns(target, tmp_path):
    class LastWords:
        def close(self):
            (target / "conftest.py").touch()

    events = []
    grants = Grants(KernelSettings(write=(str(target),)))
    role = CodeInterpreter(ScriptedModel([]), FakeKernel([Execution(True)]))
    session = Session([role], folder=tmp_path / "s", handlers=[events.append], owned=[LastWords()], grants=grants)
    session.run_code("1")
    session.close()

    assert [event.paths for event in events if isinstance(event, HooksMade)] == [[str(target / "conftest.py")]]
