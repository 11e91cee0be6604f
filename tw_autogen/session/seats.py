"""`Seat`: one role of a session as it is wanted, and what its name means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tw_autogen.code_interpreter import POLICIES, CodeInterpreter, CodeInterpreterSettings, Policy, find_policy
from tw_autogen.errors import ConfigError
from tw_autogen.kernel import Kernel
from tw_autogen.model import ChatModel
from tw_autogen.planner import Planner
from tw_autogen.plugin import PluginSpec
from tw_autogen.role import Role, RoleSpec, find_role
from tw_autogen.settings import Settings
from tw_autogen.shipped import shipped_folder
from tw_autogen.taskweaver_config import PLUGIN_ONLY

ALIASES = {
    "planner": Planner.name,
    "code_interpreter": CodeInterpreter.name,
    PLUGIN_ONLY: CodeInterpreter.name,
}

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


@dataclass(frozen=True)
class Seat:
    """One role of a session, and what it is made of.

    Args:
        role: The name of a shipped role or of an installed package's, the folder or class of one's own, a role, or a
            function that makes one.
        name: Its name in the talk; empty: the role's own.
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
        "tw_autogen.OpenAIModel(…), or such objects by role name; a model's name goes into "
        'settings={"model.name": …}'
    )


def _is_name(one: object) -> bool:
    return isinstance(one, str) and bool(one.strip())


def checked_policy(policy: PolicyWanted | None) -> Policy | None:
    """Give a policy that may be named, by its name or by the path of its YAML; None stays None.

    Raises:
        ConfigError: there is no such policy, or its YAML is wrong.
    """
    return policy if policy is None or isinstance(policy, Policy) else find_policy(policy)


def policy_of(seat: Seat, read: Settings) -> Policy:
    """Give what a seat's code may do: what was given, else what the settings say; a role's name that says it holds.

    A policy that was given beats the settings `policy` and `plugin_only`; `allowed_modules` and `blocked_functions`
    narrow that one too.

    Raises:
        ConfigError: the seat or the setting `code_interpreter.policy` names none, or its YAML is wrong.
    """
    own = read.read("code_interpreter", CodeInterpreterSettings)
    origin = Path(read.origin("code_interpreter.policy").partition(" (")[0])
    set_one = find_policy(own.policy, folder=origin.parent if origin.is_file() else None)
    policy = narrowed(checked_policy(seat.policy) or set_one, own)
    only = own.plugin_only and seat.policy is None or known(seat.role) == PLUGIN_ONLY
    if not only:
        return policy
    plugins_only = POLICIES["plugins-only"]
    blocked = plugins_only.blocked_functions | frozenset(own.blocked_functions)
    return replace(plugins_only, install=policy.install, blocked_functions=blocked)


def narrowed(policy: Policy, own: CodeInterpreterSettings) -> Policy:
    """Give a policy that allows only what the settings `allowed_modules` and `blocked_functions` leave of it."""
    if own.allowed_modules is not None:
        policy = policy.of_modules(own.allowed_modules)
    return replace(policy, blocked_functions=policy.blocked_functions | frozenset(own.blocked_functions))


def runs_code(seat: Seat) -> bool:
    """Say whether code is written and run here."""
    return ALIASES.get(known(seat.role)) == CodeInterpreter.name


def known(wanted: RoleWanted) -> str:
    """Give the short name of a role that is always known; empty for one that is to be loaded."""
    plain = str(wanted).lower().replace("codeinterpreter", "code_interpreter") if isinstance(wanted, str) else ""
    plain = PLUGIN_ONLY if plain == "pluginorchestrator" else plain  # its name in TaskWeaver's talk
    return plain if plain in ALIASES else ""


def role_name(wanted: RoleWanted) -> str:
    """Give the name under which a role's model is looked up; empty for one that a function makes."""
    if known(wanted):
        return ALIASES[known(wanted)]
    return role_spec(wanted).alias if isinstance(wanted, str | Path | type) else ""


def role_spec(wanted: str | Path | type) -> RoleSpec:
    """Find a role that is loaded when it is named."""
    return find_role(wanted, shipped=shipped_folder("roles"), built_in=BUILT_IN)
