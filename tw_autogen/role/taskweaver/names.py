"""`taskweaver.role`, `taskweaver.memory` and so on: what a role in TaskWeaver's form finds when it loads."""

from __future__ import annotations

import importlib.util
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tw_autogen.conversation import AttachmentType
from tw_autogen.kernel.guest.plugin import install_names
from tw_autogen.role.taskweaver import author, emitting, talk

ROOT = "taskweaver"
LOADING = threading.RLock()
"""Held while modules of a role stand under names that others may use too."""


def read_yaml(path: str) -> Any:
    """Read a YAML file."""
    return yaml.safe_load(Path(path).read_text(encoding="utf-8"))


_ROLE = {"Role": author.Role, "RoleConfig": author.RoleConfig, "RoleEntry": author.RoleEntry}
_MEMORY = {
    one.__name__: one
    for one in (talk.Attachment, talk.Conversation, talk.Memory, talk.Post, talk.Round, talk.SharedMemoryEntry)
}
_LLM = {"LLMApi": author.LLMApi, "format_chat_message": author.format_chat_message, "ChatMessageType": dict[str, Any]}
_TRACING = {
    "Tracing": author.Tracing,
    "tracing_decorator": author.tracing_decorator,
    "tracing_decorator_non_class": author.tracing_decorator,
}
NAMES: Mapping[str, Mapping[str, Any]] = {
    "role": _ROLE,
    "role.role": _ROLE,
    "memory": _MEMORY,
    "memory.attachment": {"Attachment": talk.Attachment, "AttachmentType": AttachmentType},
    "memory.conversation": {"Conversation": talk.Conversation},
    "memory.memory": {"Memory": talk.Memory, "SharedMemoryEntry": talk.SharedMemoryEntry},
    "memory.post": {"Post": talk.Post},
    "memory.round": {"Round": talk.Round},
    "memory.shared_memory_entry": {"SharedMemoryEntry": talk.SharedMemoryEntry},
    "memory.type_vars": {"RoleName": str, "SharedMemoryEntryType": str, "SharedMemoryEntryScope": str},
    "module": {},
    "module.event_emitter": {
        "PostEventProxy": emitting.PostEventProxy,
        "SessionEventEmitter": emitting.SessionEventEmitter,
    },
    "module.prompt_util": {"PromptUtil": talk.PromptUtil},
    "module.tracing": _TRACING,
    "logging": {"TelemetryLogger": author.TelemetryLogger},
    "llm": _LLM,
    "llm.util": _LLM,
    "config": {},
    "config.config_mgt": {"AppConfigSource": author.AppConfigSource},
    "config.module_config": {"ModuleConfig": author.RoleConfig},
    "session": {"SessionMetadata": emitting.SessionMetadata},
    "utils": {"read_yaml": read_yaml},
    "ext_role": {},
}
"""Each module below `taskweaver` that a role may import, and what is in it."""


@contextmanager
def installed_names(beside: Path | None = None) -> Iterator[None]:
    """Make `from taskweaver.role import Role` and its like find this package's types, as plugins find theirs.

    What was imported before under these names, from an installed TaskWeaver, is there again afterwards. Where none is
    installed the names stay, for what a role imports only when it answers.

    Args:
        beside: The folder of roles that is `taskweaver.ext_role` meanwhile: one of them may import from another.
    """
    with LOADING:
        install_names()
        modules = _modules(beside)
        before = {name: sys.modules[name] for name in modules if name in sys.modules}
        mine = getattr(before.get(ROOT), "__file__", None) is None and ROOT in before
        sys.modules.update(modules)
        try:
            yield
        finally:
            if not mine:  # a real one is installed: what was loaded is bound already
                for name in modules:
                    del sys.modules[name]
                sys.modules.update(before)
            elif "injector" in modules:
                del sys.modules["injector"]


def _modules(beside: Path | None) -> dict[str, types.ModuleType]:
    root = types.ModuleType(ROOT, "Stands in, so that roles and plugins find what they import.")
    vars(root).update({key: value for key, value in vars(sys.modules.get(ROOT, root)).items() if key[:2] != "__"})
    root.__path__ = []
    made = {ROOT: root}
    for name, content in NAMES.items():
        module = types.ModuleType(f"{ROOT}.{name}", "What a role's author writes against.")
        module.__path__ = [str(beside)] if name == "ext_role" and beside else []
        vars(module).update(content)
        parent, _, last = module.__name__.rpartition(".")
        setattr(made[parent], last, module)
        made[module.__name__] = module
    if "injector" not in sys.modules and importlib.util.find_spec("injector") is None:
        made["injector"] = types.ModuleType("injector", "Stands in while a role loads.")
        vars(made["injector"]).update(inject=lambda function: function)
    return made
