"""Results that a later one has made superfluous leave a history when it is shortened, and only then."""

import pytest

from tw_autogen.code_interpreter import CodeInterpreter
from tw_autogen.events import HistoryCompacted
from tw_autogen.kernel import Execution
from tw_autogen.model import Completion
from tw_autogen.planner import Planner
from tw_autogen.recall import ChatHistory, Recall, RecallSettings
from tw_autogen.session import Session
from tw_autogen.testing import FakeKernel, ScriptedModel, codes, plans

LONG = "\n".join(f"row {number}: {'value ' * 5}" for number in range(400))
TRACE = "Traceback (most recent call last):\n" + "  File x, line 1, in f\n" * 60 + "KeyError: 'litres'"


def history_of(*notes):
    """Return a history of an examples' message and of (report, code, ok, kept_as), each answered by its code."""
    history = ChatHistory("system")
    for report, code, ok, kept_as in notes:
        history.append_assistant(code)
        history.append_user(report)
        history.results.note(report, code=code, ok=ok, kept_as=kept_as)
    return history


def contents(history):
    return "\n".join(str(message["content"]) for message in history.messages)


@pytest.mark.parametrize(
    ("notes", "left"),
    [
        ([(TRACE, "a", False, ""), ("4", "b", True, "")], True),
        ([(TRACE, "a", False, ""), (f"{TRACE}!", "b", False, "")], False),
        ([(LONG, "a", True, "last_output"), ("4", "print(last_output[:9])", True, "")], True),
        ([(LONG, "a", True, "last_output"), ("4", "print(last_output_2)", True, "")], False),
        ([(LONG, "a", True, "last_output"), ("4", "last_output = 5", True, "")], False),
        ([(LONG, "a", True, ""), ("4", "print(last_output[:9])", True, "")], False),
        ([("short", "a", False, ""), ("4", "b", True, "")], False),
    ],
    ids=["mended", "not mended", "looked at again", "another name", "assigned", "whole", "short"],
)
def test_mended_failures_and_cut_output_that_was_looked_at_again_are_pruned(notes, left):
    history = history_of(*notes)
    before = contents(history)

    history.append_assistant("done")
    assert contents(history) == f"{before}\ndone"
    pruned = history.prune()

    assert (pruned > 0) is left
    assert (notes[0][0] not in contents(history)) is left
    assert notes[0][0][-40:] in contents(history)
    assert len(before) + len("done\n") - len(contents(history)) == pruned
    assert history.prune() == 0


def test_the_last_message_and_what_another_task_has_left_stay():
    history = history_of((TRACE, "a", False, ""))
    history.results.begin_task()
    history.append_assistant("b")
    history.append_user("4")
    history.results.note("4", code="b", ok=True, kept_as="")
    assert history.prune() == 0

    history.results.note(TRACE, code="a", ok=False, kept_as="")
    history.results.note("4", code="b", ok=True, kept_as="")
    history.append_user(TRACE)  # the same words, not answered yet
    assert history.prune() > 0
    assert contents(history).count(TRACE) == 1


@pytest.mark.parametrize("summarized", [False, True])
def test_the_same_failure_in_a_later_task_is_not_told_as_mended(summarized):
    history = history_of((TRACE, "a", False, ""), ("4", "b", True, ""))
    history.results.begin_task()
    if summarized:
        history.replace_oldest(4, "A summary.")
    for report in (TRACE, "Still open."):
        history.append_assistant("c")
        history.append_user(report)
        history.results.note(report, code="c", ok=False, kept_as="")

    assert (history.prune() > 0) is not summarized
    assert contents(history).count(TRACE) == 1
    assert TRACE in str(history.messages[-3]["content"])


class Summarizing(ScriptedModel):
    """Follows its script, and summarizes where that is asked for."""

    def __init__(self, steps):
        super().__init__(steps)
        self.summarized = []

    def complete(self, messages, **options):
        if not messages[0]["content"].startswith("You keep the memory"):
            return super().complete(messages, **options)
        self.summarized.append(messages[1]["content"])
        return Completion(f"Summary {len(self.summarized)}.")


def twenty_rounds(folder, *, compress_tokens):
    """Live a session of twenty requests, each with a failure that is mended and cut output that is looked at again.

    Returns:
        The CodeInterpreter's model, and what was shortened.
    """
    coder = Summarizing([codes("f()"), codes("# look\nprint(rows)"), codes("print(last_output[:9])")] * 20)
    planner = Summarizing([plans(f"task {number}", then="User") for number in range(20)])
    ran = [
        one
        for number in range(20)
        for one in (
            Execution(False, error=f"{TRACE}, {number}"),
            Execution(True, stdout=f"{number}: {LONG}", kept_as="last_output"),
            Execution(True, stdout="row 7: 1\n"),
        )
    ]
    events = []
    recall = Recall(RecallSettings(compress_tokens=compress_tokens))
    interpreter = CodeInterpreter(coder, lambda place: FakeKernel(ran, folder=place), recall=recall)
    team = [Planner(planner, [interpreter], recall=recall), interpreter]
    with Session(team, folder=folder, handlers=[events.append]) as session, coder, planner:
        for number in range(20):
            assert session.ask(f"request {number}").text == "row 7: 1"
    return coder, [event for event in events if isinstance(event, HistoryCompacted)]


def spent(calls):
    """Return the characters of all prompts, and those that the next prompt before them began with, through four."""
    prompt = cached = 0
    for before, now in zip([[], *calls], calls, strict=False):
        same = next((at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before))
        prompt += sum(len(one["content"]) for one in now)
        cached += sum(len(one["content"]) for one in now[:same])
    return prompt // 4, cached // 4


def test_a_session_of_twenty_rounds_is_pruned_before_anything_is_summarized(tmp_path):
    coder, shortened = twenty_rounds(tmp_path, compress_tokens=16_000)
    prompts = [len(str(call)) // 4 for call in coder.calls]

    assert max(prompts) < 26_000
    assert shortened
    assert [one.summary for one in shortened] == [""] * len(shortened)
    assert all(one.pruned_chars > 10_000 and one.tokens_after < one.tokens_before for one in shortened)
    assert coder.summarized == []
    same = [before == now[: len(before)] for before, now in zip(coder.calls, coder.calls[1:], strict=False)]
    assert same.count(False) == len(shortened)


def test_a_summary_is_made_of_pruned_results_and_what_stays_is_pruned_too(tmp_path):
    coder, shortened = twenty_rounds(tmp_path, compress_tokens=5_000)

    summaries = [one for one in shortened if one.summary]
    assert summaries
    assert len(summaries) == len(coder.summarized)
    assert TRACE not in "".join(coder.summarized)
    assert sum(summary.pruned_chars for summary in summaries) > 10_000
