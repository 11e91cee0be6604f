"""`RecallSettings`: what is recalled into prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

from tw_autogen.settings_trust import COUNT, NAMED, OFF, PROMPT


@dataclass(frozen=True)
class RecallSettings:
    """What is recalled into prompts; the keys are `recall.planner_examples`, and so on.

    Args:
        planner_examples: Folder of examples for the Planner, in TaskWeaver's format, relative to the project's file in
            which it is set, else to the current folder; empty: none.
        code_examples: Folder of examples for the CodeInterpreter, as `recall.planner_examples`; empty: none.
        use_planner_examples: False: no example for the Planner, also where a project has some.
        use_code_examples: False: no example for the CodeInterpreter, also where a project has some.
        example_tokens: How much of a role's prompt its examples may take; where not all fit, those most like the
            session's first request are taken. A token is reckoned as four characters.
        experience: Folder of lessons that were saved from earlier work, or written by hand; empty: none are recalled.
        experience_top_k: How many lessons are recalled for one request at most.
        experience_min_score: A lesson is recalled if it fits the request better than this, on the scale of the ranker
            (the cosine, with `embedding.name` or `embedding.folder`; else that of BM25).
        compress_tokens: Once a role's prompt would be longer than this, results that a later one has superseded are
            left out of it, and if that is not enough, its older rounds become a summary, which costs a call; 0 or less:
            never. Where no summary comes, that is an event (`CompactionFailed`), the round goes on with the
            long prompt, and the third round from then on tries again.
        keep_rounds: How many rounds before the current one are never summarized.
    """

    planner_examples: str = field(default="", metadata={**PROMPT, "path": True})
    code_examples: str = field(default="", metadata={**PROMPT, "path": True})
    use_planner_examples: bool = field(default=True, metadata=OFF)
    use_code_examples: bool = field(default=True, metadata=OFF)
    example_tokens: int = field(default=2000, metadata=COUNT)
    experience: str = field(default="", metadata={**NAMED, "path": True})
    experience_top_k: int = field(default=3, metadata=NAMED)
    experience_min_score: float = field(default=0.2, metadata=NAMED)
    compress_tokens: int = field(default=24_000, metadata=NAMED)
    keep_rounds: int = field(default=1, metadata=NAMED)
