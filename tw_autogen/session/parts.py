"""What the seats of one session share: models, what recalls, and the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from tw_autogen.approval import Approve
from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import Kernel, KernelSettings, LocalKernel
from tw_autogen.kernel.path_policy import check_granted
from tw_autogen.kernel.sandbox import standing
from tw_autogen.model import (
    ChatModel,
    EmbeddingSettings,
    ModelSettings,
    OpenAIModel,
    Ranker,
    resolve_model,
    resolve_ranker,
)
from tw_autogen.planner import Planner, PlannerSettings
from tw_autogen.private import make_private_folder
from tw_autogen.recall import Recall, RecallSettings, load_examples, read_examples
from tw_autogen.session.grants import Grants
from tw_autogen.session.learning import Learner
from tw_autogen.session.seats import ALIASES, Seat, known
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import Settings


class Models:
    """Who is asked, by seat: what was given, else what the settings name, made once for each name; and what recalls."""

    def __init__(self, read: Settings, examples: Sequence[Path]) -> None:
        self._read = read
        self._examples = examples
        self._made: dict[str, ChatModel] = {}

    @cached_property
    def ranker(self) -> Ranker:
        """What finds the texts that fit a request."""
        return resolve_ranker(self._read.read("embedding", EmbeddingSettings), self._read.read("model", ModelSettings))

    def recall(self, room: str) -> Recall:
        """Give what a role is reminded of.

        Raises:
            ConfigError: a folder or a file is missing or wrong.
        """
        own = self._read.read("recall", RecallSettings)
        if not (own.use_planner_examples if room == "planner" else own.use_code_examples):
            return Recall(own, (), self.ranker)
        folder = own.planner_examples if room == "planner" else own.code_examples
        if folder:
            return Recall(own, read_examples(Path(folder)), self.ranker)
        mine = [path for path in self._examples if path.parent.name.startswith("planner") == (room == "planner")]
        return Recall(own, load_examples(mine), self.ranker)

    def learner(self, seats: Sequence[Seat]) -> Learner:
        """Give who words lessons: the model of the first role that is always known."""
        first = next((seat for seat in seats if known(seat.role)), None)
        folder = self._read.read("recall", RecallSettings).experience
        return Learner((lambda: self.pick(first)) if first else None, Path(folder) if folder else None)

    def pick(self, seat: Seat, name: str = "") -> ChatModel:
        """Give a seat's model.

        Args:
            seat: Whose.
            name: Name of the model on the server, if the role's settings say one.

        Raises:
            NoModelError: none was given, and the settings name none.
            ConfigError: `session.max_dollars` or `max_session_dollars` limits its cost, and its price is not known.
        """
        if seat.model is not None:
            return self._priced(seat.model)
        own = {
            Planner.name: self._read.read("planner", PlannerSettings).model,
            CodeInterpreter.name: self._read.read("code_interpreter", CodeInterpreterSettings).model,
        }.get(ALIASES.get(known(seat.role), ""), name)
        if own not in self._made:
            options = self._read.read("model", ModelSettings)
            self._made[own] = self._priced(resolve_model(replace(options, name=own) if own else options))
        return self._made[own]

    def _priced(self, model: ChatModel) -> ChatModel:
        """Refuse a model of ours without a price where money is limited: it would count nothing."""
        limits = self._read.read("session", SessionSettings)
        key = "max_dollars" if limits.max_dollars else "max_session_dollars"
        most = limits.max_dollars or limits.max_session_dollars
        if most and isinstance(model, OpenAIModel) and model.settings.price(model.name) is None:
            raise ConfigError(
                f"session.{key} is {most:g}, but what {model.name!r} costs is not known, so nothing would be "
                f"limited; write dollars for a million tokens as model.prices: {{{model.name}: {{prompt: …, "
                "completion: …}}, or limit session.max_tokens"
            )
        return model


class Kernels:
    """Where code runs: what a seat brings, else one for all (`shared`); `made` are those that the session owns."""

    def __init__(
        self,
        folder: Path,
        read: Settings,
        user_folder: str,
        approve: Approve | None,
        undo: ExitStack,
        on_refused: Callable[[str], str] | None = None,
    ) -> None:
        self._on_refused = on_refused
        self.grants = Grants()
        self._folder = folder
        self._read = read
        self._user_folder = user_folder
        self._approve = approve
        self._undo = undo
        self.shared: Kernel | None = None
        self.made: list[Kernel] = []

    def pick(self, seat: Seat) -> Kernel:
        """Give the kernel in which a seat's code runs."""
        if isinstance(seat.kernel, Kernel):
            return seat.kernel
        if seat.kernel is not None:
            return self._own(seat.kernel)
        if self.shared is None:
            options = self._read.read("kernel", KernelSettings)
            if self._user_folder:
                if not Path(self._user_folder).expanduser().is_dir():
                    raise ConfigError(f"session.user_folder: there is no folder {self._user_folder}")
                options = replace(options, read=(*options.read, self._user_folder))
            standing(options)  # where no sandbox can stand, that is said before any model is asked
            check_granted(options, self._folder)
            self.shared = self._own(
                lambda folder: LocalKernel(folder, settings=options, approve=self._approve, on_refused=self._on_refused)
            )
            kernel = self.shared if isinstance(self.shared, LocalKernel) else None
            self.grants = Grants(options, kernel)
        return self.shared

    def _own(self, make: Callable[[Path], Kernel]) -> Kernel:
        make_private_folder(self._folder)
        kernel = make(self._folder)
        self._undo.callback(kernel.close)
        self.made.append(kernel)
        return kernel
