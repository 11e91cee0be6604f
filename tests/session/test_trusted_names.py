"""What a trusted folder's settings name, or lack, is used as it was when the folder was trusted, whatever links do."""

import functools
import logging
import os
import sys
from pathlib import Path

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError, TwAutogenError
from tw_autogen.kernel import LocalKernel
from tw_autogen.plugin import write_plugin
from tw_autogen.safe_folder import SafeFolder
from tw_autogen.session import read_project, read_settings, review_folder, trust_lines
from tw_autogen.session.request_inputs import checked_inputs, place_inputs
from tw_autogen.session.settings_sources import SECTIONS
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel, plans

SETTINGS, THEIRS = "tw_autogen.yaml", "taskweaver_config.json"
OPENED = '{"seq": 0, "at": "", "event": "SessionOpened"}\n'
SERVERS = '{"mcpServers": {"x": {"command": "uvx", "args": ["x"]}}}'
EVIL_SERVERS = '{"mcpServers": {"x": {"command": "/nowhere/evil"}}}'
ROLE_YAML = "alias: Crier\nintro: Cries.\nmodule: crier\n"
ROLE = "from tw_autogen import Role\n\nclass Crier(Role):\n    def reply(self, memory, **kwargs): ...\n"
PLUGIN_YAML = "name: twice\ndescription: d\nruns_in: host\nparameters: []\n"
PLUGIN = "import beside\nfrom tw_autogen.plugin import register_plugin\n\n@register_plugin\ndef twice(): ...\n"


@pytest.fixture(autouse=True)
def own_modules(monkeypatch):
    """What roles and plugins of a test import is forgotten at its end."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield
    for name in [module for module in sys.modules if module.partition(".")[0] in ("beside", "tw_autogen_role_crier")]:
        del sys.modules[name]


def link(folder, name, target):
    """Put a link in place of whatever has the name."""
    new = folder / ".new"
    new.symlink_to(target)
    new.replace(folder / name)


def trust():
    review = review_folder()
    assert review.remember(review.sha256()) == ""
    settings = read_settings()
    assert settings.trust is Trust.full
    return settings


def evil(folder):
    return f"open({str(folder.parent / 'ran')!r}, 'w').close()\n"


NAMED = {
    "a file of servers behind a link": (
        {"plugin.mcp_servers": "mcp.json"},
        {"good.json": SERVERS, "evil.json": EVIL_SERVERS},
        ("mcp.json", "good.json", "evil.json"),
    ),
    "a file of servers in a folder behind a link": (
        {"plugin.mcp_servers": "way/mcp.json"},
        {"good/mcp.json": SERVERS, "evil/mcp.json": EVIL_SERVERS},
        ("way", "good", "evil"),
    ),
    "a file of servers in a folder outside": (
        {"plugin.mcp_servers": "way/mcp.json"},
        {"../good/mcp.json": SERVERS, "../evil/mcp.json": EVIL_SERVERS},
        ("way", "../good", "../evil"),
    ),
    "a policy behind a link": (
        {"code_interpreter.policy": "pol.yaml"},
        {"good.yaml": "base: strict\n", "evil.yaml": "modules: all\n"},
        ("pol.yaml", "good.yaml", "evil.yaml"),
    ),
    "a policy in a folder behind a link": (
        {"code_interpreter.policy": "way/pol.yaml"},
        {"good/pol.yaml": "base: strict\n", "evil/pol.yaml": "modules: all\n"},
        ("way", "good", "evil"),
    ),
    "a role in a folder behind a link": (
        {"session.roles": ["planner", "./way/crier"]},
        {
            "../good/crier/role.yaml": ROLE_YAML,
            "../good/crier/crier.py": ROLE,
            "../evil/crier/role.yaml": ROLE_YAML,
            "../evil/crier/crier.py": evil,
        },
        ("way", "../good", "../evil"),
    ),
    "the roles' folder behind a link": (
        {"session.roles": ["planner", "crier"]},
        {
            "../good/crier/role.yaml": ROLE_YAML,
            "../good/crier/crier.py": ROLE,
            "../evil/crier/role.yaml": ROLE_YAML,
            "../evil/crier/crier.py": evil,
        },
        ("roles", "../good", "../evil"),
    ),
    "a role's Python behind a link": (
        {"session.roles": ["planner", "crier"]},
        {"roles/crier/role.yaml": ROLE_YAML, "good.py": ROLE, "../evil.py": evil},
        ("roles/crier/crier.py", "../../good.py", "../../../evil.py"),
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_link_that_leads_elsewhere_since_the_folder_was_trusted_is_refused(here, case):
    wants, files, (name, good, bad) = NAMED[case]
    write(here, {SETTINGS: wants})
    write(here, {one: text(here) if callable(text) else text for one, text in files.items()})
    (here / name).symlink_to(good)
    settings = trust()
    link(here, name, bad)

    with pytest.raises(TwAutogenError, match="since its folder was trusted"):
        open_session(ScriptedModel([]), kernel=FakeKernel(), settings=settings, project=".", folder=here.parent / "s")

    assert not (here.parent / "ran").exists()
    assert read_settings().trust is Trust.none


@pytest.mark.parametrize("name", ["plugins", "plugins/twice.py"])
def test_what_a_host_plugin_imports_over_a_link_that_leads_elsewhere_is_not_run(here, caplog, name):
    write(here, {SETTINGS: {"kernel.sandbox": "off"}})
    for place, beside in (("good", "VALUE = 1\n"), ("evil", evil(here))):
        write(here.parent / place, {"twice.yaml": PLUGIN_YAML, "twice.py": PLUGIN, "beside.py": beside})
    if name == "plugins":
        (here / name).symlink_to("../good")
    else:
        write(here, {"plugins/twice.yaml": PLUGIN_YAML, "plugins/beside.py": "VALUE = 1\n"})
        (here / name).symlink_to("../../good/twice.py")
    settings = trust()
    link(here, name, "../evil" if name == "plugins" else "../../evil/twice.py")

    with caplog.at_level(logging.WARNING):
        open_session(
            ScriptedModel([]), kernel=FakeKernel(), settings=settings, project=".", folder=here.parent / "s"
        ).close()

    assert "since its folder was trusted" in caplog.text
    assert not (here.parent / "ran").exists()


MISSING = {
    "servers": ({"plugin.mcp_servers": "late.json"}, "late.json", EVIL_SERVERS),
    "a policy": ({"code_interpreter.policy": "late.yaml"}, "late.yaml", "modules: all\n"),
    "a policy at home": ({"code_interpreter.policy": "~/late.yaml"}, "~/late.yaml", "modules: all\n"),
    "a policy with a blank": ({"code_interpreter.policy": " late.yaml"}, "late.yaml", "modules: all\n"),
    "a role": ({"session.roles": ["planner", "./late"]}, "late/role.yaml", "alias: Late\nintro: i\n"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_file_that_a_setting_names_and_that_was_missing_is_not_used_when_it_appears(here, case):
    wants, name, text = MISSING[case]
    write(here, {SETTINGS: wants})
    settings = trust()
    write(here, {os.path.expanduser(name): text})

    with pytest.raises(TwAutogenError, match="since its folder was trusted"):
        open_session(ScriptedModel([]), kernel=FakeKernel(), settings=settings, project=".", folder=here.parent / "s")


OTHERS = {
    "ours comes": (THEIRS, {"workspace.workspace_path": "ws"}, SETTINGS, {"kernel.sandbox": "off"}),
    "ours goes": (SETTINGS, {"kernel.read": ["/srv"]}, THEIRS, {"execution_service.kernel_mode": "local"}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_settings_file_that_was_not_there_when_the_folder_was_compared_does_not_count(here, case):
    good, wants, late, theirs = OTHERS[case]
    write(here, {good: wants})
    trust()
    make = functools.partial(Settings, SECTIONS, project=here, texts={})
    files = type(review_folder())(make()).files_if_trusted()
    assert files is not None
    if case == "ours goes":
        (here / good).unlink()
    write(here, {late: theirs})

    settings = make(trust=Trust.full, files=files)

    assert settings.origin("kernel.sandbox") == Settings.DEFAULT
    assert case == "ours comes" or settings.origin("kernel.read") == str(here / SETTINGS)


def test_a_config_list_behind_a_link_is_hashed_as_it_was_read(here, monkeypatch):
    monkeypatch.setenv("OAI_CONFIG_LIST", "list.json")
    ours = [{"model": "m", "api_key": "k", "base_url": "http://127.0.0.1:1/v1"}]
    write(here, {SETTINGS: {"kernel.read": ["/srv"]}, "good.json": ours})
    write(here, {"evil.json": [{**ours[0], "api_key": "theirs"}]})
    (here / "list.json").symlink_to("good.json")
    trust()
    make = functools.partial(Settings, SECTIONS, project=here, environ={"OAI_CONFIG_LIST": "list.json"}, texts={})
    link(here, "list.json", "evil.json")
    first = make()
    link(here, "list.json", "good.json")

    assert type(review_folder())(first).files_if_trusted() is None


def test_settings_behind_a_link_are_hashed_as_they_were_read(here):
    write(here, {"good.yaml": {"model.api_key": "a"}, "evil.yaml": {"model.api_key": "b"}})
    (here / SETTINGS).symlink_to("good.yaml")
    trust()
    link(here, SETTINGS, "evil.yaml")
    first = Settings(SECTIONS, project=here, texts={})
    link(here, SETTINGS, "good.yaml")

    assert type(review_folder())(first).files_if_trusted() is None


CHANGES = {
    "a role behind a link": ("session.roles", ["planner", "./way/crier"], "crier/crier.py"),
    "what a server's program imports behind a link": (
        "plugin.mcp_servers",
        {"m": {"command": "python", "args": ["way/server.py"]}},
        "beside.py",
    ),
    "programs where a server starts, behind a link": (
        "plugin.mcp_servers",
        {"m": {"command": "make", "args": ["serve"], "cwd": "way"}},
        "Makefile",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_behind_a_link_of_the_folder_ends_trust(here, case):
    key, value, name = CHANGES[case]
    write(here, {SETTINGS: {key: value}})
    write(here.parent / "outside", {"crier/role.yaml": ROLE_YAML, "crier/crier.py": ROLE, "server.py": "0"})
    (here / "way").symlink_to("../outside")
    trust()

    write(here.parent / "outside", {name: "1"})

    assert read_settings().trust is Trust.none


def test_what_the_caller_names_is_used_as_it_is(here):
    write(here, {SETTINGS: {"kernel.read": ["/srv"]}})
    settings = trust()
    write(here, {"mine.yaml": "base: strict\n", "mine.json": '{"mcpServers": {}}', "mine.py": ""})
    write(here, {"mine/role.yaml": ROLE_YAML, "mine/crier.py": ROLE})
    plugin = "from tw_autogen.plugin import plugin\n\n@plugin\ndef mine() -> int:\n    'Do.'\n    return 1\n"
    write(here, {"one.py": plugin})

    with open_session(
        ScriptedModel([]),
        kernel=FakeKernel(),
        roles=["code_interpreter", "./mine"],
        plugins="./one.py",
        policy="mine.yaml",
        mcp_servers="mine.json",
        settings=settings,
        folder=here.parent / "s",
    ) as session:
        assert [role.name for role in session.roles] == ["CodeInterpreter", "Crier"]


@pytest.mark.parametrize("name", ["roles/big/big.py", "roles/big/role.yaml", "plugins/big.py", "plugins/big.yaml"])
def test_a_file_of_code_that_is_too_large_is_said_by_name_and_not_read(here, name):
    write(here, {SETTINGS: {"kernel.read": ["/srv"], "session.roles": ["planner", "big"]}})
    write(here, {"roles/big/role.yaml": ROLE_YAML.replace("crier", "big"), "roles/big/big.py": ROLE})
    write(here, {"plugins/big.py": "from tw_autogen.plugin import plugin\n@plugin\ndef f(): ...\n"})
    write(here, {"plugins/big.yaml": "name: big\ndescription: d\nparameters: []\n"})
    os.truncate(here / name, 200 << 20)  # takes no section on the disk

    settings = trust()
    with pytest.raises(ConfigError, match=rf"{name}.*it has more than 4 MB"):
        open_session(
            ScriptedModel([]),
            kernel=FakeKernel(),
            settings=settings,
            plugins=() if name.startswith("roles") else f"./{name}",
            project=".",
            folder=here.parent / "s",
        )


def read_given(path, own, distrusted):
    return place_inputs([path], own, print, distrusted=[distrusted])[0].read_text()


@pytest.mark.parametrize("place", ["", "sub/"])
def test_a_given_file_that_becomes_a_link_out_of_the_folder_after_the_check_is_not_read(here, place):
    own = here.parent / "own"
    own.mkdir()
    write(here.parent / "secret", {"sales.csv": "SECRET"})
    write(here, {"real/sales.csv": "ok", "sales.csv": "ok"})
    if place:
        (here / "sub").symlink_to("real")
    with SafeFolder(here) as opened:
        (path,) = checked_inputs(f"{place}sales.csv", {}, distrusted=[opened])
        assert read_given(path, own, opened) == "ok"  # a link that stays in the folder is followed

        link(here, place.rstrip("/") or "sales.csv", f"../secret/{'' if place else 'sales.csv'}")

        with pytest.raises(ConfigError, match="a link out of"):
            read_given(path, own, opened)


def test_a_file_of_the_sessions_own_folder_is_that_one_when_a_link_comes_above(here):
    """Plays what code of another process's kernel, which may write above the workspace, can do meanwhile."""
    above, secret = here.parent / "above", here.parent / "secret"
    model = ScriptedModel([plans("Done.", to="User")] * 2)
    with open_session(model, kernel=lambda folder: FakeKernel(folder=folder), folder=above / "ws") as session:
        write(session.folder, {"out.csv": "mine"})
        session.ask("make it")
        write(secret / session.folder.relative_to(above), {"out.csv": "SECRET"})
        above.rename(here.parent / "moved")
        above.symlink_to(secret)

        session.ask("look again", files=[session.folder / "out.csv"])

        name = session.folder.relative_to(above)
        assert (here.parent / "moved" / name / "out.csv").read_text() == "mine"


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("instead", ["link", "folder", "nothing"])
def test_a_given_file_is_read_over_no_link_after_the_folder_of_the_session_was_moved(here, absolute, instead):
    """Plays what code of another process's kernel, which may write above the current folder, can do meanwhile."""
    secret, moved = here.parent / "secret", here.parent / "moved"
    write(secret, {"sales.csv": "SECRET", "real.csv": "SECRET"})
    write(here, {"sales.csv": "ok", "real.csv": "ok"})
    own = here.parent / "own"
    own.mkdir()
    model = ScriptedModel([plans("Done.", to="User")])
    with open_session(model, kernel=FakeKernel(folder=own), folder=here.parent / "s") as session:
        link(here, "sales.csv", secret / "sales.csv")
        here.rename(moved)
        if instead == "link":
            here.symlink_to(secret)
        elif instead == "folder":
            here.mkdir()
            for name in ("sales.csv", "real.csv"):
                link(here, name, secret / name)
        given = [here / name if absolute else name for name in ("sales.csv", "real.csv")]

        with pytest.raises(ConfigError, match="there is no such file|which was moved" if absolute else "a link out of"):
            session.ask("show it", files=given[0])
        if absolute:
            with pytest.raises(ConfigError, match="no such file" if instead == "nothing" else "which was moved"):
                session.ask("show it", files=given[1])
        else:  # the process is still in the folder where it was
            session.ask("show it", files=given[1])
            assert (own / "real.csv").read_text() == "ok"

    assert [path.name for path in own.iterdir()] == ([] if absolute else ["real.csv"])


def test_instructions_that_the_caller_replaces_are_no_text_of_prompts(here):
    write(here, {SETTINGS: {"planner.instructions": "Be brief."}})

    without, replaced = (
        trust_lines(read_settings(said), "trust=True") for said in ({}, {"planner.instructions": "mine"})
    )

    assert any("becomes part of prompts: planner.instructions" in one for one in without)
    assert not any("becomes part of prompts" in one for one in replaced)


@pytest.mark.parametrize("size", [10, 100_000])
def test_of_an_untrusted_folder_a_bounded_number_of_examples_counts_and_the_rest_is_said(here, size):
    write(here, {SETTINGS: {}})
    example = "enabled: true\nrounds: []\n" + "#" * size
    write(here, {f"planner_examples/{number:03}.yaml": example for number in range(150 if size == 10 else 9)})

    project = read_project(here, read_settings(), named=False)

    more, review = 125 if size == 10 else 7, review_folder()
    assert len(review.prompt_sources) == (25 if size == 10 else 2)
    assert all(source in review.prompts_line() for source in review.prompt_sources)
    assert project.left_out[-1].startswith(f"{here}: {more} examples: at most 25, of 256 kB together, count")


def test_examples_that_an_untrusted_folders_settings_name_are_bounded_together_and_named(here):
    write(here, {SETTINGS: {"recall.planner_examples": "ours", "recall.code_examples": "code"}})
    write(here, {f"{name}/{number:02}.yaml": "rounds: []\n" for name in ("ours", "code") for number in range(20)})

    review = review_folder()

    assert [setting.key for setting in review.settings.prompt_settings] == ["recall.planner_examples"]
    assert [one.key for one in review.settings.left_out] == ["recall.code_examples"]
    assert review.prompts_line().count("ours/") == 20


def test_few_links_among_the_examples_of_an_untrusted_folder_are_followed(here, monkeypatch, cpu_seconds):
    write(here, {SETTINGS: {}, "r.yaml": "rounds: []\n", "a/x": ""})
    (here / "planner_examples").mkdir()
    for number in range(600):
        (here / f"planner_examples/{number}.yaml").symlink_to(f"{'../a/' * 500}../r.yaml")
    started = cpu_seconds()

    project = read_project(here, read_settings(), named=False)

    assert cpu_seconds() - started < 6
    assert "examples: at most 25" in project.left_out[-1]


def test_a_folder_of_too_many_plugins_is_not_read(here):
    write(here, {SETTINGS: {}, **{f"plugins/p{number}.py": "" for number in range(2001)}})

    assert [want.name for want in review_folder().wants] == ["plugins"]
    with pytest.raises(ConfigError, match="plugins: 2001 YAML and Python files of 0 bytes; at most 2000"):
        read_project(here, read_settings())


@pytest.mark.parametrize("name", ["way", "way/plugins", "way/more/plugins"])
def test_a_new_plugin_is_written_over_no_link_below_the_current_folder(here, name):
    (here.parent / "outside").mkdir()
    (here / "way").symlink_to("../outside")

    with pytest.raises(ConfigError, match="way is a link, which code may have made"):
        write_plugin(os.path.basename, Path(name))

    assert list((here.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("what", ["files", "session", "session with a journal", "other session", "above"])
def test_an_earlier_sessions_file_is_read_in_the_folder_that_was_looked_at(tmp_path, monkeypatch, what):
    """Plays what code of another process's kernel, which may write above the sessions, does while one opens."""
    monkeypatch.chdir(tmp_path)
    secret, above = tmp_path / "secret", tmp_path / "above"
    earlier, own = above / "session-1", tmp_path / "own"
    write(secret, {"sales.csv": "SECRET", "session-1/files/sales.csv": "SECRET", "session-1/events.jsonl": OPENED})
    write(earlier, {"files/sales.csv": "ok", "events.jsonl": OPENED})
    own.mkdir()
    model = ScriptedModel([plans("Done.", to="User")])
    with (
        SafeFolder.without_links(earlier / "files") as held,
        open_session(model, kernel=FakeKernel(folder=own), folder=tmp_path / "s", trust=True, project=".") as session,
    ):
        session.inputs.distrust(held)
        moved = {"files": earlier / "files", "above": above}.get(what, earlier)
        moved.rename(tmp_path / "moved")
        if what in ("session", "session with a journal"):
            earlier.mkdir()
            (earlier / "files").symlink_to(secret)
            if what != "session":
                (earlier / "events.jsonl").write_text(OPENED)
        else:
            moved.symlink_to({"files": secret, "other session": secret / "session-1"}.get(what, secret))

        with pytest.raises(ConfigError, match="which was moved"):
            session.ask("show it", files=earlier / "files" / "sales.csv")

    assert not list(own.glob("*.csv"))


def test_a_link_of_codes_in_the_folder_where_it_works_is_not_followed_where_that_is_the_current_folder_too(here):
    write(here, {"sales.csv": "ok", "real.csv": "other"})
    own = here.parent / "own"
    own.mkdir()
    with LocalKernel(here), SafeFolder(here) as opened:
        assert read_given(Path("sales.csv"), own, opened) == "ok"
        link(here, "sales.csv", "real.csv")

        with pytest.raises(ConfigError, match="a link"):
            read_given(Path("sales.csv"), own, opened)


EXAMPLE = "enabled: true\nrounds:\n- id: r\n  user_query: hi\n  state: finished\n  post_list: []\n"


@pytest.mark.parametrize("key", ["recall.planner_examples", "recall.code_examples"])
@pytest.mark.parametrize("when", ["changed", "new"])
def test_an_example_that_comes_after_the_folder_was_compared_is_refused(here, key, when):
    write(here, {SETTINGS: {key: "ex", "kernel.environment": ["FOO"]}, "ex/a.yaml": EXAMPLE})
    trust()
    read = read_settings()
    write(here, {f"ex/{'a' if when == 'changed' else 'b'}.yaml": EXAMPLE.replace("hi", "evil")})

    with pytest.raises(TwAutogenError, match=f"it {'changed' if when == 'changed' else 'is new'} since"):
        open_session(ScriptedModel([]), settings=read).close()


ELSEWHERE = {
    "an example": ("planner_examples/b.yaml", "mine/a.yaml", "examples"),
    "the plugins": ("plugins", "mine", "plugins"),
    "a role": ("roles/b", "mine/b", "roles"),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_a_named_folder_has_over_links_out_of_it_counts_only_after_a_question_that_shows_it(here, case):
    name, target, kind = ELSEWHERE[case]
    role = {"b/role.yaml": "alias: B\nintro: B.\nmodule: b\n", "b/b.py": ROLE.replace("Crier", "B")}
    plugin = 'from tw_autogen.plugin import plugin\n\n\n@plugin\ndef b() -> int:\n    """B."""\n    return 1\n'
    write(here.parent / "mine", {"a.yaml": EXAMPLE, "b.py": plugin, **role})
    write(here, {SETTINGS: {}})
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).symlink_to(here.parent / target)

    def brought():
        project = read_project(here, read_settings(project=here), named=True)
        found = {"examples": project.examples, "plugins": project.plugins, "roles": project.roles}[kind]
        return len(found), " ".join(project.left_out)

    count, left_out = brought()
    assert count == 0
    assert "mine" in left_out or kind == "examples"
    review = review_folder(project=here)
    assert [want.name for want in review.wants if str(here.parent / "mine") in want.does] == [kind]
    assert review.remember(review.sha256()) == ""
    assert brought()[0] == 1


@pytest.mark.parametrize("name", ["roles/crier/crier.py", "roles/crier/in/more.py", "plugins/lib/more.py"])
def test_the_question_shows_where_links_in_code_lead(here, name):
    write(here.parent, {"mine/more.py": ROLE})
    write(here, {SETTINGS: {}, "roles/crier/role.yaml": ROLE_YAML, "plugins/a.py": PLUGIN})
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).symlink_to(here.parent / "mine" / "more.py")
    (here / "roles" / "crier" / "own").symlink_to("own")  # a circle, which leads nowhere

    shown = [want.does for want in review_folder().wants]

    assert f"{name} -> {here.parent / 'mine' / 'more.py'}, outside of the folder" in shown
    assert not [does for does in shown if does.startswith("roles/crier/own ->")]
    assert trust_lines(trust(), "--trust") == ()


@pytest.mark.parametrize("name", ["role.py", "data", "role.yaml"])
def test_links_in_the_folder_of_a_role_that_was_named_are_followed(here, name):
    write(here.parent, {"mine/data/a.csv": "x", "mine/role.py": ROLE, "mine/role.yaml": ROLE_YAML})
    write(here, {SETTINGS: {}, "roles/crier/role.yaml": ROLE_YAML, "roles/crier/crier.py": ROLE})
    place = here / "roles" / "crier" / name.replace("role.py", "crier.py")
    place.unlink(missing_ok=True)
    place.symlink_to(here.parent / "mine" / name)

    assert [*read_project(here, read_settings(project=here), named=True).roles] == ["crier"]


@pytest.mark.parametrize("roles", ["code_interpreter, ./crier,", "[code_interpreter, ./crier]"])
@pytest.mark.parametrize("home", ["home", "home (work)"])
def test_what_the_users_own_file_names_beside_it_is_not_looked_for_in_the_current_folder(
    here, monkeypatch, home, roles
):
    monkeypatch.setenv("HOME", str(here.parent / home))
    own = here.parent / home / ".config" / "tw-autogen"
    settings = {"code_interpreter.policy": "house.yaml", "session.roles": roles}
    write(own, {"config.yaml": settings, "house.yaml": "base: strict\n"})
    write(own / "crier", {"role.yaml": ROLE_YAML, "crier.py": ROLE})
    write(
        here, {"house.yaml": "base: default\nmodules: all\n", "crier/role.yaml": ROLE_YAML, "crier/crier.py": "1 / 0"}
    )

    with open_session(ScriptedModel([]), kernel=FakeKernel([])) as session:
        assert [role.name for role in session.roles] == ["CodeInterpreter", "Crier"]
        assert "is not allowed" in session.run_code("import subprocess").text
