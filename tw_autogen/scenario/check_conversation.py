"""Checks on who spoke, how often models were asked, and how the plan went."""

from __future__ import annotations

from pydantic import PositiveInt

from tw_autogen.events import CellRan, HistoryCompacted, LessonsRecalled, ModelCalled
from tw_autogen.scenario.check_parameters import Names, Problems, Regex, Rounds, Words, count, short, span


def path(rounds: Rounds, posts: Names) -> Problems:
    """Expect that in each round these spoke, one after the other; the last name only listened.

    Args:
        rounds: The rounds, at least one, oldest first.
        posts: Names of roles, beginning and ending with `User`.
    """
    for seen in rounds:
        if seen.path != posts:
            yield f"{seen}: expected the posts {' > '.join(posts)}, found {' > '.join(seen.path) or 'none'}"


def posts(rounds: Rounds, *, at_least: PositiveInt | None = None, at_most: PositiveInt | None = None) -> Problems:
    """Expect that each round has so many posts.

    Args:
        rounds: The rounds, at least one, oldest first.
        at_least: Fewest that are right; None: no limit.
        at_most: Most that are right; None: no limit.
    """
    for seen in rounds:
        yield from count(str(seen), "posts", len(seen.round.posts), at_least, at_most)


def calls(rounds: Rounds, at_most: PositiveInt | None = None, *, at_least: PositiveInt | None = None) -> Problems:
    """Expect so many calls of models, in all the rounds together.

    Args:
        rounds: The rounds, at least one, oldest first.
        at_most: Most that are right; None: no limit.
        at_least: Fewest that are right; None: no limit.
    """
    found = sum(isinstance(event, ModelCalled) for seen in rounds for event in seen.events)
    yield from count(span(rounds), "calls of models", found, at_least, at_most)


def summaries(
    rounds: Rounds,
    at_least: PositiveInt | None = None,
    *,
    at_most: PositiveInt | None = None,
    matches: Regex | None = None,
) -> Problems:
    """Expect that older rounds became a summary so many times, and that each of them has a place that matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        at_least: Fewest that are right; None: no limit.
        at_most: Most that are right; None: no limit.
        matches: A regular expression; None: any summary.
    """
    events = [
        event for seen in rounds for event in seen.events if isinstance(event, HistoryCompacted) and event.summary
    ]
    yield from count(span(rounds), "summaries", len(events), at_least, at_most)
    for number, event in enumerate(events, start=1):
        if matches and not matches.search(event.summary):
            yield (
                f"{span(rounds)}: expected a summary that matches {matches.pattern!r}, found in summary {number}, "
                f"{event.role}'s: {short(event.summary)}"
            )


def lesson(lesson: str, matches: Regex) -> Problems:
    """Expect that what the session teaches has a place that matches.

    Args:
        lesson: Its text; empty: there is none.
        matches: The regular expression.
    """
    if not matches.search(lesson):
        yield f"expected a lesson that matches {matches.pattern!r}, found {short(lesson) if lesson else 'none'}"


def recalled(rounds: Rounds, lessons: Words) -> Problems:
    """Expect that each of these lessons was put into a prompt, by their ids.

    Args:
        rounds: The rounds, at least one, oldest first.
        lessons: Their ids.
    """
    found = [
        name for seen in rounds for event in seen.events if isinstance(event, LessonsRecalled) for name in event.lessons
    ]
    for name in lessons:
        if name not in found:
            named = ", ".join(dict.fromkeys(found)) or "none"
            yield f"{span(rounds)}: expected the lesson {name} to be recalled, found {named}"


def plan_grew(rounds: Rounds, by: PositiveInt = 1) -> Problems:
    """Expect that the last plan of the last round has more steps than its first one, at least by so many.

    Args:
        rounds: The rounds, at least one, oldest first.
        by: How many steps more, at least.
    """
    steps = [len(post.plan.steps) for post in rounds[-1].round.posts if post.plan is not None]
    if not steps or steps[-1] - steps[0] < by:
        shown_plan = " > ".join(map(str, steps)) + " steps" if steps else "no plan"
        yield f"{rounds[-1]}: expected a plan that grows by {by} or more steps, found {shown_plan}"


def plan(
    rounds: Rounds,
    step: Regex | None = None,
    *,
    at_least: PositiveInt | None = None,
    at_most: PositiveInt | None = None,
) -> Problems:
    """Expect that a step of the last plan matches, and that this plan has so many steps.

    Args:
        rounds: The rounds, at least one, oldest first.
        step: A regular expression; None: any step.
        at_least: Fewest steps that are right; None: no limit.
        at_most: Most steps that are right; None: no limit.
    """
    plans = [post.plan for seen in rounds for post in seen.round.posts if post.plan is not None]
    steps = [one.text for one in plans[-1].steps] if plans else []
    if step and not any(step.search(one) for one in steps):
        shown_plan = short("; ".join(steps) or "no plan")
        yield f"{span(rounds)}: expected a step that matches {step.pattern!r}, found {shown_plan}"
    yield from count(span(rounds), "steps in the plan", len(steps), at_least, at_most)


def said(rounds: Rounds, matches: Regex, *, by: str = "CodeInterpreter") -> Problems:
    """Expect that a post of this role, which holds what its code has printed, has a place that matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
        by: Name of the role.
    """
    posts = [post.message for seen in rounds for post in seen.round.posts if post.send_from == by]
    if not any(matches.search(one) for one in posts):
        last = f"the last of {len(posts)} is {short(posts[-1])}" if posts else "there is none"
        yield f"{span(rounds)}: expected a post of {by} that matches {matches.pattern!r}; {last}"


def nowhere(rounds: Rounds, matches: Regex) -> Problems:
    """Expect that nothing that was said, and nothing that code has printed, has a place that matches.

    Args:
        rounds: The rounds, at least one, oldest first.
        matches: The regular expression.
    """
    for seen in rounds:
        messages = [post.message for post in seen.round.posts[1:]]
        messages += [attachment.content for post in seen.round.posts[1:] for attachment in post.attachments]
        for event in seen.events:
            if isinstance(event, CellRan):
                messages += [event.stdout, event.stderr, event.error, event.result or ""]
        if found := next((hit[0] for one in messages if (hit := matches.search(one))), None):
            yield f"{seen}: expected nothing that matches {matches.pattern!r}, found {short(found)}"
