"""Of a folder that is not trusted nothing is looked at, or shown, that its settings and links name outside of it."""

import errno
import functools
import io
import json
import os
import re
import sys

import pytest

from tests.session.written_files import write
from tw_autogen import open_session
from tw_autogen.errors import ConfigError
from tw_autogen.plugin.mcp import read_mcp_servers
from tw_autogen.session import Project, read_project, read_settings, review_folder, trust_lines
from tw_autogen.settings_trust import Trust
from tw_autogen.testing import FakeKernel, ScriptedModel

SETTINGS = "tw_autogen.yaml"
LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
SERVERS = {
    "mcpServers": {
        "github": {
            "command": "npx",
            "args": ["-y", "@mcp/github", "--token=CANARY-1", "--api-key", "CANARY-2", "-e", "NAME=CANARY-3"],
            "env": {"GITHUB_TOKEN": "CANARY-4", "DB": "postgres://u:CANARY-5@h/db"},
        },
        "crm": {
            "url": "https://u:CANARY-6@crm.example/mcp?key=CANARY-7#CANARY-8",
            "headers": {"Authorization": "Bearer CANARY-9", "X-A": "CANARY-10"},
        },
    }
}
PLUGIN = "from tw_autogen.plugin import plugin\n\n\n@plugin(runs_in='host')\ndef far() -> int:\n    'Do it.'\n"
ROLE = {"role.yaml": "alias: Far\nintro: Far.\nmodule: far\n", "far.py": "FAR = 1\n"}
CALLS = ("open", "stat", "lstat", "readlink", "listdir", "scandir", "access")


@pytest.fixture
def outside(here, tmp_path):
    """Lay out what lies outside of the folder, and return the place of it."""
    write(tmp_path / "far", **{"mcp.json": json.dumps(SERVERS), "policy.yaml": "base: default\n", "x.txt": "x"})
    for place in ("plugins", "plugins/plugins"):
        write(tmp_path / "far" / place, **{"far.py": PLUGIN})
    write(tmp_path / "far" / "roles" / "far", **ROLE)
    write(tmp_path / "far" / "examples", **{"a.yaml": "enabled: true\nrounds: []\n"})
    return tmp_path / "far"


@pytest.fixture
def looked_at(monkeypatch, outside):
    """Return the paths outside of the folder for which the system was asked meanwhile."""
    seen = []

    def watch(module, name):
        call = getattr(module, name)

        @functools.wraps(call)
        def noted(path=".", *args, **kwargs):
            if isinstance(path, str | bytes | os.PathLike):
                text = os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
                if (text + os.sep).startswith(str(outside) + os.sep):
                    seen.append(f"{name} {text}")
            return call(path, *args, **kwargs)

        monkeypatch.setattr(module, name, noted)

    for name in CALLS:
        watch(os, name)
    watch(io, "open")
    return seen


NAMED = {
    "servers": {"plugin.mcp_servers": "{far}/mcp.json"},
    "plugins": {"plugin.folder": "{far}/plugins"},
    "plugins up from here": {"plugin.folder": "../far/plugins"},
    "roles": {"session.role_folder": "{far}/roles", "session.roles": ["planner", "{far}/roles/far"]},
    "sessions": {"session.workspace": "{far}/ws", "session.user_folder": "{far}"},
    "grants": {"kernel.read": ["{far}/x.txt"], "kernel.write": ["../far"]},
    "a program": {"kernel.python": "{far}/python"},
    "a role's paths": {"role.manual_reader.folder": "{far}", "role.document_retriever.index": "../far"},
    "examples": {"recall.planner_examples": "{far}/examples", "recall.code_examples": "../far/examples"},
    "lessons": {"recall.experience": "{far}/examples"},
    "a policy": {"code_interpreter.policy": "{far}/policy.yaml"},
    "models": {"embedding.folder": "{far}/emb", "embedding.cache": "{far}/cache"},
}
LINKED = {
    "servers": ({"plugin.mcp_servers": "mcp.json"}, {"mcp.json": "mcp.json"}),
    "plugins": ({}, {"plugins": "plugins"}),
    "plugins in plugins": ({}, {"plugins/plugins": "plugins"}),
    "one plugin": ({}, {"plugins/far.py": "plugins/far.py"}),
    "roles": ({}, {"roles": "roles"}),
    "one role": ({}, {"roles/far": "roles/far"}),
    "a role's file": ({}, {"roles/far/role.yaml": "roles/far/role.yaml"}),
    "examples": ({}, {"examples/planner_examples": "examples"}),
    "one example": ({}, {"planner_examples/a.yaml": "examples/a.yaml"}),
    "a grant": ({"kernel.read": ["data"], "kernel.write": ["a/../data"]}, {"data": ""}),
    "a link in a setting's folder": ({"plugin.folder": "tools"}, {"tools/far.py": "plugins/far.py"}),
    "named examples": ({"recall.planner_examples": "mine"}, {"mine/a.yaml": "examples/a.yaml"}),
}
"""Settings, and links of the folder with what of `far` they lead to."""


def looked(project=None):
    settings = read_settings(project=project)
    lines = trust_lines(settings, "--trust")
    trust_lines(settings, "--trust", brings_code=False)
    read_project(".", settings, named=False)
    Project.place_of_plugins(".", settings)  # as `plugins list` asks
    return settings, "\n".join(lines)


@pytest.mark.parametrize("case", NAMED)
def test_nothing_is_looked_at_that_settings_name_outside_of_a_folder_that_is_not_trusted(
    here, outside, looked_at, case
):
    write(here, **{SETTINGS: json.dumps(NAMED[case]).replace("{far}", str(outside))})

    settings, lines = looked()

    assert settings.trust is Trust.none
    assert looked_at == []
    assert all(key in lines for key in NAMED[case])
    assert "CANARY" not in lines


@LINKS
@pytest.mark.parametrize("case", LINKED)
def test_nothing_is_looked_at_where_links_lead_out_of_a_folder_that_is_not_trusted(here, outside, looked_at, case):
    settings, links = LINKED[case]
    write(here, **{SETTINGS: settings, "a/b.txt": ""})
    for name, target in links.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).symlink_to(outside / target)

    _, lines = looked()

    assert looked_at == []
    assert "(not trusted): left out " in lines
    assert "CANARY" not in lines
    assert "far outside the sandbox" not in lines
    for want in review_folder().wants:  # whoever is asked sees it
        assert want.name.partition(".")[0] in lines or want.name == "links"


@pytest.mark.parametrize("written", ["~/.cursor/mcp.json", "../home/.cursor/mcp.json"])
@pytest.mark.parametrize("named", [False, True])
def test_a_file_of_servers_elsewhere_is_named_as_it_is_written_and_nobody_is_asked_about_it(
    here, tmp_path, written, named
):
    write(tmp_path / "home" / ".cursor", **{"mcp.json": json.dumps(SERVERS)})
    write(here, **{SETTINGS: {"plugin.mcp_servers": written}})
    project = here if named else None

    _, lines = looked(project)

    assert f"left out plugin.mcp_servers (names {written}, outside of this folder); trust" in lines
    review = review_folder(project=project)
    assert [want.does for want in review.wants] == [f"can't be read: names {written}, outside of this folder"]
    assert "can't be read, or lies elsewhere, so you are not asked" in review.cannot_ask_reason()


@LINKS
@pytest.mark.parametrize("way", ["../{}/m.json", "link.json"])
def test_whoever_is_asked_sees_all_words_of_servers_in_the_folder_however_their_file_is_named(here, way):
    servers = {"m": {"command": "python3 -c/../x", "args": ["-c", "evil"], "env": {"A": "b"}}}
    write(here, **{SETTINGS: {"plugin.mcp_servers": way.format(here.name)}, "m.json": json.dumps(servers)})
    (here / "link.json").symlink_to(f"../{here.name}/m.json")

    (want,) = review_folder().wants

    assert want.does == "m: would start: A=b 'python3 -c/../x' -c evil"


MASKED = {
    "a variable": ({"env": {"A": "CANARY"}}, "A=… c"),
    "the name of a variable": ({"env": {"A": "${TOKEN}"}}, "A=${TOKEN} c"),
    "a default": ({"env": {"A": "${TOKEN:-CANARY}"}}, "A=… c"),
    "an option": ({"args": ["--token", "CANARY", "x"]}, "c --token … x"),
    "an option with a sign": ({"args": ["--apiKey=CANARY"]}, "c '--apiKey=…'"),
    "a header": ({"args": ["-H", "X-Any: CANARY"]}, "c -H 'X-Any: …'"),
    "a header by itself": ({"args": ["Authorization: Basic CANARY"]}, "c 'Authorization: …'"),
    "a variable of a container": ({"args": ["run", "-e", "A=CANARY", "x"]}, "c run -e 'A=…' x"),
    "one in one word": ({"args": ["--env=A=CANARY"]}, "c '--env=A=…'"),
    "an address": ({"args": ["https://u:CANARY@h/p?k=CANARY"]}, "c 'https://…@h/p?…'"),
    "an assignment": ({"args": ["PASSWORD=CANARY"]}, "c 'PASSWORD=…'"),
    "a key": ({"args": ["CANARY0123456789abcdef"]}, "c …"),
    "plain words": ({"args": ["-y", "@mcp/server-filesystem@2.1", "./data"]}, "c -y @mcp/server-filesystem@2.1 ./data"),
}


@pytest.mark.parametrize("case", MASKED)
def test_a_line_shows_no_secret_of_the_folders_own_servers_and_the_question_the_whole_command(here, case):
    server, shown = MASKED[case]
    write(here, **{SETTINGS: {"plugin.mcp_servers": {"m": {"command": "c", **server}}}})

    _, line = looked()
    (want,) = review_folder().wants

    assert f"plugin.mcp_servers (m: would start: {shown});" in line
    assert "CANARY" not in line
    assert ("CANARY" in want.does) is ("CANARY" in str(server))


def test_what_is_wrong_with_servers_is_told_in_a_line_without_their_words(here):
    write(
        here, **{SETTINGS: {"plugin.mcp_servers": "mcp.json"}, "mcp.json": '{"m": {"command": "c", "args": "CANARY"}}'}
    )

    _, line = looked()

    assert "left out plugin.mcp_servers (can't be read); trust" in line


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_that_settings_name_is_not_opened(here, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    write(here, **{SETTINGS: {"plugin.mcp_servers": str(tmp_path / "pipe")}})
    looked()
    review_folder().sha256()

    with pytest.raises(OSError, match="No such device") as refused:  # nobody has it open for reading, nor had
        os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    assert refused.value.errno == errno.ENXIO


def closed(path):
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0)


WRONG = {
    "a word that is no text": (
        {"plugin.mcp_servers": "mcp.json"},
        lambda here: write(here, **{"mcp.json": '{"m": {"command": "c", "args": ["~\\ud800/x"]}}'}),
        r"mcp\.json: MCP server 'm': args: a NUL or half of a surrogate pair, which no program takes; remove it",
    ),
    "a folder with a long name": (
        {"plugin.mcp_servers": {"m": {"command": "c", "cwd": "c" * 5000}}},
        lambda here: None,
        "MCP server 'm': cwd: File name too long; name a folder that is there, or leave it out",
    ),
    "plugins that can't be listed": ({}, lambda here: closed(here / "plugins"), r"plugins: it can't be listed"),
    "plugins behind a closed folder": (
        {"plugin.folder": "p/q"},
        lambda here: closed(here / "p"),
        "p/q: it can't be l.*chmod u",
    ),
    "roles that can't be listed": ({}, lambda here: closed(here / "roles"), "roles: it can't be listed.*chmod u"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are other ones there")
@pytest.mark.parametrize("case", WRONG)
def test_what_can_not_be_looked_through_is_one_line_of_words_and_no_traceback(here, tmp_path, case):
    settings, make, words = WRONG[case]
    write(here, **{SETTINGS: settings})
    make(here)
    if any(os.access(here / one, os.R_OK) for one in ("plugins", "roles", "p")):
        pytest.skip("root may list every folder")
    try:
        looked()
        review = review_folder()
        if not review.cannot_ask_reason():
            assert review.sha256() == ""
            assert re.search(words, review.no_hash_reason())
        if "roles" in case or "server" in words:
            return
        with pytest.raises(ConfigError, match=words) as caught:
            open_session(ScriptedModel([]), kernel=FakeKernel(), project=here, trust=True, folder=tmp_path / "s")
        assert len(str(caught.value).splitlines()) == 1
    finally:
        for one in ("plugins", "roles", "p"):
            if (here / one).exists():
                (here / one).chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are other ones there")
def test_a_plugin_folder_that_is_the_whole_machine_ends_no_command(here):
    write(here, **{SETTINGS: {"plugin.folder": "/"}})

    _, line = looked()

    assert "plugin.folder (names /, outside of this folder)" in line
    assert any(want.name == "plugin.folder" for want in review_folder().wants)


def test_a_servers_word_that_is_no_text_is_an_error_that_names_it():
    with pytest.raises(ConfigError, match="MCP server 'm': env: a NUL or half of a surrogate pair"):
        read_mcp_servers({"m": {"command": "c", "env": {"A": "\ud800"}}})


LEVELS = "".join(f", a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
ODD = {
    "aliases in a text": (
        f'model: {{extra: "{{a0: &a0 [x, x]{LEVELS}}}"}}\n',
        "model.extra: input should be a valid dict",
    ),
    "a nested text": (f"model: {{extra: '{'{a: ' * 900}b{'}' * 900}'}}\n", "model.extra: input should be a valid dict"),
    "no key": ("CANARY of another file, sk-12: x\n", "unknown setting (no word)"),
}


@pytest.mark.parametrize(("text", "problem"), ODD.values(), ids=ODD)
def test_what_no_person_writes_into_settings_is_an_error_that_quotes_no_line(here, text, problem, cpu_seconds):
    (here / SETTINGS).write_text(text)
    started = cpu_seconds()

    with pytest.raises(ConfigError) as raised:
        read_settings()

    assert problem in str(raised.value)
    assert "CANARY" not in str(raised.value)
    assert len(str(raised.value)) < 5000
    assert cpu_seconds() - started < 5


def test_no_installed_role_is_imported_because_of_a_folder_that_is_not_trusted(here, tmp_path, monkeypatch):
    site = tmp_path / "site"
    info = {
        "METADATA": "Metadata-Version: 2.1\nName: far\nVersion: 1.0\n",
        "entry_points.txt": "[tw_autogen.roles]\nfar = far_role:Far\n",
    }
    write(site / "far-1.0.dist-info", **info)
    write(site, **{"far_role.py": "raise RuntimeError('imported')\n"})
    write(here, **{SETTINGS: "role: {far: {place: 'a/b'}}\n"})
    monkeypatch.syspath_prepend(str(site))

    settings = read_settings()

    assert [one.key for one in settings.left_out] == ["role.far.place"]
    assert trust_lines(settings, "--trust")
    assert "far_role" not in sys.modules


def test_a_path_in_the_home_of_nobody_is_an_error_that_names_the_setting(here):
    (here / SETTINGS).write_text("role: {document_retriever: {index: ~nobody-at-all/x}}\n")

    assert [one.key for one in read_settings().left_out] == ["role.document_retriever.index"]
    for read in (review_folder, functools.partial(read_settings, project=here)):
        with pytest.raises(ConfigError, match=r"role\.document_retriever\.index: .*home"):
            read()
