"""`IsolatedImports`: absolute imports of a role's code, `taskweaver.…` and its project's, in a namespace a role."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from tw_autogen.conversation import AttachmentType
from tw_autogen.kernel.guest import install_names
from tw_autogen.role.role_source import module_name
from tw_autogen.role.taskweaver import api, memory
from tw_autogen.trusted_files import SourceLoader, compared_loader, trusted_files_for

ROOT = "taskweaver"
_MODULES = {
    "role": "Role RoleConfig RoleEntry",
    "role.role": "Role RoleConfig RoleEntry",
    "memory": "Attachment Conversation Memory Post Round SharedMemoryEntry",
    "memory.attachment": "Attachment AttachmentType",
    "memory.conversation": "Conversation",
    "memory.memory": "Memory SharedMemoryEntry",
    "memory.post": "Post",
    "memory.round": "Round",
    "memory.shared_memory_entry": "SharedMemoryEntry",
    "memory.type_vars": "RoleName SharedMemoryEntryType SharedMemoryEntryScope",
    "module": "",
    "module.event_emitter": "PostEventProxy SessionEventEmitter",
    "module.prompt_util": "PromptUtil",
    "module.tracing": "Tracing tracing_decorator tracing_decorator_non_class",
    "logging": "TelemetryLogger",
    "llm": "LLMApi format_chat_message ChatMessageType",
    "llm.util": "LLMApi format_chat_message ChatMessageType",
    "config": "",
    "config.config_mgt": "AppConfigSource",
    "config.module_config": "ModuleConfig",
    "session": "SessionMetadata",
    "utils": "read_yaml",
    "ext_role": "",
}
MODULES = tuple(f"{ROOT}.{name}" for name, content in _MODULES.items() if content)
"""The modules of TaskWeaver that a role may import."""
_CLASSES: Mapping[str, Any] = {
    **vars(memory),
    **vars(api),
    "AttachmentType": AttachmentType,
    "ChatMessageType": dict[str, Any],
    "ModuleConfig": api.RoleConfig,
    "RoleName": str,
    "SharedMemoryEntryScope": str,
    "SharedMemoryEntryType": str,
    "tracing_decorator_non_class": api.tracing_decorator,
}
_LOCK = threading.RLock()


class IsolatedImports:
    """Resolves the imports of one role: `import roles.weather.helper` loads `<namespace>.roles.weather.helper`.

    Two projects may have a `roles.weather.helper` each, and a program a package `roles` of its own; so none of a role's
    modules stands in `sys.modules` by its plain name. `importlib.import_module` in a role's code is outside of this.

    Args:
        module: The dotted path of the role's class, as its YAML says it.
        python: The role's file.
    """

    def __init__(self, module: str, python: Path) -> None:
        self._role = module_name(python)
        self._namespace = f"{self._role}.__project__"
        self._neighbours = python.resolve().parent.parent
        self._folder, self._package = _root_of(module, python.resolve().parent)
        self._files = trusted_files_for(python)
        self._found: dict[str, bool] = {}
        self.builtins: Mapping[str, Any] = {**vars(builtins), "__import__": self._import}
        """The builtins of the role's modules: their imports are resolved here."""

    def without_namespace(self, text: str) -> str:
        """Return a message with modules named as the role's author wrote them."""
        return text.replace(f"{self._namespace}.", "")

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the role, as a finder of `sys.meta_path` does.

        Args:
            name: Its full name.
            path: The `__path__` of the package that it is in.
            target: Not used.
        """
        if not name.startswith(f"{self._role}.") or (spec := PathFinder.find_spec(name, path)) is None:
            return None
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = list(spec.submodule_search_locations)  # doesn't follow `sys.path`
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self._files, self.builtins)
        elif spec.loader is not None and self._files is not None:
            spec.loader = compared_loader(spec.loader, self._files)
        return spec

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names that `__import__` has
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - as above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import for the role's code, as `__import__` does."""
        top = name.partition(".")[0]
        with self._on_meta_path():
            if level or not self._owns(top):
                return builtins.__import__(name, globals, locals, fromlist or (), level)
            module = builtins.__import__(f"{self._namespace}.{name}", None, None, fromlist or ("__name__",), 0)
            return module if fromlist else sys.modules[f"{self._namespace}.{top}"]

    @contextmanager
    def _on_meta_path(self) -> Iterator[None]:
        with _LOCK:
            if self._namespace not in sys.modules:
                self._make_namespace()
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)

    def _owns(self, top: str) -> bool:
        """Return whether a top-level name is the role's: at the top of its project if nothing else has that name."""
        if top in (ROOT, self._package) or f"{self._namespace}.{top}" in sys.modules:
            return True
        if top not in self._found:
            elsewhere = top in sys.modules or importlib.util.find_spec(top) is not None
            here = self._folder is not None and PathFinder.find_spec(top, [str(self._folder)]) is not None
            self._found[top] = here and not elsewhere
        return self._found[top]

    def _make_namespace(self) -> None:
        install_names()
        space, root = self._make_module("", str(self._folder) if self._folder else ""), self._make_module(ROOT)
        vars(root).update({key: value for key, value in vars(sys.modules.get(ROOT, root)).items() if key[:2] != "__"})
        sys.modules[f"{self._namespace}.{ROOT}.plugin"] = sys.modules[f"{ROOT}.plugin"]
        vars(space)[ROOT] = root
        for name, content in _MODULES.items():
            parent, _, last = f"{ROOT}.{name}".rpartition(".")
            made = self._make_module(f"{ROOT}.{name}", str(self._neighbours) if name == "ext_role" else "")
            vars(made).update({part: _CLASSES[part] for part in content.split()})
            setattr(sys.modules[f"{self._namespace}.{parent}"], last, made)
        if "injector" not in sys.modules and importlib.util.find_spec("injector") is None:
            vars(self._make_module("injector")).update(inject=lambda function: function)

    def _make_module(self, name: str, folder: str = "") -> ModuleType:
        """Return a new module of the namespace; where it has a folder, modules are found there."""
        full = f"{self._namespace}.{name}".rstrip(".")
        module = sys.modules[full] = ModuleType(full, "What a role in TaskWeaver's form imports.")
        if folder or not name:
            module.__path__ = [folder] if folder else []
        return module


class _Loader(SourceLoader):
    """Runs a module with the builtins of its role."""

    def __init__(self, name: str, path: str, files: Any, builtins_: Mapping[str, Any]) -> None:
        super().__init__(name, path, files)
        self._builtins = builtins_

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)


def _root_of(module: str, folder: Path) -> tuple[Path | None, str]:
    """Return where the packages of a dotted path begin, and the first of them; None if the folders have other names."""
    *packages, _ = module.rpartition(".")[0].split(".")
    for name in reversed(packages):
        if folder.name != name:
            return None, ""
        folder = folder.parent
    return (folder, packages[0]) if packages and packages[0] != ROOT else (None, "")
