"""`TaskProgress`: one task of the CodeInterpreter on its way, and what it tells of it in the end."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tw_autogen.code_interpreter import report_texts
from tw_autogen.code_interpreter.rules import Finding
from tw_autogen.conversation import Attachment, AttachmentType, RequestedFormat
from tw_autogen.kernel import Artifact, Execution
from tw_autogen.text_truncation import shortened, trimmed, without_middle

_WRONG_CHARS = 600
_MADE = "New or changed in the kernel: "
_MADE_NAMES, _MADE_CHARS = 20, 120
_WHY_CHARS = 160
_LOOK_CHARS = 1500
_LOOK = re.compile(r"\s*#[ \t]*look[ \t]*(?::[^\n]*)?(?:\n|\Z)")
_CELL = re.compile(r"\bcell \d+")


@dataclass
class TaskProgress:
    """What was tried for one task, and what came of it.

    Args:
        thought: The model's words with the last code, or its answer in words.
        code: The last code; empty if the model answered in words.
        findings: Why the last code was not run; empty if it was.
        execution: What came of the last code that ran.
        artifacts: Files made by any of the cells, the newest description of each that is there.
        folder: Where code runs; None: not known.
        refused: How often code was not run.
        failed: How often code failed.
        wrong: Why code failed or was refused, each time.
        printed: What cells printed before they failed, each time; empty where one printed nothing.
        gave_up: The tries are used up, or the work went in circles.
        looped: The same code has failed in the same way twice.
        own_error: The code has raised its error itself, to say why there is no answer.
        looks: What code printed that only looked, in short, each time.
        made: Names of variables that are new or changed.
        answer: What goes to the user as it is, whole; empty where nothing does.
        form: What the request asks its answer to look like.
        beginning: Its beginning with the name of the file that has all, where it is too long for a chat; else empty.
        unworded: What comes of it are bare results, so that somebody must word them for the user.
    """

    thought: str = ""
    code: str = ""
    findings: list[Finding] = field(default_factory=list)
    execution: Execution | None = None
    artifacts: list[Artifact] = field(default_factory=list)
    refused: int = 0
    failed: int = 0
    wrong: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    gave_up: bool = False
    looped: bool = False
    own_error: bool = False
    looks: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    answer: str = ""
    form: RequestedFormat = field(default_factory=RequestedFormat)
    beginning: str = ""
    unworded: bool = False
    folder: Path | None = None
    _last: tuple[str, str] = ("", "")

    def record_failure(self, why: str) -> bool:
        """Note why the newest code failed or was refused; True if that code failed so before it, too.

        Args:
            why: The findings, or the error, in words.
        """
        self.wrong.append(without_middle(why, _WRONG_CHARS))
        now = (self.code.strip(), _CELL.sub("cell", why))
        self.looped, self._last = now == self._last, now
        self.gave_up = self.gave_up or self.looped
        return self.looped

    @property
    def looked(self) -> int:
        """How many cells only looked."""
        return len(self.looks)

    def may_inspect_again(self, most: int) -> bool:
        """Return whether the newest code only looks, by its first line, and is one of the first so many that do."""
        return self.looked < most and _LOOK.match(self.code) is not None

    def record_files(self, made: Sequence[Artifact]) -> None:
        """Note the files that a cell has made, and leave out those of earlier cells that are gone meanwhile.

        Args:
            made: By the newest cell.
        """
        there = [artifact for artifact in self.artifacts if os.path.lexists(artifact.path)]
        self.artifacts = list({one.path: one for one in [*there, *made]}.values())

    def record_look(self, limit_chars: int) -> None:
        """Keep what the newest code has printed.

        Args:
            limit_chars: How much of each part of it a model was shown.
        """
        assert self.execution is not None  # noqa: S101 - it has run; for the type checker
        self.looks.append(report_texts.output_text(self.execution, (), limit_chars))

    def message(self, limit_chars: int, receiver: str) -> str:
        """Return what came of the task, in words.

        Args:
            limit_chars: How much of each part is shown.
            receiver: Who reads it: the user gets thought and output as an answer, or the output alone where it has the
                form that was asked for; anybody else gets a report.
        """
        if not self.code:
            words = without_middle(self.thought, 4 * limit_chars)
            files = report_texts.unnamed_files_line(words, self.artifacts, self.folder, self.form)
            return "\n".join(
                part for part in (f"{words}{'' if receiver == 'User' else self._earlier_looks()}", files) if part
            )
        note = self._tries_note()
        if self.findings or self.execution is None:
            files = report_texts.files_line(self.artifacts, self.folder)
            told = f"{note}{report_texts.findings_report(self.findings)}"
            return "\n".join(part for part in (told, files) if part)
        if receiver == "User" and self.execution.ok:
            return self._with_thought(self.beginning or self._output_text(limit_chars))
        called = f"Called:\n{self.code.strip()}\n" if self.unworded else ""
        told = report_texts.execution_report(
            self.execution, self.artifacts, limit_chars, code=self.code, folder=self.folder
        )
        more = f" and {len(self.made) - _MADE_NAMES} made before" if len(self.made) > _MADE_NAMES else ""
        known = {variable.name: variable.short(_MADE_CHARS) for variable in self.execution.variables}
        names = [known.get(name, name) for name in self.made[-_MADE_NAMES:]]
        made = f"\n{_MADE}{'; '.join(names)}{more}" if self.made else ""
        made += "".join(f"\nCareful: {array}." for array in report_texts.empty_arrays(self.execution, self.made))
        return f"{note}{called}{told}{self._printed_before(limit_chars)}{self._earlier_looks()}{made}"

    def whole_answer(self, receiver: str) -> str:
        """Return the answer of which the message has only the beginning; empty if the message has it all.

        Args:
            receiver: Who reads it; the user's has the thought in front, as in `message`.
        """
        if not self.beginning:
            return ""
        return self._with_thought(self.answer) if receiver == "User" else self.answer

    def attachments(self, limit_chars: int) -> list[Attachment]:
        """Return thought, code, verification, status, result and files, in TaskWeaver's types."""
        kind = AttachmentType
        if not self.code:
            seen = {"looks": self.looks} if self.looks or self.artifacts else None
            said = [Attachment(kind.reply_type, "text"), Attachment(kind.execution_status, "NONE", seen)]
            return [*said, *self._file_attachments()]
        said = [
            Attachment(kind.thought, self.thought),
            Attachment(kind.reply_type, "python"),
            Attachment(kind.reply_content, self.code),
            Attachment(kind.verification, "INCORRECT" if self.findings else "CORRECT"),
        ]
        if self.findings:
            said.append(Attachment(kind.code_error, "\n".join(map(str, self.findings))))
        if self.findings or self.execution is None:
            said.append(Attachment(kind.execution_status, "NONE", {"went_wrong": self.wrong}))
            return [*said, *self._file_attachments()]
        status = "SUCCESS" if self.execution.ok else "FAILURE"
        warnings = [
            *report_texts.review_reasons(self.execution),
            *report_texts.empty_arrays(self.execution, self.made),
            *(["bare results, in no words"] if self.unworded else []),
        ]
        extra: dict[str, Any] = {"warnings": warnings, "failed": self.failed}
        extra |= {"refused": self.refused, "went_wrong": self.wrong, "looks": self.looks}
        if kept_as := report_texts.full_output_variable(self.execution, limit_chars):
            extra["kept_as"] = kept_as
        said.append(Attachment(kind.execution_status, status, extra))
        output = self.beginning or self._output_text(limit_chars)
        said.append(Attachment(kind.execution_result, output if self.execution.ok else self.execution.error))
        return [*said, *self._file_attachments()]

    def _file_attachments(self) -> list[Attachment]:
        paths = "\n".join(str(artifact.path) for artifact in self.artifacts)
        files = [artifact.to_dict() for artifact in self.artifacts]
        return [Attachment(AttachmentType.artifact_paths, paths, files)] if files else []

    def _output_text(self, limit_chars: int) -> str:
        if self.answer or self.execution is None:
            return self.answer
        return report_texts.output_text(self.execution, self.artifacts, limit_chars, form=self.form, folder=self.folder)

    def _with_thought(self, output: str) -> str:
        """Return output as an answer, with the thought in front unless it is in the form that was asked for."""
        alone = self.form.is_alone(self.answer or output)
        return output if alone else "\n\n".join(part for part in (self.thought, output) if part)

    def _printed_before(self, limit_chars: int) -> str:
        """Return what earlier tries printed before they failed, without what later ones have printed again."""
        assert self.execution is not None  # noqa: S101 - only asked for once a cell has run; for the type checker
        later = set(self.execution.stdout.splitlines())
        earlier = self.printed if self.execution.ok else self.printed[:-1]
        kept: list[str] = []
        for text in reversed(earlier):
            if not later.issuperset(text.splitlines()):
                kept.insert(0, trimmed(text))
                later.update(text.splitlines())
        return (
            f"\nPrinted by earlier tries before they failed:\n{without_middle(chr(10).join(kept), limit_chars)}"
            if kept
            else ""
        )

    def _earlier_looks(self) -> str:
        """Return what earlier cells of the task were run to see, in short."""
        return "".join(f"\nSeen before:\n{without_middle(look, _LOOK_CHARS)}" for look in self.looks if look)

    def _tries_note(self) -> str:
        """Describe in a line how many tries it took, where it took more than one."""
        tries = 1 + self.refused + self.failed
        if self.own_error:
            return "The code raised this error itself, to say why there is no answer; it was not tried again.\n"
        if self.looped:
            return f"Given up after {tries - 1} tries: the same code failed in the same way twice.\n"
        if self.gave_up:
            return f"Given up after {tries - 1} tries.\n"
        if tries < 2:
            return ""
        lines = self.wrong[-1].strip().splitlines() or [""]
        why = next((line for line in reversed(lines) if report_texts.RAISED.match(line)), lines[-1]).strip()
        return f"It took {tries} tries; the one before: {shortened(why, _WHY_CHARS)}\n"
