"""A hook of MkDocs: the site's pages that lie outside `docs/`, and the links between the two.

The first page is the repository's README; SECURITY, ARCHITECTURE, the changelog, the folders' READMEs and the examples
are part of the site below `project/`. Links are written for readers of the repository, relative to the file that holds
them, and rewritten here; one that leads to nothing is left as it is, and `mkdocs build --strict` names it.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
_OUTSIDE = ("*.md", "plugins/README.md", "roles/**/README.md", "scenarios/README.md", "examples/*", "tests/parity.yaml")
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
_FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files from outside `docs/`."""
    for pattern in _OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                files.append(
                    File.generated(config, _on_site(path.relative_to(ROOT).as_posix()), abs_src_path=str(path))
                )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite a page's links, outside blocks of code, from the repository's paths to the site's."""
    here = page.file.src_uri
    source = _in_repository(here)

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        if not (ROOT / target).is_file():
            return match[0]
        return f"{match[1]}{posixpath.relpath(_on_site(target), posixpath.dirname(here) or '.')}{match[3]}"

    parts = _FENCE.split(markdown)
    return "".join(part if at % 2 else _LINK.sub(moved, part) for at, part in enumerate(parts))


def _on_site(path: str) -> str:
    """Return where a file of the repository is in the site's sources."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"project/{path}"


def _in_repository(path: str) -> str:
    """Return the reverse of `_on_site`."""
    if path == "index.md":
        return "README.md"
    return path.removeprefix("project/") if path.startswith("project/") else f"docs/{path}"
