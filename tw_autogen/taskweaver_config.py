"""What a TaskWeaver project's `taskweaver_config.json` means here, key by key."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASKWEAVER_FILE = "taskweaver_config.json"
PLUGIN_ONLY = "code_interpreter_plugin_only"
"""TaskWeaver's name for the interpreter that calls plugins and does nothing else."""

TASKWEAVER_KEYS: Mapping[str, str] = {
    "llm.api_key": "model.api_key",
    "llm.api_base": "model.base_url",
    "llm.model": "model.name",
    "llm.response_format": "model.response_format",
    "llm.openai.api_key": "model.api_key",
    "llm.openai.api_base": "model.base_url",
    "llm.openai.model": "model.name",
    "llm.openai.temperature": "model.temperature",
    "plugin.base_path": "plugin.folder",
    "code_generator.load_plugin": "plugin.load",
    "session.roles": "session.roles",
    "session.max_internal_chat_round_num": "session.max_posts",
    "code_interpreter.max_retry_count": "code_interpreter.max_tries",
    "code_generator.enable_auto_plugin_selection": "code_interpreter.enable_auto_plugin_selection",
    "code_generator.auto_plugin_selection_topk": "code_interpreter.auto_plugin_selection_topk",
    "workspace.workspace_path": "session.workspace",
    "role.base_path": "session.role_folder",
    "document_retriever.index_folder": "role.document_retriever.index",
    "document_retriever.size": "role.document_retriever.size",
    "web_search.result_count": "role.web_search.results",
    "llm.embedding_model": "embedding.name",
    "planner.use_example": "recall.use_planner_examples",
    "code_generator.use_example": "recall.use_code_examples",
    "planner.example_base_path": "recall.planner_examples",
    "code_generator.example_base_path": "recall.code_examples",
}
"""TaskWeaver's keys that have a meaning here; the others are ignored, and named."""

TASKWEAVER_DEFAULTS: Mapping[str, Any] = {"code_interpreter.auto_plugin_selection_topk": 3}
"""What a TaskWeaver project that says nothing means, where that is not what is meant here."""

_VERIFIED = "code_interpreter.code_verification_on"
TASKWEAVER_VERIFIED: Mapping[str, Any] = {
    "code_interpreter.allowed_modules": [
        *("pandas", "matplotlib", "numpy", "sklearn", "scipy", "seaborn", "datetime", "typing"),
    ],
    "code_interpreter.blocked_functions": [
        *("eval", "exec", "execfile", "compile", "open", "input", "raw_input", "reload", "__import__", "getattr"),
        *("setattr", "delattr", "vars", "globals", "locals", "__getattribute__", "__setattr__", "__delattr__"),
    ],
}
"""What a TaskWeaver project that has its code verified means by saying no more; read only where it has."""

_LLMS = "ext_llms.llm_configs"
_EMBEDDING = "llm.embedding_api_type"
_ALIASES = {"planner.llm_alias": "planner.model", "code_generator.llm_alias": "code_interpreter.model"}
_COMPRESSION = ("planner.prompt_compression", "code_generator.prompt_compression")
_EXPERIENCE = ("planner", "code_generator")  # roles whose lessons are ours, from one folder
_SAYS_NOTHING = {  # values that are so here in any case
    "llm.api_type": "openai",
    "execution_service.kernel_mode": "local",
    "code_interpreter.code_prefix": "",
}
_API_TYPE = "llm.api_type"
_SERVER = "any OpenAI-compatible server is named by `model.base_url`, which all roles share"
_IN_REQUESTS = {  # what TaskWeaver puts into each request, and what it is called there
    "stop_token": "stop",
    **{name: name for name in ("max_tokens", "top_p", "seed", "frequency_penalty", "presence_penalty")},
}
_CONTAINER = "in Python `kernel=` takes a function that makes a `ContainerKernel`"
_REMEDIES: Mapping[str, str] = {
    **{
        f"llm.openai.{name}": f"`model.extra` adds it to each request, under the server's name for it (`{sent}`)"
        for name, sent in _IN_REQUESTS.items()
    },
    "code_interpreter.code_prefix": "run it with `session.run_code(…)` before the first request, or make it a plugin",
    "execution_service.kernel_mode": (f"code runs in a sandbox here in any case; {_CONTAINER}"),
    "execution_service.custom_image": f"{_CONTAINER}, with that image",
    "execution_service.env_dir": "`kernel.python` names the interpreter that runs the code",
    "llm.api_key": "a key goes to the server that `llm.api_base` names beside it",
    "llm.api_type": _SERVER,
    "planner.llm_alias": f"`planner.model` names the Planner's model; {_SERVER}",
    "code_generator.llm_alias": f"`code_interpreter.model` names the CodeInterpreter's model; {_SERVER}",
    "planner.prompt_file_path": "what is to be said beside the Planner's own prompt stands in `planner.instructions`",
    "round_compressor.rounds_to_compress": "`recall.compress_tokens` says from which length rounds are summarised",
    "round_compressor.rounds_to_retain": "`recall.compress_tokens` says from which length rounds are summarised",
    "experience.retrieve_threshold": "`recall.experience_min_score`, on the scale of what ranks the lessons",
    "tracing.enabled": "each step is an event with its time and tokens, which a handler may hand on",
    "session.experience_dir": "`recall.experience` names the folder of lessons",
    "web_search.api_provider": "`role.web_search.url` names a search engine",
}
"""What to do about keys that have no counterpart."""
_ALWAYS_KNOWN = ("planner", "code_interpreter", PLUGIN_ONLY)  # roles whose keys are sections of their own
TASKWEAVER_ALIASES: Mapping[str, str] = {"PluginOrchestrator": "CodeInterpreter", "CLIAgent": "CommandLine"}
"""Names in posts of TaskWeaver's roles that are called otherwise here."""
_ROLE_NAMES = {"code_interpreter_cli_only": "command_line"}  # what a role is called here
_COMMON_ROLE_KEYS = (  # what each of TaskWeaver's roles has, and here only Planner and CodeInterpreter have
    *("use_experience", "experience_dir", "dynamic_experience_sub_path"),
    *("use_example", "example_base_path", "dynamic_example_sub_path"),
)


@dataclass(frozen=True)
class Meant:
    """One value, as it is said here.

    Args:
        key: Ours, dotted.
        value: As it stands in the file, with what its paths may hold filled in.
        said_by: TaskWeaver's key, or that it is TaskWeaver's default.
    """

    key: str
    value: Any
    said_by: str


@dataclass(frozen=True)
class ConfigTranslation:
    """What a file means.

    Args:
        meant: Weakest first: a later value of the same key replaces an earlier one.
        ignored: TaskWeaver's keys that have no meaning here, sorted.
    """

    meant: tuple[Meant, ...]
    ignored: tuple[str, ...]


def meaning_of(
    found: Mapping[str, Any], folder: Path, *, is_folder: Callable[[Path], bool] = os.path.isdir
) -> ConfigTranslation:
    """Return what TaskWeaver's keys mean here.

    Args:
        found: Dotted keys and values, as the file holds them.
        folder: The project's.
        is_folder: Returns whether a folder of lessons is there.
    """
    found = {key: value for key, value in found.items() if _SAYS_NOTHING.get(key) != value or value is None}
    said = found.get("session.roles")
    roles = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    ours = {key: meant for key in found if (meant := _translate_key(key, roles)) and _has_meaning(key, found)}
    together, used = _combined_meanings(found, folder, is_folder)
    values = (*_single_meanings(found, ours, roles, folder), *together)
    return ConfigTranslation(values, tuple(sorted(found.keys() - ours.keys() - used)))


def remedies(ignored: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each key without a meaning here whose purpose is served otherwise.

    Args:
        ignored: As `ConfigTranslation.ignored`.
    """
    return tuple(f"{key}: {_REMEDIES[key]}" for key in ignored if key in _REMEDIES)


def _combined_meanings(
    found: Mapping[str, Any], folder: Path, is_folder: Callable[[Path], bool]
) -> tuple[list[Meant], set[str]]:
    """Return what several keys mean together, and these keys: models by alias, lessons, compression."""
    meant: list[Meant] = []
    used: set[str] = set()
    configs = found.get(_LLMS)
    for key, ours in _ALIASES.items():
        alias = found.get(key)
        config = configs.get(alias) if isinstance(configs, Mapping) and isinstance(alias, str) else None
        config = config if isinstance(config, Mapping) else {}
        name, base = config.get("llm.model"), config.get("llm.api_base")
        same_type = config.get(_API_TYPE, "openai") == found.get(_API_TYPE, "openai")
        if name and same_type and base in (None, found.get("llm.api_base")):  # ours has one server for all roles
            meant.append(Meant(ours, name, key))
            used |= {key, _LLMS}
    for role in _EXPERIENCE:
        place = _expand_path(found.get(f"{role}.experience_dir") or "experience", folder)
        if found.get(f"{role}.use_experience") is True and isinstance(place, str | Path) and is_folder(folder / place):
            meant.append(Meant("recall.experience", str(folder / place), f"{role}.use_experience"))
            used |= {f"{role}.use_experience", f"{role}.experience_dir"} & found.keys()
    compressed = [found[key] for key in _COMPRESSION if key in found]
    if compressed and not any(compressed):
        meant.append(Meant("recall.compress_tokens", 0, next(key for key in _COMPRESSION if key in found)))
    used |= {key for key in _COMPRESSION if key in found}
    if found.get(_EMBEDDING) == "openai" and found.get("llm.embedding_model"):
        used.add(_EMBEDDING)
    return meant, used


def _single_meanings(
    found: Mapping[str, Any], ours: Mapping[str, str], roles: Sequence[Any], folder: Path
) -> Iterator[Meant]:
    for key, value in {**TASKWEAVER_DEFAULTS, **(TASKWEAVER_VERIFIED if found.get(_VERIFIED) is True else {})}.items():
        yield Meant(key, value, "TaskWeaver's default")
    if PLUGIN_ONLY in roles:
        yield Meant("code_interpreter.plugin_only", True, "session.roles")
    for key, meant in ours.items():
        value = found[key]
        if value in (None, "") and key == "llm.response_format":
            value = "text"
        if key == "session.roles":
            value = [_ROLE_NAMES.get(str(role), role) for role in roles] or value
        if value not in (None, ""):
            yield Meant(meant, _expand_path(value, folder), key)


def _translate_key(key: str, roles: Sequence[Any]) -> str:
    """Return what one of TaskWeaver's keys is called here; empty if it has no meaning."""
    if key in TASKWEAVER_KEYS or key in TASKWEAVER_VERIFIED:
        return TASKWEAVER_KEYS.get(key, key)
    name, _, rest = key.partition(".")
    own = rest and name in roles and name not in _ALWAYS_KNOWN and rest not in _COMMON_ROLE_KEYS
    return f"role.{key}" if own else _VERIFIED if key == _VERIFIED else ""


def _has_meaning(key: str, config: Mapping[str, Any]) -> bool:
    """Return whether a key that is known holds something here: lists of a check need the check."""
    if key in (_VERIFIED, *TASKWEAVER_VERIFIED):
        return config.get(_VERIFIED) is True
    if key == "llm.embedding_model":  # another kind is a library's, whose names mean nothing to a server
        return bool(config.get(_EMBEDDING) == "openai")
    if key == "llm.api_key":  # of another kind of server, whose address TaskWeaver knows, it goes to no other one
        return bool(config.get("llm.api_base")) or "llm.api_type" not in config
    return not (isinstance(config[key], str) and "${ModuleBaseDir}" in config[key])  # TaskWeaver's own files


def _expand_path(value: Any, folder: Path) -> Any:
    """Fill in what TaskWeaver's paths may hold: `${AppBaseDir}` is the project's folder, `~` the user's."""
    if not isinstance(value, str) or not value.startswith(("${AppBaseDir}", "~")):
        return value
    return os.path.expanduser(value.replace("${AppBaseDir}", str(folder)))
