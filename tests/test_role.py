"""Roles of one's own: found by name and by path, and what a broken one says."""

import functools
import os
import py_compile
import re
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tw_autogen import Attachment, AttachmentType, Post, Role, open_session
from tw_autogen.conversation import Round
from tw_autogen.errors import RoleError, RoleSpecError, RoundError, SettingsError
from tw_autogen.role import as_role, checked_post, find_role
from tw_autogen.role.role_finder import read_role
from tw_autogen.setting_values import Setting
from tw_autogen.shipped_folders import shipped_folder
from tw_autogen.testing import ROLE_CHECKS, FakeKernel, ScriptedModel, check_role, plans

YAML = "alias: Reader\nintro: Reads manuals.\n"
PYTHON = """\
from tw_autogen import Memory, Post, Role

class Reader(Role):
    def __init__(self, model, settings):
        self.page = settings.get("page", 1)
        self.model = model

    def reply(self, memory: Memory, **kwargs) -> Post:
        kwargs["turn"].round.write_board(self.name, f"page {self.page}")
        return Post(self.name, memory.last_post.send_from, f"read page {self.page}")
"""


@pytest.fixture
def folder(tmp_path):
    role = tmp_path / "reader"
    role.mkdir()
    (role / "role.yaml").write_text(YAML + "settings: {page: 7}\n", encoding="utf-8")
    (role / "reader.py").write_text(PYTHON, encoding="utf-8")
    return role


def test_a_role_in_a_folder_of_ones_own_works_for_the_planner_and_pins_to_the_board(folder, tmp_path):
    with (
        ScriptedModel([plans("read", to="Reader"), plans("It is read.", to="User")]) as model,
        open_session(model, roles=["planner", folder], folder=tmp_path / "sessions") as session,
    ):
        answer = session.ask("read the manual")

    assert answer.text == "It is read."
    assert answer.round.posts[2].message == "read page 7"
    assert answer.round.read_board("Reader") == "page 7"
    assert "## Reader\nReads manuals." in model.calls[0][0]["content"]


def test_the_shipped_role_says_back_what_it_is_told(tmp_path):
    with (
        ScriptedModel([plans("hello there", to="Echo"), plans("It said so.", to="User")]) as model,
        open_session(model, roles=["planner", "echo"], folder=tmp_path) as session,
    ):
        assert session.ask("say hello").round.posts[2].message == "hello there"


def test_a_role_may_be_a_function_that_makes_one(folder, tmp_path):
    spec = read_role(folder)
    with (
        ScriptedModel([plans("read", to="Reader"), plans("Done.", to="User")]) as model,
        open_session(model, roles=["planner", lambda: spec.make(lambda: model)], folder=tmp_path) as session,
    ):
        assert session.ask("read").text == "Done."


@pytest.mark.parametrize(
    ("yaml", "python", "problem"),
    [
        (YAML.replace("intro", "intr"), PYTHON, r"role\.yaml: unknown key 'intr'; did you mean 'intro'\?"),
        ("alias: Reader\n", PYTHON, r"role\.yaml: `intro` is missing"),
        (YAML.replace("Reader", "a b"), PYTHON, r"role\.yaml: `alias` must be a plain name"),
        ("alias: [", PYTHON, r"role\.yaml:1: not YAML"),
        (YAML, "import nothing_of_that_name\n", r"reader\.py:1: ModuleNotFoundError"),
        (YAML, "x = 1\n1 / 0\n", r"reader\.py:2: ZeroDivisionError"),
        (YAML, "import sys\nsys.exit('no key')\n", r"reader\.py:2: SystemExit: no key"),
        (YAML, "class Reader:\n    pass\n", r"reader\.py: expected one class with `reply\(self, memory.*, found none"),
        (YAML + "module: ../other\n", PYTHON, r"`module` must be the name of a file beside this one, not '\.\./other'"),
        (YAML + "module: /tmp/other\n", PYTHON, "`module` must be the name of a file beside this one"),
        (YAML + "module: other\n", PYTHON, r"other\.py: there is no such file"),
    ],
)
def test_a_broken_role_is_an_error_with_the_path(folder, yaml, python, problem):
    (folder / "role.yaml").write_text(yaml, encoding="utf-8")
    (folder / "reader.py").write_text(python, encoding="utf-8")

    with pytest.raises(RoleSpecError, match=problem):
        read_role(folder).make(FakeKernel)


def test_an_unknown_role_names_its_neighbour():
    with pytest.raises(RoleSpecError, match=r"ecko: no shipped role and no folder; did you mean 'echo'\?"):
        find_role("ecko")


@pytest.mark.parametrize("file", ["crier.py", "crier/role.yaml"])
def test_a_file_as_role_is_told_what_a_role_of_ones_own_is(file):
    with pytest.raises(RoleSpecError, match=rf"{file}: no shipped role and no folder; .* a folder with a role\.yaml"):
        find_role(file)


def test_a_module_that_is_left_empty_is_the_folders_name(folder):
    (folder / "role.yaml").write_text(f"{YAML}module:\nsettings: {{page: 7}}\n", encoding="utf-8")

    assert read_role(folder).module == "reader"


def test_a_class_that_has_a_second_name_is_one_class(folder):
    (folder / "reader.py").write_text(f"{PYTHON}\nOldReader = Reader\n", encoding="utf-8")

    assert read_role(folder).make(FakeKernel).page == 7


def test_roles_load_in_several_threads_at_once(tmp_path):
    folders = [tmp_path / f"reader{number}" for number in range(160)]
    for one in folders:
        one.mkdir()
        (one / "role.yaml").write_text(f"{YAML}module: reader\n", encoding="utf-8")
        (one / "reader.py").write_text(f"from .pages import PAGE\n{PYTHON}", encoding="utf-8")
        (one / "pages.py").write_text("PAGE = 1\n", encoding="utf-8")

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda one: read_role(one).make(FakeKernel), folders))
    finally:
        sys.setswitchinterval(usual)

    assert [one.name for one in made] == ["Reader"] * len(folders)


def test_a_setting_that_is_unknown_is_told_also_where_a_key_of_the_yaml_is_a_number(folder):
    (folder / "role.yaml").write_text(f"{YAML}settings: {{page: 7, 1: one}}\n", encoding="utf-8")

    with pytest.raises(SettingsError, match=r"unknown setting 'role\.reader\.pag'; did you mean 'page'\?"):
        read_role(folder).make(FakeKernel, given=lambda known: {"pag": Setting(1, "the test")})


def test_a_broken_constructor_is_an_error_with_the_path_and_the_line(folder):
    for error, problem in (
        ("OSError", r"reader\.py:6: OSError: no page"),
        ("SystemExit", r"reader\.py:6"),
        ("ValueError", r"role\.yaml: no page"),
    ):
        (folder / "reader.py").write_text(PYTHON.replace("self.model = model", f"raise {error}('no page')"))
        with pytest.raises(RoleSpecError, match=problem):
            read_role(folder).make(FakeKernel)


def test_a_constructor_that_wants_what_nobody_has_is_told_what_there_is(folder):
    (folder / "reader.py").write_text(PYTHON.replace("model, settings", "settings, database"), encoding="utf-8")

    with pytest.raises(RoleSpecError, match=r"reader\.py: its constructor needs 'database', and only these .* model"):
        read_role(folder).make(FakeKernel)


def test_a_role_that_forgot_its_reply_is_an_error(folder):
    (folder / "reader.py").write_text(
        "from tw_autogen import Role\n\nclass Reader(Role):\n    pass\n", encoding="utf-8"
    )

    with pytest.raises(RoleSpecError, match=r"reader\.py: expected one class with `reply\(.*found none"):
        read_role(folder).make(FakeKernel)


def test_a_roles_python_may_be_several_files_and_is_read_anew_each_time(folder):
    (folder / "pages.py").write_text("PAGE = 3\n", encoding="utf-8")
    (folder / "reader.py").write_text("from .pages import PAGE\n" + PYTHON.replace('"page", 1', '"", PAGE'))
    assert read_role(folder).make(FakeKernel).page == 3

    (folder / "pages.py").write_text("PAGE = 44\n", encoding="utf-8")
    assert read_role(folder).make(FakeKernel).page == 44


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
@pytest.mark.parametrize("name", ["reader", "pages"])
def test_a_roles_python_that_is_no_plain_file_is_an_error_and_nothing_waits(folder, name):
    (folder / "pages.py").write_text("PAGE = 3\n", encoding="utf-8")
    (folder / "reader.py").write_text("from .pages import PAGE\n" + PYTHON.replace('"page", 1', '"", PAGE'))
    (folder / f"{name}.py").unlink()
    os.mkfifo(folder / f"{name}.py")

    with pytest.raises(RoleSpecError, match=r"no plain file|no such file|No module named"):
        read_role(folder).make(FakeKernel)


def test_no_compiled_file_stands_for_a_roles_python(folder):
    (folder / "pages.py").write_text("PAGE = 3\n", encoding="utf-8")
    (folder / "reader.py").write_text("from .pages import PAGE\n" + PYTHON.replace('"page", 1', '"", PAGE'))
    for name in ("pages", "reader"):
        text = (folder / f"{name}.py").read_text(encoding="utf-8")
        (folder / f"{name}.py").write_text("raise SystemExit('compiled')\n", encoding="utf-8")
        py_compile.compile(folder / f"{name}.py", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")

    assert read_role(folder).make(FakeKernel).page == 3


# --- settings of a role ---

TYPED = """\
from __future__ import annotations

from dataclasses import dataclass

from tw_autogen import Memory, Post, Role


@dataclass(frozen=True)
class ReaderSettings:
    shelf: str
    page: int = 1
    colours: tuple[str, ...] = ()


class Reader(Role):
    def __init__(self, settings: ReaderSettings):
        self.settings = settings

    def reply(self, memory: Memory, **kwargs) -> Post:
        s = self.settings
        return Post(self.name, memory.last_post.send_from, f"{s.shelf} {s.page + 1} {'/'.join(s.colours)}")
"""


def test_what_an_object_with_a_function_for_its_reply_does_wrong_is_told():
    role = as_role(types.SimpleNamespace(name="Parrot", intro="Speaks.", reply=lambda memory, **kwargs: "words"))

    with pytest.raises(RoleError, match=r"reply\(\) gave str, not a Post; .*test_role\.py:\d+\)"):
        checked_post(role, "words", Round("speak"))


@pytest.mark.parametrize(
    ("message", "attachments", "problem"),
    [
        (42, (), "reply() gave a Post whose message is int, not text; return Post("),
        ("read", ("words",), "reply() gave a Post with str among its attachments; return Post("),
    ],
)
def test_a_role_whose_words_are_no_text_is_named(tmp_path, caplog, message, attachments, problem):
    class Reader(Role):
        name, intro = "Reader", "Reads."

        def reply(self, memory, **kwargs):
            return Post(self.name, memory.last_post.send_from, message, attachments)

    model = ScriptedModel([plans("read", to="Reader"), plans("It can't be read.", to="User")])
    with open_session(model, roles=["planner", Reader], folder=tmp_path) as session:
        said = session.ask("Read.").round.posts[2].message

    assert said.startswith(f"the role Reader failed: {problem}")
    assert "test_role.py" not in said
    assert re.search(rf"{re.escape(problem)}.*test_role\.py", caplog.text)


async def _later(memory, **kwargs):
    return None


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (lambda memory: None, r"can't be called with `turn=`: .*unexpected keyword argument 'turn'"),
        (lambda: None, r"can't be called with `turn=`"),
        (lambda memory, other, **kwargs: None, r"can't be called with `turn=`: missing a required argument: 'other'"),
        (lambda memory, *turn: None, r"can't be called with `turn=`"),
        (_later, "is asynchronous"),
        (functools.partial(_later), "is asynchronous"),
        ("words", "can't be called"),
        (lambda memory, **kwargs: None, ""),
        (lambda memory, turn: None, ""),
        (lambda memory, *, turn=None, later=1: None, ""),
        (lambda *args, **kwargs: None, ""),
        (functools.partial(lambda other, memory, **kwargs: None, 1), ""),
    ],
)
def test_a_reply_that_a_session_can_not_call_is_an_error_when_it_is_opened(tmp_path, reply, problem):
    made = types.SimpleNamespace(name="Reader", intro="Reads.", reply=reply)
    if not problem:
        open_session(ScriptedModel([]), roles=["planner", lambda: made], folder=tmp_path).close()
        return
    with pytest.raises(RoleSpecError, match=rf"{problem}.*write `def reply\(self, memory, \*\*kwargs\)`"):
        open_session(ScriptedModel([]), roles=["planner", lambda: made], folder=tmp_path)


def test_a_role_that_offers_no_text_is_named(tmp_path):
    class Reader(Role):
        name, intro = "Reader", "Reads."

        def offer(self, request):
            return 42

        def reply(self, memory, **kwargs):
            return Post(self.name, memory.last_post.send_from, "read")

    problem = r"TypeError: offer\(\) gave int, not text .*test_role\.py"
    with (
        open_session(ScriptedModel([]), roles=["planner", Reader], folder=tmp_path) as session,
        pytest.raises(RoleError, match=rf"the role Reader failed: {problem}") as caught,
    ):
        session.ask("Read.")

    assert caught.value.in_words() == (
        "I could not answer this request: the role Reader failed: TypeError: offer() gave int, not text"
    )


def said_by(folder, tmp_path, settings):
    sessions = tmp_path / "sessions"
    with open_session(ScriptedModel([]), roles=[folder], folder=sessions, settings=settings, trust=True) as session:
        session.open_round("read")
        return session.step(session.next_role()).message


def test_settings_come_from_the_yaml_the_project_the_environment_and_keywords_in_this_order(
    folder, tmp_path, monkeypatch
):
    (folder / "role.yaml").write_text(YAML + "settings: {shelf: A, page: 1, colours: [red]}\n", encoding="utf-8")
    (folder / "reader.py").write_text(TYPED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert said_by(folder, tmp_path, {}) == "A 2 red"

    (tmp_path / "tw_autogen.yaml").write_text("role:\n  reader: {page: 4, colours: [blue]}\n", encoding="utf-8")
    assert said_by(folder, tmp_path, {}) == "A 5 blue"

    monkeypatch.setenv("TW_AUTOGEN_ROLE_READER_COLOURS", "green, grey")
    assert said_by(folder, tmp_path, {}) == "A 5 green/grey"

    given = {"role.reader.colours": ["white"], "role.reader.page": "8"}
    assert said_by(folder, tmp_path, given) == "A 9 white"


@pytest.mark.parametrize("how", ["keyword", "environment"])
def test_a_program_that_begins_with_a_tilde_lies_in_the_users_home(folder, tmp_path, monkeypatch, how):
    (folder / "role.yaml").write_text(YAML, encoding="utf-8")
    declared = 'shelf: str = field(default="", metadata={"path": True})'
    typed = TYPED.replace("    shelf: str\n", f"    {declared}\n").replace(
        "import dataclass", "import dataclass, field"
    )
    (folder / "reader.py").write_text(typed, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "~").mkdir()
    (tmp_path / "~/chrome").touch()
    if how == "environment":
        monkeypatch.setenv("TW_AUTOGEN_ROLE_READER_SHELF", "~/chrome")

    said = said_by(folder, tmp_path, {"role.reader.shelf": "~/chrome"} if how == "keyword" else {})

    assert said == f"{tmp_path}/home/chrome 2 "


def test_settings_come_in_their_dataclass_where_another_annotation_is_for_type_checkers_only(folder, tmp_path):
    (folder / "role.yaml").write_text(YAML + "settings: {shelf: A}\n", encoding="utf-8")
    typed = TYPED.replace(
        "(self, settings: ReaderSettings)", "(self, settings: ReaderSettings, model: ChatModel = None)"
    )
    (folder / "reader.py").write_text(typed, encoding="utf-8")

    assert said_by(folder, tmp_path, {}) == "A 2 "


def test_a_misspelt_variable_of_a_role_is_an_error_and_one_of_another_role_is_not(folder, tmp_path, monkeypatch):
    (folder / "role.yaml").write_text(YAML + "settings: {shelf: A, page: 1, colours: [red]}\n", encoding="utf-8")
    (folder / "reader.py").write_text(TYPED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TW_AUTOGEN_ROLE_READER_OF_BOOKS_INDEX", "x")
    monkeypatch.setenv("TW_AUTOGEN_ROLE_READER_COLORS", "")
    assert said_by(folder, tmp_path, {}) == "A 2 red"

    monkeypatch.setenv("TW_AUTOGEN_ROLE_READER_COLORS", "green")
    with pytest.raises(SettingsError, match=r"TW_AUTOGEN_ROLE_READER_COLORS: unknown setting .*mean 'colours'\?"):
        said_by(folder, tmp_path, {})


@pytest.mark.parametrize(
    ("yaml", "given", "error", "problem"),
    [
        ("{shelf: A, pag: 1}", {}, RoleSpecError, r"role\.yaml: unknown setting 'pag'; did you mean 'page'\?"),
        ("{shelf: A, page: x}", {}, RoleSpecError, r"role\.yaml: role\.reader\.page: .* valid integer.*, got 'x'"),
        ("{}", {}, RoleSpecError, r"role\.yaml: the setting 'role\.reader\.shelf' is missing"),
        ("{shelf: A}", {"role.reader.pge": 2}, SettingsError, r"'role\.reader\.pge': unknown .*mean 'page'\?"),
        ("{shelf: A}", {"role.reader.page": "x"}, SettingsError, r"the keyword .*valid integer"),
        (
            "{shelf: A}",
            {"role.redaer.page": 2},
            SettingsError,
            r"no role .* 'redaer'; did you mean 'reader'",
        ),
        ("{shelf: A}", {"role.reader": 2}, SettingsError, r"'role\.reader' needs a key after it"),
    ],
)
def test_a_wrong_setting_of_a_role_says_where_it_stands(folder, tmp_path, yaml, given, error, problem):
    (folder / "role.yaml").write_text(f"{YAML}settings: {yaml}\n", encoding="utf-8")
    (folder / "reader.py").write_text(TYPED, encoding="utf-8")

    with pytest.raises(error, match=problem):
        said_by(folder, tmp_path, given)


def test_untyped_settings_are_those_of_the_yaml_and_have_their_types(folder, tmp_path):
    assert said_by(folder, tmp_path, {"role.reader.page": "12"}) == "read page 12"
    with pytest.raises(SettingsError, match=r"unknown setting 'role\.reader\.pages'; did you mean 'page'\?"):
        said_by(folder, tmp_path, {"role.reader.pages": 1})


# --- classes, objects, entry points ---


class Counter(Role):
    name = "Counter"
    intro = "Counts the words it is told."

    def reply(self, memory, **kwargs):
        asked = memory.last_post
        return Post(self.name, asked.send_from, str(len(asked.message.split())))


@pytest.mark.parametrize("wanted", [Counter, Counter(), lambda: Counter()], ids=["class", "object", "function"])
def test_a_role_may_be_a_class_an_object_or_a_function(wanted, tmp_path):
    with (
        ScriptedModel([plans("one two three", to="Counter"), plans("Three.", to="User")]) as model,
        open_session(model, roles=["planner", wanted], folder=tmp_path) as session,
    ):
        assert session.ask("count").round.posts[2].message == "3"


def test_a_class_without_a_name_is_told_what_it_lacks():
    class Nameless:
        def reply(self, memory, **kwargs):
            raise NotImplementedError

    with pytest.raises(RoleSpecError, match=r"test_role\.py: class Nameless needs `name`, a text, beside `reply`"):
        find_role(Nameless)


def installed(site, value):
    """Lay a package with an entry point on the path, as pip would."""
    info = site / "counting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tw_autogen.roles]\ncounter = {value}\n")


def test_an_installed_package_brings_a_role_by_its_class(tmp_path, monkeypatch):
    installed(tmp_path / "site", "counting_role:Tally")
    (tmp_path / "site" / "counting_role.py").write_text(
        PYTHON.replace("class Reader(Role):", "class Tally(Role):\n    name, intro = 'Tally', 'Tallies.'")
        .replace("model, settings", "model")
        .replace('settings.get("page", 1)', "5")
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    with ScriptedModel([]) as model, open_session(model, roles=["counter"], folder=tmp_path / "s") as session:
        session.open_round("go")
        assert session.step(session.next_role()).message == "read page 5"
        assert session.roles[0].name == "Tally"


def test_an_installed_package_brings_a_role_by_its_folder(folder, tmp_path, monkeypatch):
    installed(tmp_path / "site", "counting_folder")
    package = tmp_path / "site" / "counting_folder"
    folder.rename(package)
    (package / "__init__.py").write_text("")
    (package / "role.yaml").write_text(YAML + "module: reader\nsettings: {page: 9}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    settings = {"role.counter.page": 11}
    with (
        ScriptedModel([]) as model,
        open_session(model, roles=["counter"], folder=tmp_path / "s", settings=settings) as session,
    ):
        session.open_round("go")
        assert session.step(session.next_role()).message == "read page 11"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module_here", r"entry point counter = no_such_module_here: ModuleNotFoundError"),
        ("json:dumps", r"entry point counter = json:dumps: names neither a class nor a package"),
        ("exits_at_once:Role", r"entry point counter = exits_at_once:Role: SystemExit: 3"),
    ],
)
def test_a_broken_entry_point_is_named(tmp_path, monkeypatch, value, problem):
    installed(tmp_path / "site", value)
    (tmp_path / "site" / "exits_at_once.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    with pytest.raises(RoleSpecError, match=problem):
        find_role("counter")


# --- what every role must do ---


class Asker(Counter):
    def __init__(self, model):
        self.model = model

    def reply(self, memory, **kwargs):
        asked = memory.last_post
        words = kwargs["turn"].ask(self.model, [{"role": "user", "content": asked.message}], caller=self.name)
        return Post(self.name, asked.send_from, words)


def test_a_role_that_asks_a_model_is_counted_and_held_to_the_rounds_limits(tmp_path):
    script = [plans("a", to="Counter"), "<think>so</think>\none", plans("b", to="Counter")]
    with (
        ScriptedModel(script) as model,
        open_session(model, roles=["planner", Asker], folder=tmp_path, settings={"session.max_calls": 3}) as session,
        pytest.raises(RoundError, match=r"session\.max_calls"),
    ):
        session.ask("go")

    assert session.rounds[-1].posts[2].message == "one"
    assert session.usage.calls == 3


def test_the_suite_passes_a_good_role():
    assert check_role(Counter) == list(ROLE_CHECKS)


class Leaving(Counter):
    def reply(self, memory, **kwargs):
        kwargs["turn"].round.posts.pop()
        return super().reply(memory)


BROKEN = {
    "it_has_a_name_and_an_intro": type("A", (Counter,), {"name": "two words"}),
    "it_answers_with_a_post_from_itself": type("B", (Counter,), {"reply": lambda self, memory, **kwargs: "three"}),
    "it_answers_whoever_wrote": type(
        "C", (Counter,), {"reply": lambda self, memory, **kwargs: Post(self.name, "Planner", "3")}
    ),
    "it_answers_under_another_name": type(
        "D", (Counter,), {"reply": lambda self, memory, **kwargs: Post("Counter", memory.last_post.send_from, "3")}
    ),
    "it_answers_words_that_say_nothing": type(
        "E",
        (Counter,),
        {
            "reply": lambda self, memory, **kwargs: Post(
                self.name, memory.last_post.send_from, memory.last_post.message.split()[0]
            )
        },
    ),
    "it_changes_nothing_that_was_said": Leaving,
    "what_it_says_can_be_stored": type(
        "F",
        (Counter,),
        {
            "reply": lambda self, memory, **kwargs: Post(
                self.name, memory.last_post.send_from, "3", (Attachment(AttachmentType.text, "", {1, 2}),)
            )
        },
    ),
    "it_takes_pictures_and_keywords_that_it_doesnt_know": type(
        "G",
        (Counter,),
        {"reply": lambda self, memory, *, turn: Post(self.name, memory.last_post.send_from, "3")},
    ),
}


@pytest.mark.parametrize("check", BROKEN)
def test_the_suite_finds_what_is_broken(check):
    with pytest.raises(AssertionError, match=f"^{check}: "):
        check_role(BROKEN[check])


def test_the_role_that_the_docs_show_works_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parent.parent / "docs" / "roles.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "(Role)" in block]
    assert len(blocks) == 1
    with ScriptedModel([plans("say hello", to="Crier"), plans("It said HELLO.", to="User")]) as model:
        space = {"__name__": "crier"}
        exec(compile(blocks[0], "roles.md", "exec"), space)
        with open_session(model, roles=["planner", space["Crier"]], folder=tmp_path) as session:
            answer = session.ask("say hello loudly")

    assert answer.round.posts[2].message == "SAY HELLO"
    assert check_role(space["Crier"]) == list(ROLE_CHECKS)
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_shipped_roles_and_plugins_import_only_what_their_authors_may():
    for path in [*shipped_folder("roles").glob("*/*.py"), *shipped_folder("plugins").glob("*.py")]:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith(("from tw_autogen", "import tw_autogen")):
                assert line.startswith(("from tw_autogen import", "from tw_autogen.plugin import")), f"{path}: {line}"


# --- roles that inherit from nothing, and roles that are named ---

DUCK = """\
from tw_autogen import Post

class Reader:
    def reply(self, memory, **kwargs):
        return Post(self.name, memory.last_post.send_from, "read")
"""


class Duck:
    name = "Duck"
    intro = "Quacks."

    def reply(self, memory, **kwargs):
        return Post(self.name, memory.last_post.send_from, "quack")


@pytest.mark.parametrize("how", ["folder", "class", "role", "function"])
def test_a_role_need_not_inherit_from_role(folder, tmp_path, how):
    (folder / "role.yaml").write_text(YAML, encoding="utf-8")
    (folder / "reader.py").write_text(DUCK, encoding="utf-8")
    role = {"folder": folder, "class": Duck, "role": Duck(), "function": lambda: Duck()}[how]

    with open_session(ScriptedModel([]), roles=[role], folder=tmp_path / "sessions") as session:
        assert session.ask("hello").text == ("read" if how == "folder" else "quack")


@pytest.mark.parametrize("role", [5, lambda: 5])
def test_what_is_no_role_says_what_it_lacks(tmp_path, role):
    with pytest.raises(RoleSpecError, match="int 5: is no role: it has no `name`, `intro`, `reply`"):
        open_session(ScriptedModel([]), roles=[role], folder=tmp_path)


def test_files_of_a_check_may_lie_in_folders():
    assert check_role("echo", files={"data/a.csv": b"a\n1\n"}) == list(ROLE_CHECKS)


def test_check_role_takes_a_name_a_folder_and_a_class_without_close(folder):
    (folder / "role.yaml").write_text(YAML, encoding="utf-8")
    (folder / "reader.py").write_text(DUCK, encoding="utf-8")

    for role in ("echo", str(folder), folder, Duck):
        assert check_role(role) == list(ROLE_CHECKS)
    with pytest.raises(RoleSpecError, match=r"ecko: .*did you mean 'echo'"):
        check_role("ecko")
    with pytest.raises(AssertionError, match="it asks a model: give check_role a function"):
        check_role("image_reader")
