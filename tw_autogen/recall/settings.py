"""`RecallSettings`: what is recalled into prompts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RecallSettings:
    """What is recalled into prompts; the keys are `recall.planner_examples`, and so on.

    Args:
        planner_examples: Folder of examples for the Planner, in TaskWeaver's format, relative to the project's file in
            which it is set, else to the current folder; empty: none.
        code_examples: The same for the CodeInterpreter.
        use_planner_examples: False: no example for the Planner, also where a project has some.
        use_code_examples: The same for the CodeInterpreter.
        example_tokens: How much of a role's prompt its examples may take; where not all fit, those most like the
            session's first request are taken. A token is reckoned as four characters.
        experience: Folder of lessons that were saved from earlier work, or written by hand; empty: none are recalled.
        experience_top_k: How many lessons are recalled for one request at most.
        experience_min_score: A lesson is recalled if it fits the request better than this, on the scale of the ranker
            (the cosine, with `embedding.name` or `embedding.folder`; else that of BM25).
        compress_tokens: Once a role's prompt would be longer than this, its older rounds become a summary, which costs
            a call; 0: never. Where no summary comes, that is an event (`TalkNotShortened`), the round goes on with the
            long prompt, and the third round from then on tries again.
        keep_rounds: How many rounds before the current one are never summarized.
    """

    planner_examples: str = field(default="", metadata={"path": True})
    code_examples: str = field(default="", metadata={"path": True})
    use_planner_examples: bool = True
    use_code_examples: bool = True
    example_tokens: int = 2000
    experience: str = field(default="", metadata={"path": True})
    experience_top_k: int = 3
    experience_min_score: float = 0.2
    compress_tokens: int = 24_000
    keep_rounds: int = 1
