"""Only named modules of the host touch files by path; everything else uses `SafeFolder`, as code can change a folder.

Two tables name every module with a raw call of the file system. Where a user named a place, or works in it, only reads
may go by path: what is made, changed or removed there goes through `open_or_make_folder` or `SafeFolder`. What
runs in a kernel or before its code (`kernel/guest`, `kernel/launcher`) is not of the host.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_OF_THE_HOST = (ROOT / "tw_autogen/kernel/guest", ROOT / "tw_autogen/kernel/launcher")
MODULES = sorted(
    path
    for folder in ("tw_autogen", "roles", "plugins")
    for path in (ROOT / folder).rglob("*.py")
    if not path.is_relative_to(NOT_OF_THE_HOST[0])
    and not path.is_relative_to(NOT_OF_THE_HOST[1])
    and "_shipped" not in path.parts
)


def words(text):
    return frozenset(text.split())


OS = words(
    "open unlink remove rmdir rename replace chmod chown lchown fchmod fchown mkdir makedirs listdir scandir walk "
    "fwalk stat lstat link symlink readlink truncate utime mkfifo removedirs renames access"
)
SHUTIL = words("copy copy2 copyfile copymode copystat copytree rmtree move chown")
OS_READS = words("listdir scandir walk fwalk stat lstat readlink access")
PATH_READS = words(
    "read_text read_bytes glob rglob iterdir stat lstat exists is_file is_dir is_symlink readlink samefile"
)
PATH = PATH_READS | words("write_text write_bytes unlink chmod lchmod rmdir touch symlink_to hardlink_to mkdir")
READERS = words("read_csv read_parquet read_excel read_json")
READ = {
    "tw_autogen/cli/workspace_choice.py": "asks whether the sessions' folder is there",
    "tw_autogen/session_layout.py": "reads the beginning of a session's journal, beside the folder of code",
    "tw_autogen/role/spec.py": "asks whether a path in a role's settings is a folder",
    "tw_autogen/safe_folder/directory_tree.py": "is SafeFolder",
    "tw_autogen/session/trust_review.py": "asks whose the folder is that is asked about",
    "tw_autogen/named_folders.py": "reads where links lead of a folder that may be anybody's; opens nothing",
    "tw_autogen/settings_trust.py": "asks which folder is the current one; lists the project's folders",
    "tw_autogen/unlisted_folders.py": "asks whether a folder that can't be listed is closed; opens nothing",
    "tw_autogen/cli/file_arguments.py": "files that the user names, before a session takes them",
    "tw_autogen/cli/mcp_server.py": "files that a client names, before a session takes them",
    "tw_autogen/plugin/listing.py": "the user's plugins",
    "tw_autogen/cli/plugins.py": "the user's plugins",
    "tw_autogen/plugin/neighbour_imports.py": "the user's plugins, and what lies beside them",
    "tw_autogen/cli/scenario.py": "scenarios of the user's or of the package",
    "tw_autogen/cli/scenario_show.py": "scenarios of the user's or of the package",
    "tw_autogen/code_interpreter/prompts.py": "prompts of the package",
    "tw_autogen/hosts/conversable/agent.py": "opens a session; no file",
    "tw_autogen/hosts/conversable/shared_session.py": "opens a session; no file",
    "tw_autogen/hosts/conversable/plugin_tools.py": "reads tables of files that SafeFolder has opened",
    "tw_autogen/kernel/guest_bundle.py": "the package's own source",
    "tw_autogen/kernel/attached_connection.py": "the connection file that the user names",
    "tw_autogen/kernel/pinned_paths.py": "asks by lstat what a granted file is, once its folder was compared",
    "tw_autogen/kernel/path_policy.py": "folders that the user grants",
    "tw_autogen/kernel/provisioner.py": "a folder of the notebook's user",
    "tw_autogen/kernel/seatbelt.py": "folders of the system",
    "tw_autogen/model/embedding.py": "a model's files",
    "tw_autogen/planner/answer_checks.py": "prompts of the package",
    "tw_autogen/recall/definition_prompt.py": "prompts of the package",
    "tw_autogen/planner/static_prompt.py": "prompts of the package",
    "tw_autogen/plugin/folder.py": "the user's plugins",
    "tw_autogen/plugin/import_check.py": "the user's plugins",
    "tw_autogen/plugin/entry_points.py": "the user's plugins",
    "tw_autogen/plugin/plugin_finder.py": "the user's plugins",
    "tw_autogen/errors.py": "lists names beside a path that the user names, for messages",
    "tw_autogen/plugin/mcp/connection.py": "the user's list of servers, and their logs",
    "tw_autogen/recall/documents.py": "the user's documents, examples and lessons",
    "tw_autogen/recall/examples.py": "the user's documents, examples and lessons",
    "tw_autogen/recall/experiences.py": "the user's documents, examples and lessons",
    "tw_autogen/recall/recall.py": "the user's documents, examples and lessons",
    "tw_autogen/role/role_finder.py": "the user's roles",
    "tw_autogen/role/role_source.py": "the user's roles",
    "tw_autogen/role/taskweaver/api.py": "the user's roles",
    "tw_autogen/role/taskweaver/spec.py": "the user's roles",
    "tw_autogen/safe_folder/open_without_links.py": "asks whether a name is a link, for the message",
    "tw_autogen/safe_folder/symlink_resolution.py": "reads the links of a path that the user names, opens none",
    "tw_autogen/safe_folder/used_elsewhere.py": "lists open folders that code may write, before a kernel starts",
    "tw_autogen/safe_folder/protected_names.py": "lists open folders that the user grants, before a kernel starts",
    "tw_autogen/cli/scenario_costs.py": "the user's scenarios",
    "tw_autogen/scenario/replay_and_record.py": "the user's scenarios",
    "tw_autogen/scenario/html_report.py": "reads its own template",
    "tw_autogen/scenario/scenario.py": "the user's scenarios",
    "tw_autogen/session/mentioned_files.py": "asks whether a large file of the user's can be read; SafeFolder reads",
    "tw_autogen/session/assembly.py": "the package's roles",
    "tw_autogen/session/request_inputs.py": "files that the user names; in a folder of a kernel through SafeFolder",
    "tw_autogen/session/working_copies.py": "asks when a file that the user has given or named was last written",
    "tw_autogen/session/answer_files.py": "asks which folders modules are imported from",
    "tw_autogen/recall/experience_writer.py": "prompts of the package, and the user's lessons",
    "tw_autogen/session/notebook_export.py": "looks for the package's own plugins",
    "tw_autogen/session/request_descriptions.py": "asks how large a file is, and whether a folder is empty",
    "tw_autogen/session/mcp_tools.py": "its own empty folder; what Python has compiled in the user's state folder",
    "tw_autogen/session/referenced_files.py": "what settings of the user's project name, hashed and never used here",
    "tw_autogen/session/plugins_read.py": "the user's plugins, of which nothing is believed",
    "tw_autogen/session/project.py": "the user's project",
    "tw_autogen/session/role_configs.py": "the user's settings; makes the session's folder before a kernel runs there",
    "tw_autogen/session/trust_wants.py": "asks which examples of it are links, to show where they lead",
    "tw_autogen/session/workspace.py": "makes the sessions' folder before a kernel runs there",
    "tw_autogen/settings.py": "the user's settings",
    "tw_autogen/shipped_folders.py": "the package's own files",
    "tw_autogen/sqlite_reader.py": "opens a private copy, or a database that the user names, in a process of its own",
    "tw_autogen/hosts/partner_conversation.py": "asks whether files that the user hands over are there",
}
"""Modules that read by path: whose files these are."""
WRITTEN = {
    "tw_autogen/session/session_fork.py": "times of copies, by the descriptors of files that SafeFolder has opened",
    "tw_autogen/cli/standard_streams.py": "the null device",
    "tw_autogen/code_writable_folders.py": "notes in the user's state folder",
    "plugins/sql_pull_data.py": "a private copy in a temporary folder of its own",
    "tw_autogen/cli/ask.py": "standard input, in a temporary folder of its own",
    "tw_autogen/cli/piped_input.py": "standard input, in a temporary folder of its own",
    "tw_autogen/kernel/connection.py": "the kernel's runtime folder, a temporary one",
    "tw_autogen/kernel/container_kernel.py": "the kernel's log in its runtime folder",
    "tw_autogen/kernel/kernel_folders.py": "the kernel's runtime folder, before the kernel starts",
    "tw_autogen/kernel/kernel_process.py": "the kernel's log in its runtime folder",
    "tw_autogen/kernel/kernel_start.py": "the kernel's runtime folder, before the kernel starts",
    "tw_autogen/kernel/launcher_client.py": "the fork server's log in its runtime folder",
    "tw_autogen/kernel/package_installer.py": "a temporary folder of its own for packages",
    "tw_autogen/kernel/sandbox_levels.py": "a temporary folder of its own, the mount point of a sandbox",
    "tw_autogen/private_files.py": "the user's cache folder; files of the state and cache folders",
    "tw_autogen/safe_folder/directory_calls.py": "is SafeFolder",
    "tw_autogen/safe_folder/safe_folder.py": "is SafeFolder; copies out of it, where code can't write",
    "tw_autogen/safe_folder/temporary_folders.py": "temporary folders, and this user's own record of them",
    "tw_autogen/testing/role_checks.py": "folders of its own, in checks that run code of their own",
    "tw_autogen/trust_store.py": "the user's state folder",
    "tw_autogen/trusted_files.py": "a copy in a temporary folder of its own",
}
"""Modules that make, change or remove by path: where, which is the host's own place, out of the reach of code."""


def raw_calls(source: str) -> list[tuple[int, str, bool]]:
    """Return line, text, and whether anything is written, of each call that reaches a file by its path."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function, owner, writes = node.func, "", False
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if isinstance(function, ast.Attribute):
            owner = function.value.id if isinstance(function.value, ast.Name) else "…"
        modes = [arg for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if name == "copy_out":  # whose target is a path
            hit = writes = True
        elif name == "open" and owner != "os":
            hit = not owner or len(modes) == len(node.args)
            writes = any(set(ast.unparse(arg)) & set("wax+") for arg in node.args[not owner :])
        elif owner == "os":
            hit = name in OS
            writes = "O_RDONLY" not in ast.unparse(node) if name == "open" else name not in OS_READS
        elif owner == "sqlite3":
            hit, writes = name == "connect", not any(keyword.arg == "uri" for keyword in node.keywords)
        elif owner == "pd":
            hit = name in READERS
        elif owner == "calls" or not owner:
            hit = False
        elif name in ("rename", "replace"):  # of a text it takes two arguments, of pandas and dataclasses others
            plain = not node.keywords and len(node.args) == 1
            hit = writes = plain and not isinstance(node.args[0], ast.Constant | ast.JoinedStr | ast.Starred)
        else:
            hit = name in (SHUTIL if owner == "shutil" else PATH) or (owner, name) == ("tempfile", "TemporaryDirectory")
            writes = name not in PATH_READS  # a temporary directory's clean-up follows links
        if hit:
            found.append((node.lineno, ast.unparse(function), writes))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_of_the_host_touches_no_file_by_path_unless_the_table_says_whose_it_is(path):
    name = path.relative_to(ROOT).as_posix()
    found = raw_calls(path.read_text(encoding="utf-8"))

    writes = [one for one in found if one[-1]]
    if name in WRITTEN:
        assert writes, f"{name} writes nothing by path any more: take it out of WRITTEN"
    elif name in READ:
        assert found, f"{name} touches no file by path any more: take it out of READ"
        assert not writes, (
            f"{name}: use open_or_make_folder or SafeFolder, unless the place is the host's own: {writes}"
        )
    else:
        assert not found, f"{name}: use SafeFolder, or say in the table whose files these are: {found}"


def test_no_module_stands_in_both_tables():
    assert not READ.keys() & WRITTEN.keys()


@pytest.mark.parametrize(
    "source",
    [
        "open(path)", "os.open(path, 0)", "os.chmod(path, 0)", "shutil.rmtree(path)", "path.read_text()", "path.open()",
        "path.open('rb')", "path.open(encoding='utf-8')", "sqlite3.connect(path)", "pd.read_csv(path)", "a.b.unlink()",
        "path.rglob('*')", "path.exists()", "Path(a, b).stat()",
        "tempfile.TemporaryDirectory(prefix='tw-')",
    ],
)  # fmt: skip
def test_a_raw_call_is_found(source):
    assert raw_calls(source)


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        ("open(path)", False), ("open(path, 'rb')", False), ("open(path, 'xb')", True), ("path.open('a')", True),
        ("path.open()", False), ("os.open(path, os.O_RDONLY)", False), ("os.open(path, _NEW, 0o600)", True),
        ("os.lstat(path)", False), ("os.replace(a, b)", True), ("path.replace(new)", True), ("path.unlink()", True),
        ("path.is_file()", False), ("folder.copy_out(name, path)", True),
        ("tempfile.TemporaryDirectory()", True), ("shutil.copyfile(a, b)", True), ("path.mkdir()", True),
    ],
)  # fmt: skip
def test_what_writes_is_told_from_what_reads(source, writes):
    assert [call[-1] for call in raw_calls(source)] == [writes]


@pytest.mark.parametrize(
    "source",
    ["folder.open_file(name)", "talks.open(partner)", "os.fdopen(number)", "text.replace(a, b)", "replace(one, a=2)"],
)
def test_what_reaches_no_file_by_path_is_not_found(source):
    assert not raw_calls(source)
