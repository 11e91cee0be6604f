"""`Beside`: what a role in TaskWeaver's form imports from its project, kept for that role alone."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from tw_autogen.role.taskweaver.names import LOADING, ROOT, installed_names
from tw_autogen.trusted_files import SourceLoader, compared_loader, files_in_use

_NEIGHBOURS = f"{ROOT}.ext_role."


class Beside:
    """What a role imports by absolute names from its project: `from roles.weather.helper import …`.

    Two projects may have a `roles.weather.helper` each. So such modules stand in `sys.modules` while an import of the
    role's own code runs, when it loads and later inside its functions, and at no other time; the role keeps them. What
    it finds with `importlib.import_module` when it answers is outside of this.

    Args:
        module: The dotted path of the role's class, as its YAML says it.
        python: The role's file.
    """

    def __init__(self, module: str, python: Path) -> None:
        self._neighbours = python.resolve().parent.parent
        self._folder, root = _place(module, python.resolve().parent)
        self._tops = {root} if root else set()
        self._modules: dict[str, ModuleType] = {}
        self._inside = False
        self.files = files_in_use()
        """What its modules are compared with; None: nothing."""
        self.builtins: Mapping[str, Any] = {**vars(builtins), "__import__": self._import}
        """What modules of the role see as builtins: their imports come here."""

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Make imports find the role's own modules, and what it is written against; no other role's of these names."""
        with LOADING:
            if self._inside:
                yield
                return
            others = {name: sys.modules.pop(name) for name in list(sys.modules) if self._owns(name)}
            finders = [_Finder(self, first=True), _Finder(self, first=False)]
            try:
                with installed_names(self._neighbours):
                    self._bring()
                    sys.meta_path.insert(0, finders[0])
                    sys.meta_path.append(finders[1])
                    self._inside = True
                    try:
                        yield
                    finally:
                        self._inside = False
                        for one in finders:
                            sys.meta_path.remove(one)
                        own = [name for name in sys.modules if self._owns(name)]
                        self._modules.update((name, sys.modules.pop(name)) for name in own)
            finally:
                sys.modules.update(others)

    def find(self, name: str, path: Sequence[str] | None, *, first: bool) -> ModuleSpec | None:
        """Find one of the role's own modules; a file at the top of the project only where nothing else has its name."""
        if path is None:
            if not self._folder or first != (name in self._tops):
                return None
            path = [str(self._folder)]
        elif not self._owns(name):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        self._tops |= {name} - {ROOT} if "." not in name else set()
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations = list(spec.submodule_search_locations)  # doesn't follow `sys.path`
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        elif spec.loader is not None and self.files is not None:
            spec.loader = compared_loader(spec.loader, self.files)
        return spec

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - called so
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import for code of the role, as `__import__` does."""
        top = (str((globals or {}).get("__package__")) if level else name).partition(".")[0]
        if top == ROOT or top in self._tops:
            with self.at_hand():
                return builtins.__import__(name, globals, locals, fromlist or (), level)
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            if self._inside or error.name != top:
                raise
        with self.at_hand():  # at the top of the project, and first needed by an answer
            return builtins.__import__(name, globals, locals, fromlist or (), level)

    def _owns(self, name: str) -> bool:
        return name.partition(".")[0] in self._tops or name.startswith(_NEIGHBOURS)

    def _bring(self) -> None:
        sys.modules.update(self._modules)
        for name, module in self._modules.items():
            parent, _, last = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], last, module)


class _Finder:
    """Asks `Beside` where imports look: in front for its own packages, behind all others for the rest."""

    def __init__(self, beside: Beside, *, first: bool) -> None:
        self._beside = beside
        self._first = first

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Find a module."""
        return self._beside.find(name, path, first=self._first)


class _Loader(SourceLoader):
    """Runs a module with the builtins of its role."""

    def __init__(self, name: str, path: str, beside: Beside) -> None:
        super().__init__(name, path, beside.files)
        self._builtins = beside.builtins

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        vars(module)["__builtins__"] = self._builtins
        super().exec_module(module)


def _place(module: str, folder: Path) -> tuple[Path | None, str]:
    """Return where the packages of a dotted path begin, and the first of them; nothing if the folders are others."""
    *packages, _ = module.rpartition(".")[0].split(".")
    for name in reversed(packages):
        if folder.name != name:
            return None, ""
        folder = folder.parent
    return (folder, packages[0]) if packages and packages[0] != ROOT else (None, "")
