"""Modules that are imported later, or on a thread."""

import gc
import importlib
import sys
import threading

import pytest

from tw_autogen.lazy_module import import_soon, wait_for_imports, without_collector


def test_many_threads_may_wait_for_what_is_being_imported():
    errors = []
    for name in ("xml.dom.minidom", "sqlite3.dump", "wsgiref.handlers"):
        import_soon(name)

    def finish():
        try:
            wait_for_imports()
        except Exception as error:  # noqa: BLE001 - a thread's errors are nobody's
            errors.append(error)

    threads = [threading.Thread(target=finish) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert not errors
    assert not [one for one in threading.enumerate() if one.name.startswith("tw-import-")]


def test_several_modules_are_imported_one_after_the_other_and_one_that_is_missing_stops_none(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    names = ("lazy_first_here", "no_such_module_here", "lazy_last_here")
    for name in (names[0], names[2]):
        (tmp_path / f"{name}.py").touch()

    import_soon(*names)
    wait_for_imports()

    assert sys.modules.pop(names[0]) is not sys.modules.pop(names[2])


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_is_afterwards_as_it_was_even_after_an_error(collects):
    def fail():
        with without_collector():
            assert not gc.isenabled()
            raise ImportError("none")

    (gc.enable if collects else gc.disable)()
    try:
        with pytest.raises(ImportError, match="none"):
            fail()
        assert gc.isenabled() == collects
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("name", ["session", "kernel", "plugin", "recall"])
def test_a_package_whose_names_are_imported_later_lists_them(name):
    package = importlib.import_module(f"tw_autogen.{name}")

    assert set(package.__all__) <= set(dir(package))
