"""Settings files that are links, or no YAML: what is read, and what an error says of what they hold."""

import sys
import traceback

import pytest

from tests.session.written_files import write
from tw_autogen.errors import ConfigError
from tw_autogen.session import read_settings

SECRET = "CANARY-0123456789"
PUT = "; put the file itself there, or trust the folder"

BROKEN = {
    "an assignment": f"# keys\nx: 1\nAPI_KEY={SECRET}\n",
    "an open quotation": f'a: "x\nb: {SECRET}: y\n',
    "a key without a value": f"[default]\naws_access_key_id = {SECRET}\n",
    "an alias": f"password: *{SECRET}\n",
    "a tag": f"password: !{SECRET} x\n",
    "an anchor and a sign": f"a: &{SECRET} [1\n",
    "an escape": f'a: "\\q{SECRET}"\n',
    "a NUL": f'password: "{SECRET}\\0"\n',
    "half of a pair": f'role.x.a: {{b: ["{SECRET}\\uD800"]}}\n',
    "no mapping": f"{SECRET}\n",
    "a date in no month": "a: 2001-99-99\n",
}


@pytest.mark.parametrize("name", ["tw_autogen.yaml", "taskweaver_config.json"])
@pytest.mark.parametrize("case", BROKEN)
def test_an_error_of_a_settings_file_quotes_none_of_its_lines(here, case, name):
    write(here, **{name: BROKEN[case]})

    for how in ({}, {"project": here}, {"trust": True}):
        with pytest.raises(ConfigError, match=rf"{name}:") as caught:
            read_settings(**how)
        shown = "".join(traceback.format_exception(caught.value))
        assert SECRET not in shown
        assert len(str(caught.value).splitlines()) == 1


def test_an_error_of_a_settings_file_says_the_line_and_the_names_of_keys(here):
    write(here, **{"tw_autogen.yaml": "session: {max_posts: 3}\nAPI_KEY=x\n"})
    with pytest.raises(ConfigError, match=r"tw_autogen\.yaml:\d: neither YAML nor JSON: could not find expected ':'"):
        read_settings()

    write(here, **{"tw_autogen.yaml": "session:\n  max_posts: 3\n  max_posts: 4\n"})
    with pytest.raises(ConfigError, match=r"tw_autogen\.yaml:3: neither YAML nor JSON: 'max_posts' stands twice"):
        read_settings()


PRIVATE = {
    "a hidden file beside it": (".env", ".env", ({}, "named")),
    "one that is named like a secret": ("passwords.txt", "passwords.txt", ({}, "named")),
    "a hidden folder elsewhere": ("../home/.aws/credentials", "../home/.aws/credentials", ("named",)),
    "a hidden folder, by its whole path": ("{home}/.aws/credentials", "../home/.aws/credentials", ("named",)),
    "a key elsewhere": ("../home/id_rsa", "../home/id_rsa", ("named",)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
@pytest.mark.parametrize("name", ["tw_autogen.yaml", "taskweaver_config.json"])
@pytest.mark.parametrize("case", PRIVATE)
def test_a_settings_file_that_is_a_link_to_what_is_hidden_or_secret_is_refused(here, tmp_path, case, name):
    link, target, ways = PRIVATE[case]
    (here / target).parent.mkdir(exist_ok=True)
    (here / target).write_text('{"planner.instructions": "x"}', encoding="utf-8")
    (here / name).symlink_to(link.format(home=tmp_path / "home"))

    for way in ways:
        with pytest.raises(ConfigError, match=f"a link to .*, which is hidden or named like a secret{PUT}"):
            read_settings(project=here if way else None)
    assert read_settings(trust=True).texts[here / name]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_other_links_of_a_folder_that_is_named_are_followed_and_so_are_links_to_the_folder(here, tmp_path):
    (tmp_path / "own.yaml").write_text("planner.instructions: x\n", encoding="utf-8")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "tw_autogen.yaml").symlink_to("../own.yaml")
    (here / "project").symlink_to(tmp_path / ".hidden")

    for project in (here / "project", tmp_path / ".hidden"):
        assert read_settings(project=project).origin("planner.instructions") == str(project / "tw_autogen.yaml")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_settings_file_of_the_users_own_may_be_any_link(here, tmp_path):
    config = tmp_path / "home" / ".config" / "tw-autogen"
    write(tmp_path / "home" / ".dotfiles", **{"tw.yaml": "planner.instructions: x\n"})
    config.mkdir(parents=True)
    (config / "config.yaml").symlink_to("../../.dotfiles/tw.yaml")

    assert read_settings().origin("planner.instructions").endswith("config.yaml")
