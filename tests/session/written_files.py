"""`write`: the files of a folder, for tests of what a folder may set."""

import json


def write(folder, files=None, /, **more):
    """Write files by their names, with the folders that they are in; what is no text is written as JSON."""
    for name, text in {**(files or {}), **more}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
