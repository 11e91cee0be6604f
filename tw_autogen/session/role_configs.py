"""`RoleConfig`: one role of a session as it is wanted; what its name means; and the models and kernels of them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from tw_autogen.approval import Approve
from tw_autogen.code_interpreter import CodeInterpreter, CodeInterpreterSettings, Policy, find_policy
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import Kernel, KernelSettings, LocalKernel
from tw_autogen.model import (
    ChatModel,
    EmbeddingSettings,
    ModelSettings,
    OpenAIModel,
    Ranker,
    resolve_model,
    resolve_ranker,
)
from tw_autogen.named_folders import checked_path, granted_path, named_folder
from tw_autogen.planner import Planner, PlannerSettings
from tw_autogen.plugin import PluginSpec
from tw_autogen.private_files import make_private_folder
from tw_autogen.recall import Learner, Recall, RecallSettings, read_examples
from tw_autogen.role import Role, RoleSpec, find_role
from tw_autogen.safe_folder import is_protected
from tw_autogen.session.path_grants import Grants
from tw_autogen.session.settings import SessionSettings
from tw_autogen.settings import Settings
from tw_autogen.settings_trust import Trust
from tw_autogen.taskweaver_config import PLUGIN_ONLY
from tw_autogen.trusted_files import compared_with

ALIASES = {
    "planner": Planner.name,
    "code_interpreter": CodeInterpreter.name,
    PLUGIN_ONLY: CodeInterpreter.name,
}

CHECKPOINT_SECONDS = 30.0
"""How often at most a session of `open_session` has its variables saved, where no setting says."""

BUILT_IN = (*ALIASES, Planner.name, CodeInterpreter.name)
"""Names of the roles that are always known."""

RoleWanted = str | Path | type | Role | Callable[[], Role]
"""A name, the path of a folder, a class, a role that is there already, or a function that makes one."""
RolesWanted = Iterable[RoleWanted] | RoleWanted
"""Several, or a single one that needs no list."""
PolicyWanted = Policy | str | Path
"""A policy, its name (`strict`), or the path of its YAML."""
KernelWanted = Kernel | Callable[[Path], Kernel] | None
ModelWanted = ChatModel | str | Mapping[str, ChatModel | str] | None
"""A model, its name on the server that the settings name, or these by role name."""
_Made = TypeVar("_Made", bound=Kernel)


@dataclass(frozen=True)
class RoleConfig:
    """One role of a session, and what it is made of.

    Args:
        role: The name of a shipped role or of an installed package's, the folder or class of one's own, a role, or a
            function that makes one. A relative path means what it means now.
        name: Its name in the conversation; empty: the role's own.
        model: What it asks; None: the one that the settings name.
        plugins: For a CodeInterpreter: what its code may call.
        kernel: For a CodeInterpreter: where its code runs; None: the one `LocalKernel` that the session's interpreters
            share.
        policy: For a CodeInterpreter: what its code may do, whatever policy the settings name; None: as they say.
    """

    role: RoleWanted
    name: str = ""
    model: ChatModel | None = None
    plugins: tuple[PluginSpec, ...] = ()
    kernel: KernelWanted = None
    policy: PolicyWanted | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "role", absolute_role(self.role))


def absolute_role(wanted: RoleWanted) -> RoleWanted:
    """Return a role that is named by the path of its folder with that path absolute, and any other as it is."""
    by_path = wanted if isinstance(wanted, Path) or isinstance(wanted, str) and {"/", os.sep} & set(wanted) else None
    return wanted if by_path is None else checked_path(by_path, "roles").absolute()


def checked_models(model: ModelWanted, *, names: bool = False) -> Mapping[str, ChatModel | str]:
    """Return the models by role name; one for all stands under the empty name.

    Args:
        model: As in `open_session`.
        names: A model's name on the server of the settings will do as well.

    Raises:
        ConfigError: something is no model; says what one is.
    """
    given = model if isinstance(model, Mapping) else {} if model is None else {"": model}
    wrong = [one for one in given.values() if not isinstance(one, ChatModel) and not (names and _is_name(one))]
    if not wrong:
        return given
    raise ConfigError(
        f"model: {wrong[0]!r} ({type(wrong[0]).__name__}) is no model; a model is an object with `complete`, such as "
        "tw_autogen.OpenAIModel(…), or such objects by role name; "
        + ("a model's name is a text" if names else """a model's name goes into settings={"model.name": …}""")
    )


def _is_name(one: object) -> bool:
    return isinstance(one, str) and bool(one.strip())


def checked_policy(policy: PolicyWanted | None) -> Policy | None:
    """Return a policy that may be named, by its name or by the path of its YAML; None stays None.

    Raises:
        ConfigError: there is no such policy, or its YAML is wrong.
    """
    return policy if policy is None or isinstance(policy, Policy) else find_policy(policy)


def policy_of(config: RoleConfig, read: Settings) -> Policy:
    """Return what a role's code may do: what was given, else what the settings say; some names say it, too.

    A policy that was given beats the settings `policy` and `plugin_only`; `allowed_modules` and `blocked_functions`
    narrow that one too. Where a folder's file says plugins only, and nobody trusts it, the policy that would hold
    without it holds besides.

    Args:
        config: The role; its own policy counts first.
        read: All settings.

    Raises:
        ConfigError: the role's or the setting `code_interpreter.policy` names none, or its YAML is wrong.
    """
    own = read.read("code_interpreter", CodeInterpreterSettings)
    of_folder = read.folder_of("code_interpreter.policy")
    with compared_with(read.files if of_folder else None, only=True):
        set_one = find_policy(own.policy, folder=of_folder or read.base_of("code_interpreter.policy"))
    policy = narrowed(checked_policy(config.policy) or set_one, own)
    only = own.plugin_only and config.policy is None or known(config.role) == PLUGIN_ONLY
    if not only:
        return policy
    plugins_only = find_policy("plugins-only")
    blocked = plugins_only.blocked_functions | frozenset(own.blocked_functions)
    of_files = [read.folder_of(key) for key in ("code_interpreter.plugin_only", "session.roles")]
    besides = policy if read.trust is not Trust.full and any(of_files) else None
    return replace(plugins_only, install=policy.install, blocked_functions=blocked, besides=besides)


def narrowed(policy: Policy, own: CodeInterpreterSettings) -> Policy:
    """Return a policy that allows only what the settings `allowed_modules` and `blocked_functions` leave of it.

    Args:
        policy: What code may do.
        own: The settings of the role.
    """
    if own.allowed_modules is not None:
        policy = policy.of_modules(own.allowed_modules)
    return replace(policy, blocked_functions=policy.blocked_functions | frozenset(own.blocked_functions))


def runs_code(config: RoleConfig) -> bool:
    """Return whether code is written and run here."""
    return ALIASES.get(known(config.role)) == CodeInterpreter.name


def known(wanted: RoleWanted) -> str:
    """Return the short name of a role that is always known; empty for one that is to be loaded."""
    plain = str(wanted).lower().replace("codeinterpreter", "code_interpreter") if isinstance(wanted, str) else ""
    plain = PLUGIN_ONLY if plain == "pluginorchestrator" else plain  # its name in TaskWeaver's talk
    return plain if plain in ALIASES else ""


def model_key(wanted: RoleWanted) -> str:
    """Return the name under which a role's model is looked up; empty for one that a function makes."""
    if known(wanted):
        return ALIASES[known(wanted)]
    return role_spec(wanted).alias if isinstance(wanted, str | Path | type) else ""


def role_spec(wanted: str | Path | type) -> RoleSpec:
    """Find a role that is loaded when it is named."""
    return find_role(wanted, built_in=BUILT_IN)


@dataclass(frozen=True)
class Resume:
    """How the variables of a session's code are kept, and come back.

    Args:
        goes_on: Bring back those of an earlier process.
        rerun: Whether cells may be run again for that, as for `LocalKernel`.
        trust: Bring back also what this user did not make here.
    """

    goes_on: bool = False
    rerun: bool | Callable[[Sequence[str]], bool] = True
    trust: bool = False


class Models:
    """Who is asked, by role: what was given, else what the settings name, made once for each name; and what recalls."""

    def __init__(self, read: Settings, examples: Sequence[Path], *, distrusted: Path | None = None) -> None:
        self._read = read
        self._examples = examples
        self._distrusted = distrusted
        self._made: dict[str, ChatModel] = {}

    @cached_property
    def ranker(self) -> Ranker:
        """What finds the texts that fit a request."""
        embedding, model = self._read.read("embedding", EmbeddingSettings), self._read.read("model", ModelSettings)
        return resolve_ranker(embedding, model, distrusted=self._distrusted)

    def recall_for(self, section: str) -> Recall:
        """Return what a role is reminded of.

        Raises:
            ConfigError: a folder or a file is missing or wrong.
        """
        own = replace(self._read.read("recall", RecallSettings), experience=str(self._folder("experience") or ""))
        key = "planner_examples" if section == "planner" else "code_examples"
        if not getattr(own, f"use_{key}"):
            return Recall(own, (), self.ranker)
        folder = self._folder(key)
        of_folder = self._read.folder_of(f"recall.{key}") is not None
        shown = self._read.trust is Trust.none and of_folder
        mine = [path for path in self._examples if path.parent.name.startswith("planner") == (section == "planner")]
        with compared_with(self._read.files, only=of_folder):  # one that came since the folder was trusted is refused
            examples = read_examples(folder or mine, self._read.examples if shown else None)
        return Recall(own, examples, self.ranker)

    def learner(self, configs: Sequence[RoleConfig]) -> Learner:
        """Return who words lessons: the model of the first role that is always known."""
        first = next((config for config in configs if known(config.role)), None)
        return Learner((lambda: self.pick(first)) if first else None, self._folder("experience"), self._distrusted)

    def _folder(self, key: str) -> Path | None:
        """Return the folder of lessons or examples that a setting names, absolute; None if it names none.

        Raises:
            ConfigError: it is reached over a link that a stranger may have made; as files in it are when they are read.
        """
        named = getattr(self._read.read("recall", RecallSettings), key)
        of_folder = self._read.folder_of(f"recall.{key}") is not None
        if named and not of_folder:
            named_folder(named, distrusted=self._distrusted)
        # a link of a trusted folder is followed as it was when the session began
        return Path(os.path.realpath(named) if of_folder else os.path.abspath(named)) if named else None

    def pick(self, config: RoleConfig, name: str = "") -> ChatModel:
        """Return a role's model.

        Args:
            config: Whose.
            name: Name of the model on the server, if the role's settings say one.

        Raises:
            NoModelError: none was given, and the settings name none.
            ConfigError: `session.max_dollars` or `max_session_dollars` limits its cost, and its price is not known.
        """
        if config.model is not None:
            return self._check_priced(config.model)
        own = {
            Planner.name: self._read.read("planner", PlannerSettings).model,
            CodeInterpreter.name: self._read.read("code_interpreter", CodeInterpreterSettings).model,
        }.get(ALIASES.get(known(config.role), ""), name)
        if own not in self._made:
            options = self._read.read("model", ModelSettings)
            self._made[own] = self._check_priced(resolve_model(replace(options, name=own) if own else options))
        return self._made[own]

    def _check_priced(self, model: ChatModel) -> ChatModel:
        """Refuse a model of ours without a price where money is limited: it would count nothing."""
        limits = self._read.read("session", SessionSettings)
        key = "max_dollars" if limits.max_dollars else "max_session_dollars"
        most = limits.max_dollars or limits.max_session_dollars
        if most and isinstance(model, OpenAIModel) and model.settings.price(model.name) is None:
            raise ConfigError(
                f"session.{key} is {most:g}, but what {model.name!r} costs is not known, so nothing would be "
                f"limited; write dollars for a million tokens as model.prices: {{{model.name}: {{prompt: …, "
                "completion: …}}, or limit session.max_tokens" + self._about_trust()
            )
        return model

    def _about_trust(self) -> str:
        if any(one.key == "model.prices" for one in self._read.left_out):
            return "; prices that the folder's own file has count once you trust it (--trust, trust=True)"
        return ""


class Kernels:
    """Where code runs: what a role brings, else one for all (`shared`); `made` are those that the session owns.

    A grant over a link out of `distrusted`, a folder that somebody else may have made, is refused, and one for writing
    that covers `root`, the session's folder: the host believes its journal.
    """

    def __init__(
        self,
        folder: Path,
        read: Settings,
        user_folder: str,
        approve: Approve | None,
        undo: ExitStack,
        on_refused: Callable[[str], str] | None = None,
        *,
        resume: Resume | None = None,
        distrusted: Path | None = None,
        root: Path | None = None,
    ) -> None:
        self._root = root
        self._distrusted = distrusted
        self._on_refused = on_refused
        self._resume = resume
        self.grants = Grants()
        self._folder = folder
        self._read = read
        self.user_folder = user_folder
        self._approve = approve
        self._undo = undo
        self.shared: Kernel | None = None
        self.made: list[Kernel] = []

    def pick(self, config: RoleConfig) -> Kernel:
        """Return the kernel in which a role's code runs."""
        if isinstance(config.kernel, Kernel):
            return config.kernel
        if config.kernel is not None:
            return self._make_owned(config.kernel)
        if self.shared is None:
            options = self._read.read("kernel", KernelSettings)
            options = self._resolve_grants(options)
            self._refuse_root(options)
            if self.user_folder:
                if not Path(self.user_folder).is_dir():
                    raise ConfigError(f"session.user_folder: there is no folder {self.user_folder}")
                options = replace(options, read=(*options.read, self.user_folder))
            LocalKernel.check_settings(options, self._folder)  # what is wrong is said before any model is asked
            if self._resume is not None and self._read.origin("kernel.checkpoint_seconds") == Settings.DEFAULT:
                options = replace(options, checkpoint_seconds=CHECKPOINT_SECONDS)
            resume = self._resume or Resume()
            kernel = self.shared = self._make_owned(
                lambda folder: LocalKernel(
                    folder,
                    settings=options,
                    approve=self._approve,
                    on_refused=self._on_refused,
                    resume=resume.goes_on and options.sandbox != "off",
                    rerun=resume.rerun,
                    trust=resume.trust,
                )
            )
            if kernel.folder != self._folder:
                raise ConfigError(f"{self._folder}: a link to {kernel.folder} came there while it was opened")
            for one in kernel.granted.difference(options.read, options.write):
                raise ConfigError(f"a link to {one} came in place of what is granted while the session was opened")
            self.grants = Grants(options, kernel)
        return self.shared

    def _resolve_grants(self, options: KernelSettings) -> KernelSettings:
        """Return settings whose grants are paths without links, and make the user's folder one.

        Raises:
            ConfigError: what a link in a folder that nobody trusts leads to is not granted: whoever made the folder
                chose it; nor is one that came since a folder's file was read, whose links were followed then. Names
                the setting, the link, and what to do.
        """
        self.user_folder = "".join(self._without_links("session.user_folder", filter(None, [self.user_folder])))
        read = self._without_links("kernel.read", options.read)
        return replace(options, read=read, write=self._without_links("kernel.write", options.write))

    def _without_links(self, key: str, paths: Iterable[str]) -> tuple[str, ...]:
        found = []
        for path in paths:
            try:
                found.append(str(granted_path(Path(path).expanduser(), distrusted=self._distrusted)))
            except ConfigError as error:
                raise ConfigError(f"{key}: {error}") from error
            if found[-1] != path and self._read.folder_of(key) is not None:
                raise ConfigError(
                    f"{key}: {path} leads over a link to {found[-1]} since the settings that grant it were read, so "
                    "code is not granted it; look at who writes there, and start again"
                )
        return tuple(found)

    def _refuse_root(self, options: KernelSettings) -> None:
        """Refuse to let code write the session's folder, unless it lies in one that stays read-only, such as `.tw`.

        Raises:
            ConfigError: names the grant, and what to do.
        """
        if self._root is None or options.sandbox == "off":
            return
        root = self._root.resolve()
        for one in options.write:
            real = Path(one).expanduser().resolve()
            above = (root, *root.parents) if real.exists() else ()
            # by device and number: a mount gives a folder a second name
            around = next((folder for folder in above if folder.exists() and folder.samefile(real)), None)
            if around is not None and not any(map(is_protected, root.relative_to(around).parts)):
                raise ConfigError(
                    f"kernel.write: {one} can't be granted: this session is kept in it, in {root.parent}, and code "
                    "could write its journal; keep sessions elsewhere, or in a folder .tw there (--workspace, "
                    "session.workspace), or grant a folder below"
                )

    def _make_owned(self, make: Callable[[Path], _Made]) -> _Made:
        make_private_folder(self._folder)
        kernel = make(self._folder)
        self._undo.callback(kernel.close)
        self.made.append(kernel)
        return kernel
