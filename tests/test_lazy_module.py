"""Modules that are imported later, or on a thread."""

import importlib
import threading

import pytest

from tw_autogen.lazy_module import finish_imports, import_soon


def test_many_threads_may_wait_for_what_is_being_imported():
    errors = []
    for name in ("xml.dom.minidom", "sqlite3.dump", "wsgiref.handlers"):
        import_soon(name)

    def finish():
        try:
            finish_imports()
        except Exception as error:  # noqa: BLE001 - a thread's errors are nobody's
            errors.append(error)

    threads = [threading.Thread(target=finish) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)

    assert not errors
    assert not [one for one in threading.enumerate() if one.name.startswith("tw-import-")]


@pytest.mark.parametrize("name", ["session", "kernel", "plugin", "recall"])
def test_a_package_whose_names_are_imported_later_lists_them(name):
    package = importlib.import_module(f"tw_autogen.{name}")

    assert set(package.__all__) <= set(dir(package))
