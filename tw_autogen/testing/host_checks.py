"""`check_host`: what every host adapter must do, whatever the host; for adapters of one's own too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from tw_autogen.conversation import Round, RoundState
from tw_autogen.model import ChatModel, Completion, Usage
from tw_autogen.testing.scripted_model import ScriptedModel, codes, plans


class HostDriver(Protocol):
    """How the checks drive one adapter; everything blocks until it is done."""

    def open(self, model: ChatModel, **more: Any) -> Any:
        """Make the adapter's agent, whose roles ask this model; `more` are arguments that all adapters take."""
        ...

    def ask(self, agent: Any, text: str, *, fresh: bool = False) -> str:
        """Ask by an agent of the host's, always the same one; return the words of the answer.

        Args:
            agent: What `open` gave.
            text: The request.
            fresh: Begin a new conversation as the host does it.
        """
        ...

    def rounds(self, agent: Any) -> Sequence[Round]:
        """Return the rounds of the conversation."""
        ...

    def spent(self, agent: Any) -> int:
        """Return how many prompt tokens the conversation has cost, as the adapter reports it."""
        ...

    def speaker(self, name: str, text: str) -> Any:
        """Make an agent of the host's own that always says these words, and has a description.

        Args:
            name: The agent's name.
            text: Its answer to everything.
        """
        ...

    def as_plugin(self, speaker: Any) -> Any:
        """Return it as a plugin of its own name."""
        ...

    def as_role(self, speaker: Any) -> Any:
        """Return it as a role of its own name."""
        ...

    def close(self, agent: Any) -> None:
        """End the agent's sessions."""
        ...


Check = Callable[[HostDriver], None]


def check_host(driver: HostDriver) -> list[str]:
    """Run every check of `HOST_CHECKS` against an adapter.

    Args:
        driver: Drives it.

    Returns:
        The names of the checks, all passed.

    Raises:
        AssertionError: naming the check that failed, and what came instead.
    """
    for name, check in HOST_CHECKS.items():
        try:
            check(driver)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    return list(HOST_CHECKS)


def _one_request_is_four_posts(driver: HostDriver) -> None:
    model = ScriptedModel([plans("compute 6*7"), codes("6 * 7"), plans("It is 42.", to="User")])
    with _open_agent(driver, model) as agent:
        answer = driver.ask(agent, "what is 6*7?")
        (here,) = driver.rounds(agent)
    path = [(post.send_from, post.send_to) for post in here.posts]
    _expect(answer, "It is 42.")
    _expect(
        path,
        [("User", "Planner"), ("Planner", "CodeInterpreter"), ("CodeInterpreter", "Planner"), ("Planner", "User")],
    )
    _expect(here.state, RoundState.finished)


def _the_kernel_remembers_until_a_fresh_conversation(driver: HostDriver) -> None:
    look = (plans("look"), codes("'kept' in globals()"), plans("Looked.", to="User"))
    model = ScriptedModel([plans("keep"), codes("kept = 7"), plans("Kept.", to="User"), *look, *look])
    with _open_agent(driver, model) as agent:
        driver.ask(agent, "keep seven")
        seen = []
        for fresh in (False, True):
            driver.ask(agent, "is it there?", fresh=fresh)
            seen.append(driver.rounds(agent)[-1].posts[2].message.rpartition("\n")[2])
    _expect(seen, ["True", "False"])


def _a_question_back_is_an_answer(driver: HostDriver) -> None:
    model = ScriptedModel([plans("Which column?", to="User", stop="Clarification"), plans("It is 3.", to="User")])
    with _open_agent(driver, model) as agent:
        _expect(driver.ask(agent, "the mean?"), "Which column?")
        _expect(driver.ask(agent, "of units"), "It is 3.")
        _expect([one.state for one in driver.rounds(agent)], [RoundState.finished] * 2)
    _expect("From: User\nof units" in model.calls[1][-1]["content"], True)


def _a_failed_round_is_told_and_the_next_one_works(driver: HostDriver) -> None:
    model = ScriptedModel([plans("go"), codes("1"), plans("Hello.", to="User")])
    with _open_agent(driver, model, settings={"session.max_posts": 3}) as agent:
        answer = driver.ask(agent, "go")
        _expect(answer.startswith("I could not answer this request: "), True)
        _expect("session.max_posts" in answer, True)
        _expect(driver.ask(agent, "hello"), "Hello.")
        _expect([one.state.value for one in driver.rounds(agent)], ["failed", "finished"])


def _files_are_named_with_their_places(driver: HostDriver) -> None:
    model = ScriptedModel([plans("save"), codes("open('seven.txt', 'w').write('7');"), plans("Saved.", to="User")])
    with _open_agent(driver, model) as agent:
        answer = driver.ask(agent, "save seven")
    _expect(answer.startswith("Saved.\n\n- [seven.txt](file://"), True)
    _expect(answer.count("seven.txt"), 2)


def _what_was_spent_is_counted_once(driver: HostDriver) -> None:
    replies = {100: plans("compute"), 50: codes("1"), 25: plans("1", to="User")}
    model = ScriptedModel([Completion(text, usage=Usage(tokens, 0, 1, 1)) for tokens, text in replies.items()])
    with _open_agent(driver, model) as agent:
        driver.ask(agent, "count")
        _expect(driver.spent(agent), 175)


def _code_asks_an_agent_of_the_hosts(driver: HostDriver) -> None:
    plugin = driver.as_plugin(driver.speaker("lawyer", "It is legal."))
    model = ScriptedModel([plans("ask"), codes("print(lawyer('is it?'))"), plans("Done.", to="User")])
    with _open_agent(driver, model, plugins=[plugin]) as agent:
        driver.ask(agent, "is it legal?")
        _expect("Printed:\nIt is legal." in driver.rounds(agent)[0].posts[2].message, True)


def _the_planner_writes_to_an_agent_of_the_hosts(driver: HostDriver) -> None:
    role = driver.as_role(driver.speaker("lawyer", "It is legal."))
    model = ScriptedModel([plans("is it?", to="lawyer"), plans("Yes.", to="User")])
    with _open_agent(driver, model, roles=["planner", role]) as agent:
        _expect(driver.ask(agent, "is it legal?"), "Yes.")
        _expect(len(driver.rounds(agent)[0].posts), 4)
    _expect("From: lawyer\nIt is legal." in model.calls[1][-1]["content"], True)


HOST_CHECKS: Mapping[str, Check] = {
    check.__name__.strip("_"): check
    for check in (
        _one_request_is_four_posts,
        _the_kernel_remembers_until_a_fresh_conversation,
        _a_question_back_is_an_answer,
        _a_failed_round_is_told_and_the_next_one_works,
        _files_are_named_with_their_places,
        _what_was_spent_is_counted_once,
        _code_asks_an_agent_of_the_hosts,
        _the_planner_writes_to_an_agent_of_the_hosts,
    )
}
"""Every check, by what it holds; each may be run by itself."""


@contextmanager
def _open_agent(driver: HostDriver, model: ChatModel, **more: Any) -> Iterator[Any]:
    """Open an agent for one check."""
    agent = driver.open(model, **more)
    try:
        yield agent
    finally:
        driver.close(agent)


def _expect(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"expected {wanted!r}, found {found!r}")
