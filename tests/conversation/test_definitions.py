"""What the User has defined: what is in force after changes, and what `undo` and the end of a what-if bring back."""

import pytest

from tw_autogen.conversation import Definitions, Post, Round, changes_attachment


def keep(name, sentence, kind="rule", variable=""):
    return {"do": "set", "name": name, "sentence": sentence, "kind": kind, "variable": variable}


CORE = keep("core", "3 orders or more", variable="core")
DAYS = keep("period", "use 90 days")
PRICE = keep("price", "0.30 EUR per kWh")
WHAT_IF = keep("Price", "what if it were 0.40", "what-if", "cost_whatif")
OTHER = keep("price", "what if 0.50", "what-if")
END, UNDO = {"do": "end"}, {"do": "undo"}


def lived(*requests):
    """Return rounds, each with posts that carry the changes of one request."""
    rounds = []
    for changes in requests:
        attached = (changes_attachment(changes),) if changes else ()
        rounds.append(Round("a request", posts=[Post("Planner", "User", "Noted.", attached)]))
    return rounds


@pytest.mark.parametrize(
    ("requests", "in_force", "stale"),
    [
        ([], [], []),
        ([[CORE]], ["core: 3 orders or more"], []),
        ([[CORE], [DAYS]], ["core: 3 orders or more", "period: use 90 days"], []),
        ([[CORE], [keep("Core", "5 orders or more")]], ["Core: 5 orders or more"], ["core"]),
        ([[CORE], [DAYS], [{"do": "drop", "name": "CORE"}]], ["period: use 90 days"], ["core"]),
        ([[CORE], [DAYS], [UNDO]], ["core: 3 orders or more"], []),
        ([[CORE], [], [], [DAYS], [], [UNDO], [UNDO]], [], ["core"]),
        ([[CORE, DAYS], [UNDO]], [], ["core"]),
        ([[CORE], [DAYS], [UNDO, keep("period", "60 days")], [UNDO]], ["core: 3 orders or more"], []),
        ([[PRICE], [WHAT_IF]], ["Price: what if it were 0.40"], []),
        ([[PRICE], [WHAT_IF], [DAYS], [END]], ["price: 0.30 EUR per kWh", "period: use 90 days"], ["cost_whatif"]),
        ([[PRICE], [WHAT_IF], [{"do": "end", "name": "price"}]], ["price: 0.30 EUR per kWh"], ["cost_whatif"]),
        ([[PRICE], [WHAT_IF], [{"do": "drop", "name": "price"}]], ["price: 0.30 EUR per kWh"], ["cost_whatif"]),
        ([[PRICE], [WHAT_IF], [UNDO]], ["price: 0.30 EUR per kWh"], ["cost_whatif"]),
        ([[PRICE], [WHAT_IF], [END], [UNDO]], ["Price: what if it were 0.40"], []),
        ([[PRICE], [WHAT_IF], [OTHER], [END]], ["price: 0.30 EUR per kWh"], ["cost_whatif"]),
        ([[CORE], [keep("core", "5", "what-if", "if5")], [keep("core", "4")]], ["core: 4"], ["core", "if5"]),
        ([[WHAT_IF], [END]], [], ["cost_whatif"]),
        ([[UNDO], [CORE], [{"do": "drop", "name": "nobody"}, {"do": "burn"}, END]], ["core: 3 orders or more"], []),
    ],
)  # fmt: skip
def test_changes_in_order_say_what_is_in_force(requests, in_force, stale):
    state = Definitions.of(lived(*requests))

    assert [f"{one.name}: {one.sentence}" for one in state.in_force] == in_force
    assert list(state.stale) == stale
    assert Definitions.of([Round.from_dict(one.to_dict()) for one in lived(*requests)]) == state


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"do": "burn"}, "`do` is 'burn': write one of set, drop, end, undo"),
        (UNDO, "there is nothing to undo"),
        (END, "no what-if is in force"),
        ({"do": "end", "name": "x"}, "no definition in force is called 'x'; those in force: none"),
        ({"do": "drop", "name": "x"}, "no definition in force is called 'x'"),
        (keep("x", ""), "needs `name` and `sentence`"),
        (keep("x", "y", "law"), "`kind` is 'law': write one of rule, snapshot, what-if"),
        (keep("x", "y", "rule", "df['a']"), "is no name of a variable"),
        (keep("x", "y", "snapshot"), "a snapshot needs `variable`"),
        (keep("x" * 99, "y"), "`name` has 99 characters: 80 at most"),
        (keep("x", "y" * 999), "`sentence` has 999 characters: 500 at most"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change, problem):
    with pytest.raises(ValueError, match=problem.replace("[", r"\[")):
        Definitions().changed(change)


def test_more_definitions_than_a_prompt_holds_are_refused():
    state = Definitions()
    for number in range(40):
        state = state.changed(keep(f"d{number}", "x"))

    with pytest.raises(ValueError, match="40 definitions are in force"):
        state.changed(keep("one more", "x"))


def test_the_list_tells_rules_snapshots_and_what_ifs_apart():
    rounds = lived(
        [CORE, PRICE, keep("june", "as of June", "snapshot", "june")],
        [WHAT_IF],
        [{"do": "drop", "name": "core"}],
    )

    assert Definitions.of(rounds).describe().splitlines() == [
        "# Definitions in force, in the User's words",
        '- Price (what-if, variable `cost_whatif`, until it is ended in place of "0.30 EUR per kWh"): '
        "what if it were 0.40",
        "- june (snapshot, variable `june`): as of June",
        "A snapshot is used as it stands in its variable, and not computed again.",
        "A what-if is computed on copies under names of its own, and its results are reported as such.",
        "Variables of definitions that are no longer in force, not to be used: `core`",
    ]
    assert Definitions().describe() == ""
    assert Definitions.of(lived([PRICE], [UNDO])).describe() == "# Definitions\nNone is in force any more."


def test_after_many_changes_definitions_are_printed_and_compared_as_fast_as_after_one():
    state, same = Definitions(), Definitions()
    for number in range(14):
        change = {"do": "set", "name": f"term {number % 5}", "sentence": "as of June"}
        state, same = state.changed(change), same.changed(change)

    assert state == same
    assert len(repr(state)) < 2000
