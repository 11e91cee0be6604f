"""State that all sessions of a process share: each piece is listed with its reason, and no other is added unseen."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "tw_autogen"
MUTATING = {"append", "appendleft", "add", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"}
MUTATING |= {"setdefault", "update"}
SHARED = {
    "code_writable_folders.py _REGISTRIES": "the locked file where a process writes the folders of its kernels' code",
    "hosts/agentchat/agent_asker.py _LAST": "whose conversation an agent of the host is in, which sessions share",
    "hosts/agentchat/agent_asker.py _LOCKS": "one lock for each agent of the host, which sessions share",
    "kernel/first_server.py _first": "the fork server of the first kernel, until a pool takes it",
    "kernel/guest/plugin.py _files": "in a kernel's process: a plugins' file runs once for all its functions",
    "kernel/guest/plugin.py _folders": "folders of plugins, since modules of one name may lie in several",
    "kernel/guest/plugin.py _loads": "when a folder's plugins were loaded, so that edited modules are imported again",
    "kernel/guest/source_imports.py _folders": "in a kernel's process: folders whose modules come from their sources",
    "kernel/pool.py _default": "the fork server, which starts kernels for all sessions",
    "kernel/python_process.py _warned": "entries of the path for imports that were warned of, once a process",
    "kernel/sandbox_levels.py _failed": "levels that this machine has refused, so that each is tried once",
    "kernel/sandbox_levels.py _working": "what this machine's levels were found to do, so that they are tried once",
    "lazy_module.py _LAZY": "names of modules that this package imports late",
    "lazy_module.py _RUNNING": "imports of modules, of which a process has one each",
    "plugin/neighbour_imports.py _IMPORTED_FROM": "folders of open plugins, from which their modules import",
    "safe_folder/held_folder.py _HELD": "folders of running kernels, which every SafeFolder of the process must find",
    "safe_folder/held_folder.py _UNUSED": "descriptors of such folders that are no longer needed",
    "safe_folder/held_folder.py _USERS": "who is about to use such a descriptor",
    "safe_folder/temporary_folders.py _RECORDS": "temporary folders that end with this process",
    "hosts/partner_conversation.py _ALIVE": "sessions that are closed when the process ends",
    "trust_store.py _HELD": "folders that the user trusts until the process ends, where no record can be written",
    "trusted_files.py _HOLDERS": "how many sessions of the process compare what is imported with the same files",
    "trusted_files.py _NAMED": "folders of code that was named, of which Python's imports use no compiled file",
    "trusted_files.py _GUARDED": "folders that Python's own import system, which is one a process, compares",
}


def shared_in(path):
    """Return the module-level names of a file that its functions bind again or change in place."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {target.id for node in tree.body for target in _targets(node) if isinstance(target, ast.Name)}
    return sorted(
        {name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for name in _changed(node, top)}
    )


def _targets(node):
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def _changed(function, top):
    nodes = list(ast.walk(function))
    declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    local = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - declared
    local |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    yield from declared & top
    for node in nodes:
        value = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATING:
            value = node.func.value
        elif isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            value = node.value
        if isinstance(value, ast.Name) and value.id in top - local:
            yield value.id


def test_each_piece_of_shared_state_is_listed_with_its_reason():
    found = [
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "_shipped" not in path.parts
        for name in shared_in(path)
    ]

    assert found == sorted(SHARED)


def test_shared_state_is_seen(tmp_path):
    (tmp_path / "module.py").write_text(
        "kept, bound, own, read = {}, 0, [], {}\nkept = {}\nbound = 0\nown = []\nread = {}\n"
        "def f(key):\n    global bound\n    bound = 1\n    kept[key] = own = read.get(key)\n    own.append(1)\n"
    )

    assert shared_in(tmp_path / "module.py") == ["bound", "kept"]
