from __future__ import annotations

import dataclasses

import pytest

from tw_autogen.code_interpreter import Policy


def test_the_default_summary_is_short_and_names_what_is_refused():
    lines = Policy().summary().splitlines()

    assert len(lines) <= 10
    assert len(Policy().summary()) < 900
    for word in ("subprocess", "network", "environment", "Don't delete", "eval", "input", "%pip"):
        assert any(word in line for line in lines), word


def test_the_summary_of_equal_policies_is_the_same_text():
    assert Policy(modules=frozenset({"b", "a"})).summary() == Policy(modules=frozenset({"a", "b"})).summary()


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        (Policy(modules=frozenset({"pandas", "math"})), "- Import only: math, pandas."),
        (Policy(modules=frozenset()), "- Import nothing."),
        (Policy(functions=frozenset()), "- Call only plugins."),
        (Policy(functions=frozenset({"len"})), "- Call only plugins, len."),
        (Policy(magics=frozenset()), "- Don't use magics."),
        (Policy(blocked_functions=Policy().blocked_functions | {"open", ".to_csv"}), "- Don't use .to_csv, open."),
        (Policy(blocked_modules=Policy().blocked_modules | {"pickle"}), "- Don't use pickle."),
    ],
)
def test_the_summary_says_what_a_policy_adds(policy, line):
    assert line in policy.summary().splitlines()


def test_the_summary_leaves_out_what_a_policy_allows():
    summary = Policy(blocked_modules=frozenset(), blocked_functions=frozenset()).summary()

    assert "network" not in summary
    assert "processes" not in summary


def test_a_policy_is_a_value():
    assert Policy() == Policy()
    assert len({Policy(), Policy(), Policy(shell=True)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="shell"):
        Policy().shell = True
