"""Policies by name, and policies of one's own from YAML."""

import pytest

from tw_autogen.code_interpreter import CodeInterpreterSettings, Policy, find_policy, verify
from tw_autogen.code_interpreter.policy import POLICIES, read_policy
from tw_autogen.code_interpreter.prompts import introduction, static_prompt
from tw_autogen.conversation import INTERPRETATION_RULES
from tw_autogen.errors import ConfigError, PolicyError
from tw_autogen.planner import Planner
from tw_autogen.testing import ScriptedModel


def kinds(code, name, plugins=()):
    return [one.kind for one in verify(code, POLICIES[name], plugins=plugins)]


def test_the_names_are_these_and_the_default_is_the_default():
    assert list(POLICIES) == ["default", "strict", "plugins-only", "no-shell"]
    assert find_policy("default") == Policy()
    assert find_policy("plugins_only") == POLICIES["plugins-only"]


@pytest.mark.parametrize(
    ("code", "default", "strict", "no_shell"),
    [
        ("open('a.csv')", [], ["function"], []),
        ("from pathlib import Path", [], ["module"], []),
        ("import socket", ["module"], ["module"], []),
        ("eval('1')", ["function"], ["function"], []),
        ("!ls", ["shell"], ["shell"], ["shell"]),
        ("import os as o\no.system('ls')", ["module"], ["module"], ["function"]),
        ("import subprocess", ["module"], ["module"], ["module"]),
        ("getattr(df, name)()", [], ["function"], []),
        ("df.mean()", [], [], []),
        ("df.to_csv('a.csv')", [], ["function"], []),
        ("print(df.to_csv(), df.to_string(index=False), df.to_json(orient='records'))", [], [], []),
        ("df.to_json('a.json')", [], ["function"], []),
        ("df.to_string(buf='a.txt')", [], ["function"], []),
        ("df.to_string(**more)", [], ["function"], []),
        ("write = df.to_csv", [], ["function"], []),
        ("type(x).__name__", [], [], []),
        ("x.__class__", [], ["attribute"], []),
    ],
)
def test_what_the_named_policies_allow(code, default, strict, no_shell):
    assert (kinds(code, "default"), kinds(code, "strict"), kinds(code, "no-shell")) == (default, strict, no_shell)


def test_a_policy_of_ones_own_changes_a_named_one(tmp_path):
    path = tmp_path / "ours.yaml"
    path.write_text(
        "base: strict\nmodules: {add: [polars, csv], remove: [json]}\nblocked_functions: {remove: [open]}\n"
        "magics: [time]\nshell: false\n",
        encoding="utf-8",
    )

    policy = read_policy(path)

    assert policy == find_policy("ours.yaml", folder=tmp_path)
    assert verify("import polars\n%time open('a')", policy) == []
    assert [one.kind for one in verify("import json", policy)] == ["module"]


def test_a_policy_of_the_home_is_not_one_of_a_folder_that_is_called_so(tmp_path, monkeypatch):
    home, here = tmp_path / "home", tmp_path / "here"
    for folder, base in ((home, "strict"), (here / "~", "default"), (here / "~nobody-is-called-so", "default")):
        folder.mkdir(parents=True)
        (folder / "p.yaml").write_text(f"base: {base}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)

    assert find_policy("~/p.yaml") == find_policy("strict")
    with pytest.raises(ConfigError, match=r"~nobody-is-called-so/p\.yaml"):
        find_policy("~nobody-is-called-so/p.yaml")


def test_all_lifts_a_limit(tmp_path):
    path = tmp_path / "ours.yml"
    path.write_text("base: strict\nmodules: all\n", encoding="utf-8")

    assert verify("import polars", read_policy(path)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("blocked_module: [a]\n", r"unknown key 'blocked_module'; did you mean 'blocked_modules'\?"),
        ("install: allow\n", "unknown key 'install'"),
        ("base: stric\n", r"base: no policy is called 'stric'; did you mean 'strict'\?"),
        ("base: [a]\n", "base: no policy is called"),
        ("modules: pandas\n", "modules: expected a list of names, found 'pandas'"),
        ("modules: {add: [a]}\n", "modules: the base has no list that could be changed"),
        ("magics: {ad: [a]}\n", r"magics: unknown key 'ad'; did you mean 'add'\?"),
        ("magics: {remove: [nothing]}\n", "magics.remove: 'nothing' is not in the base's list"),
        ("shell: maybe\n", "shell: expected true or false, found 'maybe'"),
        ("- a\n", "expected keys and values, found list"),
        ("a: [\n", "not YAML"),
    ],
)
def test_a_wrong_file_is_an_error_with_its_path_and_the_key(tmp_path, text, problem):
    path = tmp_path / "ours.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(PolicyError, match=rf"ours\.yaml.*{problem}"):
        read_policy(path)


def test_a_missing_file_and_an_unknown_name_are_errors(tmp_path):
    with pytest.raises(PolicyError, match="there is no such file"):
        read_policy(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=r"no policy is called 'strickt'; did you mean 'strict'\?"):
        find_policy("strickt")


@pytest.mark.parametrize("name", POLICIES)
def test_the_summary_says_it_in_a_few_lines(name):
    assert len(POLICIES[name].summary()) < 1800


def test_where_files_are_refused_neither_model_is_told_that_it_has_them():
    open_ones = static_prompt(POLICIES["default"], "", CodeInterpreterSettings()), introduction(POLICIES["default"], 3)
    strict = static_prompt(POLICIES["strict"], "", CodeInterpreterSettings()), introduction(POLICIES["strict"], 3)

    assert "save what they ask for" in open_ones[0]
    assert "reads and writes files" in open_ones[1]
    assert "save what they ask for" not in strict[0]
    assert "reads and writes files" not in strict[1]
    assert "data come as variables and from plugins" in strict[0]


@pytest.mark.parametrize(
    ("policy", "sentences"),
    [
        (POLICIES["default"], ""),
        (Policy().of_modules(["pandas", "math"]), "Its code may import only: math, pandas."),
        (Policy(modules=frozenset()), "Its code may import nothing."),
        (Policy(functions=frozenset({"len", "abs"})), "Its code may call only plugins, abs, len."),
    ],
)
def test_the_planner_too_is_told_which_modules_and_functions_alone_code_may_use(policy, sentences):
    text = introduction(policy, 3)

    assert text.partition("packages.")[2].strip() == sentences
    assert text.count("Its code may ") == 1 + bool(sentences)


def test_both_roles_read_what_a_request_leaves_open_by_one_text():
    planner = Planner(ScriptedModel([])).prompt

    assert (
        planner.count(INTERPRETATION_RULES)
        == static_prompt(POLICIES["default"], "", CodeInterpreterSettings()).count(INTERPRETATION_RULES)
        == 1
    )
