"""What the guest replaces inside ipykernel and IPython: each name with its reason, and still used by the library."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from tw_autogen.kernel import guest

FOREIGN = {
    "kernel", "shell", "shell.kernel", "shell.displayhook", "shell.display_pub", "shell.display_formatter",
    "shell.history_manager", "shell.compile", "self._shell", "hook", "handlers", "stream", "self._stream", "session",
    "ipkernel", "app", "history", "kind", "run", "shell_module",
}  # fmt: skip
"""What objects of the two libraries are called in the guest's modules."""

BASE, IPK, APP = "ipykernel.kernelbase", "ipykernel.ipkernel", "ipykernel.kernelapp"
IO, ZMQ, SESSION = "ipykernel.iostream", "ipykernel.zmqshell", "jupyter_client.session"
SHELL, HOOK, HISTORY = "IPython.core.interactiveshell", "IPython.core.displayhook", "IPython.core.history"

MADE_BEFORE = "application and shell are made before a fork; what belongs to the process is set after it"
QUICK = "costs each cell time, and nobody reads it"
LEAKS = "would keep what was printed or shown for as long as the kernel lives"
OUTPUT = "what is shown becomes files and one report, in the reply"
ERRORS = "errors are told once, short, in the report"
INTERRUPT = "an interrupt must stop the code that runs and nothing else, also while it awaits"
REPLY = "a cell that was cancelled or broke its exception would get none, nor any after it; or one that is too large"
PRINTED = "what is printed is bounded, and sent before the reply"
NO_TERMINAL = "IPython's own way wants a terminal, or asks whoever sits at the kernel"

PATCHES = {
    "app.connection_file": (APP, MADE_BEFORE),
    "shell.parent": ("traitlets.config.configurable", MADE_BEFORE),
    "shell.kernel": (ZMQ, MADE_BEFORE),
    "shell.ipython_dir": (SHELL, MADE_BEFORE),
    "shell.profile_dir": (SHELL, MADE_BEFORE),
    "shell.starting_dir": (SHELL, MADE_BEFORE),
    "shell._sys_modules_keys": (SHELL, "`%reset -f aggressive` would remove what the kernel itself has imported"),
    "history.hist_file": (HISTORY, MADE_BEFORE),
    "history.dir_hist": (HISTORY, MADE_BEFORE),
    "ipkernel.sys": (IPK, "the list of all modules, for a debugger that is not there, would copy 6 MB in each fork"),
    "kind._setup_pipe_in": (IO, "children's output comes over a Unix socket; the original opens a TCP port"),
    "kind._setup_pipe_out": (IO, "as `_setup_pipe_in`"),
    "shell.history_manager.enabled": (HISTORY, "history would write to a database after each cell"),
    "shell.history_manager.store_inputs": (HISTORY, LEAKS),
    "handlers['execute_request']": (BASE, "tells when a request begins and is over, with its reply"),
    "kernel._publish_status": (BASE, "busy and idle are two messages a cell that a reply says already"),
    "kernel._publish_execute_input": (BASE, QUICK),
    "run.__signature__": (IPK, "ipykernel asks for it before each cell, and making it takes longer than a short cell"),
    "kernel.do_execute": (IPK, REPLY),
    "shell.kernel.do_execute": (IPK, "the shell is asked twice what a cell becomes in Python, and whether it awaits"),
    "kernel.pre_handler_hook": (BASE, INTERRUPT),
    "kernel.saved_sigint_handler": (BASE, INTERRUPT),
    "kernel._cancel_on_sigint": (IPK, INTERRUPT),
    "shell.run_ast_nodes": (SHELL, INTERRUPT),
    "shell.user_expressions": (SHELL, INTERRUPT),
    "session.pack": (SESSION, "code may replace `json.dumps`, and half a surrogate pair can't be sent"),
    "session.unpack": (SESSION, "as `pack`"),
    "self._shell._last_traceback": (ZMQ, ERRORS),
    "shell.showtraceback": (SHELL, ERRORS),
    "shell.showsyntaxerror": (SHELL, ERRORS),
    "shell.showindentationerror": (SHELL, ERRORS),
    "shell._format_exception_for_storage": (SHELL, "would format each exception a second time"),
    "shell.compile.get_code_name": ("IPython.core.compilerop", "errors name a cell by its number"),
    "shell.ask_exit": ("IPython.core.autocall", "`exit` in a cell would end the kernel"),
    "shell.automagic": (SHELL, "`sx ('rm' 'x')` is Python, as the check before it took it to be"),
    "kernel.raw_input": (BASE, "`input()` would wait for an answer that never comes; host calls use the channel"),
    "kernel.getpass": (BASE, "as `raw_input`"),
    "shell.display_pub.publish": (ZMQ, OUTPUT),
    "shell.display_formatter.format": ("IPython.core.formatters", OUTPUT),
    "hook.write_output_prompt": (HOOK, OUTPUT),
    "hook.finish_displayhook": (HOOK, OUTPUT),
    "hook.start_displayhook": (HOOK, OUTPUT),
    "hook.write_format_data": (HOOK, OUTPUT),
    "hook.quiet": (HOOK, "would tokenize each cell again to look for a `;`"),
    "hook.update_user_ns": (HOOK, LEAKS),
    "shell.displayhook.log_output": (HOOK, LEAKS),
    "shell._tee": (SHELL, LEAKS),
    "shell.reset": (SHELL, "`%reset` would remove plugins and served functions for good"),
    "shell.system": (SHELL, NO_TERMINAL),
    "shell.getoutput": (SHELL, NO_TERMINAL),
    "self._stream.write": (IO, PRINTED),
    "self._stream.flush": (IO, PRINTED),
    "self._stream.close": (IO, PRINTED),
    "stream.fileno": (IO, "commands and C code write to the real descriptor, which is captured too"),
    "stream._should_watch": (IO, "ipykernel's own threads for these descriptors send what they read too late"),
}
"""Where the library has the name, and why it is replaced."""

ABSENT_BY_VERSION = {
    "shell._tee": "since IPython 9",
    "shell._format_exception_for_storage": "since IPython 8.22",
    "stream._should_watch": "not on Windows",
}
OURS = re.compile(r"\b(tw_|_tw)|^shell_module|^shell\.db$|^app\.tw|_shell\.user_ns|^shell\.user_ns")
"""Names of ours that are put on such objects; `shell.db`, which older shells make at once."""


def replaced():
    """Give every attribute or key of a foreign object that a module of the guest assigns."""
    found = {}
    for path in sorted(Path(guest.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            for one in (inner for outer in targets for inner in getattr(outer, "elts", [outer])):
                one = one.value if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) else one
                if isinstance(one, (ast.Attribute, ast.Subscript)) and ast.unparse(one.value) in FOREIGN:
                    found.setdefault(ast.unparse(one), path.name)
    return {name: file for name, file in found.items() if not OURS.search(name)}


def test_each_replaced_name_has_a_reason_and_none_is_listed_in_vain():
    assert set(replaced()) == set(PATCHES)


@pytest.mark.parametrize("name", PATCHES)
def test_the_library_still_uses_what_is_replaced(name):
    module, reason = PATCHES[name]
    last = re.sub(r"handlers\['(\w+)'\]", r"\1", name).rpartition(".")[2]
    last = {"__signature__": "signature", "sys": "sys"}.get(last, last)
    known = inspect.getsource(importlib.import_module(module))
    if name in ABSENT_BY_VERSION and last not in known:
        pytest.skip(f"{last} is not in every version: {ABSENT_BY_VERSION[name]}")

    assert reason
    assert re.search(rf"\b{last}\b", known), f"{module} has no {last} any more: is it replaced in vain?"
