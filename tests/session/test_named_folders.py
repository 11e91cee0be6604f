"""Folders that the user names for kernels and sessions lead over no link that code, or a stranger, has made."""

import contextlib
import functools
import os
from pathlib import Path

import pytest

from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.hosts.conversable import KernelCodeExecutor
from tw_autogen.kernel import KernelSettings, LocalKernel
from tw_autogen.named_folders import named_file, named_folder
from tw_autogen.recall import DocumentIndex
from tw_autogen.safe_folder import SafeFolder, open_or_make_folder
from tw_autogen.session import checked_opening, read_settings, request_inputs
from tw_autogen.session.answer_files import AnswerFiles
from tw_autogen.session_layout import is_working_folder
from tw_autogen.testing import FakeKernel, ScriptedModel, plans
from tw_autogen.trust_store import over_no_link, read_regular


def kernel(folder, **settings):
    with LocalKernel(folder, settings=KernelSettings(**settings)) as opened:
        return opened.folder


def executor(folder, *, trust=False, **settings):
    settings = {f"kernel.{key}": value for key, value in settings.items()}
    with KernelCodeExecutor(folder=folder, trust=trust, settings=settings) as opened:
        return opened.work_dir


def session(folder, *, trust=False, **settings):
    settings = {f"kernel.{key}": value for key, value in settings.items()}
    roles, code = "code_interpreter", FakeKernel()
    with open_session(ScriptedModel([]), roles=roles, kernel=code, folder=folder, trust=trust, settings=settings) as it:
        return it.journal.parent.parent


def workspace(folder, *, trust=False, **settings):
    settings = {f"kernel.{key}": value for key, value in settings.items()} | {"session.workspace": str(folder)}
    with KernelCodeExecutor(trust=trust, settings=settings) as opened:
        return opened.work_dir.parent


OPENED = {"kernel": kernel, "executor": executor, "session": session, "workspace": workspace}
LINKS = {
    "the last": ({"work/part": "../private"}, "work/part", "work/part"),
    "one above": ({"work/way": "../private"}, "work/way/new", "work/way"),
    "the second of two": ({"work/way": "../private", "own": "work/way"}, "own/new", "work/way"),
    "one above a folder left again": ({"work/way": "../private/inner"}, "work/way/../new", "work/way"),
    "one that leads nowhere yet": ({"work/part": "../private/missing"}, "work/part", "work/part"),
    "one that stays": ({"work/part": "stays"}, "work/part", ""),
    "one of the user's above": ({"own": "work"}, "own/stays", ""),
}


@pytest.fixture
def place(here):
    place = here.parent / "place"
    for one in ("work/stays", "private/inner"):
        (place / one).mkdir(parents=True)
    for path in (here.parent, *here.parent.rglob("*")):
        path.chmod(0o777)
    return place


@pytest.mark.parametrize(
    ("way", "case", "written"),
    [("kernel", case, written) for case in LINKS for written in ("closed", "granted")]
    + [(way, "the last", "closed") for way in OPENED if way != "kernel"],
)
def test_a_folder_is_not_opened_over_a_link_that_code_could_have_made(place, way, case, written):
    links, named, led = LINKS[case]
    kernel(place / "work") if written == "closed" else kernel(place / "other", write=(str(place / "work"),))
    for name, target in links.items():
        (place / name).symlink_to(target)

    if not led:
        assert OPENED[way](place / named) == place / "work/stays"
        return
    with pytest.raises(ConfigError, match=rf"over the link {place / led} to .*/private.*code could make.*remove the"):
        OPENED[way](place / named)
    assert not [path for path in (place / "private").rglob("*") if path.name != "inner"]


@pytest.mark.parametrize("way", OPENED)
def test_a_folder_that_this_kernels_own_code_may_write_leads_over_no_link_either(place, way):
    (place / "work/part").symlink_to("../private")

    with pytest.raises(ConfigError, match="code could make that link"):
        OPENED[way](place / "work/part", write=[str(place / "work")])


def test_without_a_sandbox_links_are_followed_as_before(place):
    kernel(place / "work")
    (place / "work/part").symlink_to("../private")

    assert kernel(place / "work/part", sandbox="off") == place / "private"


BROUGHT = {
    "a link": ({"coding": "../private"}, "coding", True),
    "below a link": ({"way": "../private"}, "way/new", True),
    "a link that leads nowhere yet": ({"coding": "../private/missing"}, "coding", True),
    "a link that stays": ({"coding": "real"}, "coding", False),
    "the folder itself": ({"coding": "."}, "coding", False),
    "no link": ({}, "real", False),
    "a folder elsewhere": ({}, "../private", False),
    "over a link elsewhere": ({"../way": "private"}, "../way", False),
    "over a link above": ({"../way": "here"}, "../way/real", False),
}


@pytest.mark.parametrize(
    ("way", "case"),
    [("session", case) for case in BROUGHT]
    + [(way, case) for way in ("executor", "workspace") for case in ("a link", "below a link", "a link that stays")],
)
def test_of_an_untrusted_folder_no_link_out_of_it_is_followed(here, way, case):
    (here.parent / "private").mkdir()
    (here / "real").mkdir()
    links, named, refused = BROUGHT[case]
    for name, target in links.items():
        (here / name).symlink_to(target)
    target = (here / named).resolve()

    if refused:
        words = rf"{named}.*: a link out of {here}, which is not trusted, to {target}.*name that folder itself.*--trust"
        with pytest.raises(ConfigError, match=words):
            OPENED[way](named)
        with pytest.raises(ConfigError, match=words):
            OPENED[way](here / named) if way != "workspace" else OPENED[way](f"./{named}")
        assert not list((here.parent / "private").iterdir())
        assert OPENED[way](target) == target
    else:
        assert OPENED[way](named) == target


@pytest.mark.parametrize("way", ["executor", "session", "workspace"])
def test_in_a_trusted_folder_links_are_the_users_own(here, way):
    (here.parent / "private").mkdir()
    (here / "coding").symlink_to("../private")

    assert OPENED[way]("coding", trust=True) == here.parent / "private"


def test_a_whole_path_in_the_users_settings_is_followed_wherever_they_start(here):
    (here.parent / "large").mkdir()
    (here / "sessions").symlink_to("../large")

    assert workspace(here / "sessions") == here.parent / "large"


@pytest.mark.parametrize("links", [39, 40, 41, 65, 80])
def test_a_chain_of_links_is_followed_to_its_end_or_refused(here, links):
    (here.parent / "private").mkdir()
    (here / f"l{links}").symlink_to("../private")
    for n in range(1, links):
        (here / f"l{n}").symlink_to(f"l{n + 1}")

    with pytest.raises(ConfigError, match="link"):
        OPENED["session"]("l1")
    assert not list((here.parent / "private").iterdir())


def test_a_circle_of_links_is_named(here):
    (here / "a").symlink_to("b")
    (here / "b").symlink_to("a")

    with pytest.raises(ConfigError, match="in a circle, at"):
        named_folder(here / "a")


def test_a_whole_path_needs_no_current_folder(here, tmp_path_factory):
    gone = tmp_path_factory.mktemp("gone")
    os.chdir(gone)
    gone.rmdir()
    try:
        assert named_folder(here) == here
    finally:
        os.chdir(here)


@pytest.mark.parametrize("named", [named_folder, named_file])
def test_a_whole_path_in_an_untrusted_folder_that_was_moved_leads_to_nothing_in_its_place(tmp_path, named):
    """Plays what code of another process's kernel, which may write above that folder, does between two looks."""
    here, secret = tmp_path / "above" / "docs", tmp_path / "secret"
    for folder in (here, secret / "docs"):
        folder.mkdir(parents=True)
        (folder / "sales.db").touch()
    named(here / "sales.db", distrusted=here)
    here.parent.rename(tmp_path / "moved")
    here.parent.symlink_to(secret)

    with pytest.raises(ConfigError, match="was moved"):
        named(here / "sales.db", distrusted=here)
    named(secret / "docs" / "sales.db", distrusted=here)


@pytest.mark.parametrize("start", ["", "work", "repo"])
@pytest.mark.parametrize("target", [".ssh", ".ipython/profile_default/startup", "data"])
def test_a_link_to_a_hidden_folder_is_not_taken_for_what_its_name_says(tmp_path, monkeypatch, target, start):
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    for one in (target, "work", "repo"):
        (home / one).mkdir(parents=True)
    (home / "repo" / "tables").symlink_to(home / target)
    monkeypatch.chdir(home / start)
    shown = target == "data"

    for named in (home / "repo" / "tables", Path(os.path.relpath(home / "repo" / "tables", home / start))):
        if shown:
            assert named_folder(named) == home / target
        else:
            with pytest.raises(ConfigError, match=f"a link to {home / target}, which is hidden .* name that folder"):
                named_folder(named)
    assert named_folder(home / target) == home / target


HIDDEN = {
    "a hidden folder of the same name": ("pkg/.config/data.yml", "{home}/.config/gh/hosts.yml", True),
    "the same, by a relative link": ("pkg/.config/data.yml", "../../.config/gh/hosts.yml", True),
    "beside the folder, where programs share one": (".local/share/dl/data.yml", "../keyrings/login", True),
    "beside the folder, in a hidden one": (".work/dl/data.yml", "../raw/data.yml", False),
    "below a link, by the user's own words": ("disk/.work/raw/data.yml", "", False),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_what_a_link_says_counts_and_not_what_the_user_writes(tmp_path, monkeypatch, case):
    name, link, refused = HIDDEN[case]
    monkeypatch.setenv("HOME", str(tmp_path))
    for one in (".config/gh/hosts.yml", ".local/share/keyrings/login", ".work/raw/data.yml"):
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    (tmp_path / "disk").symlink_to(tmp_path)
    if link:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).symlink_to(link.format(home=tmp_path))

    with pytest.raises(ConfigError, match="hidden") if refused else contextlib.nullcontext():
        named_file(tmp_path / name)


def read_named(path):
    with over_no_link():
        read_regular(path)


def start_reading(path):
    LocalKernel(settings=KernelSettings(read=(str(path),))).execute("1", seconds=20)


@pytest.fixture
def worked(tmp_path):
    """Give the folder in which code of an earlier process's session worked, and one that is none of its business."""
    private, files = tmp_path / "private", tmp_path / "session-1" / "files"
    for folder in (private / "texts", files / "own"):
        folder.mkdir(parents=True)
    (files.parent / "events.jsonl").write_text('{"seq": 0, "at": "", "event": "SessionOpened"}\n')
    for place in (private / "pay.db", private / "texts" / "one.yaml", files / "own" / "own.db"):
        place.write_text("CANARY")
    (files / "shop.db").symlink_to(private / "pay.db")
    (files / "texts").symlink_to(private / "texts")
    (files / "near.db").symlink_to(files / "own" / "own.db")
    return files, private


@pytest.mark.parametrize("read", [named_folder, named_file, read_named, start_reading])
@pytest.mark.parametrize("name", ["shop.db", "texts", "texts/one.yaml"])
def test_no_link_out_of_the_folder_of_an_earlier_session_is_followed(worked, tmp_path, read, name):
    files, _ = worked
    (tmp_path / "short").symlink_to(files)

    for named in (files / name, tmp_path / "short" / name):
        with pytest.raises((ConfigError, OSError), match=f"leads over the link {files}/(shop.db|texts)(,| to )"):
            read(named)


def test_what_lies_in_the_folder_of_an_earlier_session_is_read_there_by_descriptor(worked):
    files, private = worked

    assert named_file(files / "own" / "own.db") == (files / "own" / "own.db", files)
    assert named_file(files / "near.db") == (files / "own" / "own.db", files)
    assert named_file(private / "pay.db") == (private / "pay.db", None)
    (files.parent / "events.jsonl").write_text('{"event": "click"}\n')  # of the user's own, in a folder of that name
    assert named_file(files / "shop.db") == (private / "pay.db", None)
    (files.parent / "events.jsonl").unlink()
    assert named_file(files / "shop.db") == (private / "pay.db", None)


@pytest.mark.parametrize("there", [True, False], ids=["it exists", "it is made"])
def test_no_kernel_is_made_over_a_link_that_came_after_its_folder_was_looked_at(tmp_path, monkeypatch, there):
    """Plays what code of another process's kernel, which may write above the folder, does between two looks."""
    work, victim = tmp_path / "data" / "sub", tmp_path / "victim"
    saved = victim / "x" / ".checkpoint" / "variables"
    saved.parent.mkdir(parents=True)
    saved.write_text("another kernel's")
    (work / "x" if there else work).mkdir(parents=True)
    look = LocalKernel.check_folder

    def look_and_lose(folder, settings):
        look(folder, settings)
        work.rename(tmp_path / "data" / "away")
        work.symlink_to(victim)

    monkeypatch.setattr(LocalKernel, "check_folder", look_and_lose)
    with pytest.raises(OSError, match="link or a file is in the way|not a directory|was moved"):
        KernelCodeExecutor(folder=work / "x", settings={"kernel.checkpoint_seconds": 30})

    assert [str(path.relative_to(victim)) for path in sorted(victim.rglob("*"))] == [
        "x",
        "x/.checkpoint",
        "x/.checkpoint/variables",
    ]


@pytest.mark.parametrize("of", ["this process", "an earlier session"])
@pytest.mark.parametrize("exchanged", [False, True], ids=["it is a link", "it becomes a link"])
def test_a_link_of_the_users_to_a_file_of_codes_leads_no_farther(worked, tmp_path, monkeypatch, of, exchanged):
    files, private = worked
    if of == "this process":
        (files.parent / "events.jsonl").unlink()
        LocalKernel(files).close()
    (tmp_path / "latest.db").symlink_to(files / ("own/own.db" if exchanged else "shop.db"))
    walk = request_inputs.walk_links

    def walk_and_lose(path):
        found = walk(path)
        if exchanged:
            (files / "own" / "own.db").unlink(missing_ok=True)
            (files / "own" / "own.db").symlink_to(private / "pay.db")
        return found

    with open_session(ScriptedModel([]), roles="code_interpreter", kernel=FakeKernel(), folder=tmp_path / "new") as it:
        monkeypatch.setattr(request_inputs, "walk_links", walk_and_lose)
        with pytest.raises(ConfigError, match="latest.db: (can't be read: a link|it leads elsewhere than where code)"):
            it.ask("What is in it?", files=[tmp_path / "latest.db"])


@pytest.mark.parametrize("name", ["texts/new", "texts/new/deep"])
def test_nothing_is_written_over_a_link_out_of_the_folder_of_an_earlier_session(worked, name):
    files, private = worked

    with pytest.raises(PermissionError, match="texts is a link"):
        open_or_make_folder(files / name)
    assert sorted(path.name for path in (private / "texts").iterdir()) == ["one.yaml"]
    open_or_make_folder(files / "own" / "new" / "deep").close()


def test_a_file_of_code_that_is_a_link_to_another_kernel_s_folder_is_not_the_other_s_file(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        LocalKernel(tmp_path / name).close()
    (tmp_path / "other" / "private.csv").write_text("CANARY")
    (tmp_path / "one" / "out.csv").symlink_to(tmp_path / "other" / "private.csv")
    (tmp_path / "one" / "sub").symlink_to(tmp_path / "other")
    (tmp_path / "latest.csv").symlink_to(tmp_path / "one" / "out.csv")
    (tmp_path / "d").symlink_to(tmp_path / "one" / "sub")

    with open_session(ScriptedModel([]), roles="code_interpreter", kernel=FakeKernel(), folder=tmp_path / "new") as it:
        for given in ("latest.csv", "one/out.csv", "one/sub/private.csv", "d/private.csv"):
            with pytest.raises(
                ConfigError, match="can't be read: a link|it leads elsewhere than where code works|in the way"
            ):
                it.ask("What is in it?", files=[tmp_path / given])


def test_a_link_of_the_users_within_a_kernels_folder_may_be_granted(tmp_path):
    (tmp_path / "proj" / "v2").mkdir(parents=True)
    (tmp_path / "proj" / "data").symlink_to("v2")
    wanted = str(tmp_path / "proj" / "data")

    with LocalKernel(tmp_path / "proj", settings=KernelSettings(read=(wanted, f"{tmp_path}/proj/v2/."))) as one:
        assert one.execute(f"import os\nos.listdir({wanted!r})", seconds=20).result == "[]"
        with LocalKernel(tmp_path / "other", settings=KernelSettings(read=(wanted,))) as other:
            assert other.execute("1", seconds=20).result == "1"
    with KernelCodeExecutor(folder=tmp_path / "proj", settings={"kernel.read": [wanted]}) as opened:
        assert opened.work_dir == tmp_path / "proj"


def test_files_of_an_answer_are_saved_over_no_link_of_an_earlier_session(worked, tmp_path):
    files, private = worked
    (tmp_path / "latest").symlink_to(files)

    for out in (files / "texts" / "june", tmp_path / "latest" / "texts" / "june"):
        with pytest.raises(ConfigError, match=f"leads over the link {files}/texts"):
            AnswerFiles(tmp_path / "work", out=out)
    assert sorted(path.name for path in (private / "texts").iterdir()) == ["one.yaml"]


def test_nothing_is_saved_in_the_current_folder_over_a_link_of_an_earlier_session(worked, tmp_path, monkeypatch):
    files, _ = worked
    (tmp_path / "here").mkdir()
    (files / "back").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")

    with pytest.raises(ConfigError, match=f"leads over the link {files}/back"):
        AnswerFiles(tmp_path / "work", out=files / "back" / "june")
    with pytest.raises(PermissionError, match="back is a link"):
        open_or_make_folder(files / "back" / "june")
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_stands_for_a_journal_is_not_read_if_it_is_no_plain_file(tmp_path, what):
    (tmp_path / "files").mkdir()
    if what == "pipe":
        os.mkfifo(tmp_path / "events.jsonl")
    else:
        (tmp_path / "events.jsonl").symlink_to("/proc/self/fd/0")

    assert not is_working_folder(tmp_path / "files")


def test_a_link_that_comes_while_a_folder_is_made_is_named(tmp_path, monkeypatch):
    """Plays what code of another process's kernel, which may write above the folder, does between two looks."""
    (tmp_path / "here").mkdir()
    (tmp_path / "private").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    make = SafeFolder.make_folder

    def make_and_lose(folder, name, **how):
        made = make(folder, name, **how)
        (tmp_path / "here" / "made").rename(tmp_path / "gone")
        (tmp_path / "here" / "made").symlink_to(tmp_path / "private")
        return made

    monkeypatch.setattr(SafeFolder, "make_folder", make_and_lose)
    with pytest.raises(PermissionError, match="made is a link, which code may have made; name the folder"):
        open_or_make_folder("made")


@pytest.mark.parametrize("later", [False, True])
def test_the_folder_of_sessions_may_be_written_with_a_tilde(here, later):
    opening = functools.partial(open_session, folder="~/talks", roles=["planner"])
    if later:
        opening = checked_opening(opening, read_settings())
    with opening(model=ScriptedModel([])) as session:
        home = here.parent / "home"
    with opening(model=ScriptedModel([]), resume=session.id) as again:
        assert again.journal == session.journal
    with opening(model=ScriptedModel([]), resume=f"~/talks/{session.id}") as again:
        assert again.journal == session.journal

    assert session.journal == home / "talks" / session.id / "events.jsonl"
    assert not list(here.iterdir())


def test_what_a_session_leaves_for_later_ones_may_lie_in_a_home_that_nobody_has(here):
    steps = [plans("Done.", to="User"), '{"lesson": "Look at the header first."}']
    with open_session(ScriptedModel(steps), roles=["planner"]) as session:
        session.ask("hello")

        assert session.save_example("~nobody_here/a.yaml") == Path("~nobody_here/a.yaml")
        assert session.save_experience("~nobody_here").parent == Path("~nobody_here")
    with pytest.raises(ConfigError, match="~nobody_here/tw-index.json: there is no index"):
        DocumentIndex.read("~nobody_here")
    with pytest.raises(ConfigError, match="~nobody_there: there is no such user"):
        open_session(ScriptedModel([]), project="~nobody_there")


CANARY = "open({!r}, 'a').write('ran')\n"
NO_PATHS = {
    "": "an empty path; write . for the current folder",
    " ": "an empty path; write . for the current folder",
    "https://example.com/w.py": "https://example.com/w.py is a URL; download it, and name the file",
    "~no-such-user/w.py": "there is no such user; write ./~no-such-user/w.py for what lies here",
}


@pytest.mark.parametrize("wanted", NO_PATHS)
@pytest.mark.parametrize("what", ["plugins", "project", "roles", "mcp_servers", "folder"])
def test_a_text_that_is_no_path_does_not_lead_to_what_lies_in_the_current_folder(tmp_path, monkeypatch, what, wanted):
    monkeypatch.chdir(tmp_path)
    canary = tmp_path / "canary"
    function = (
        "from tw_autogen.plugin import plugin\n\n\n@plugin(runs_in='host')\ndef w() -> int:\n    'Do.'\n    return 1\n"
    )
    for place in ("", "plugins", *filter(str.strip, [os.path.dirname(wanted)])):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "w.py").write_text(CANARY.format(str(canary)) + function)
    given = {what: [wanted] if what in ("plugins", "roles") else wanted}
    if what == "mcp_servers" and not wanted or what in ("plugins", "roles") and wanted in (" ", "" * (what == "roles")):
        pytest.skip("no servers; a word is never a path")
    opening = functools.partial(open_session, ScriptedModel([]), **given)

    for make in (opening, lambda: checked_opening(opening, read_settings())):
        with pytest.raises(ConfigError) as told, contextlib.ExitStack() as stack:
            stack.enter_context(make())
        assert NO_PATHS[wanted] in str(told.value)
    assert not canary.exists()


@pytest.mark.parametrize("key", ["kernel.read", "kernel.write"])
def test_an_empty_text_grants_no_folder(tmp_path, key):
    with pytest.raises(ConfigError, match=f"{key}: an empty path"):
        open_session(ScriptedModel([]), folder=tmp_path, kernel=None, settings={key: [""]})
