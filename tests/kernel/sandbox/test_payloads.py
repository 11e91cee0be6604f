"""Harmful cells, whatever they look like: all succeed without the sandbox, none behind it."""

import contextlib

import pytest

from tests.kernel.sandbox.payloads import MARKS, Prize, payloads

PAYLOADS = payloads()

REFUSED_BY_INSTALL = {"pip-magic"}
"""What the setting `kernel.install` refuses, at the level `off` too."""


def test_each_payload_has_a_name_of_its_own_and_a_mark_that_the_host_can_check():
    assert len(PAYLOADS) >= 80
    assert len({payload.id for payload in PAYLOADS}) == len(PAYLOADS)
    assert {payload.mark for payload in PAYLOADS} == set(MARKS)


@pytest.mark.timeout(300)
def test_payloads_succeed_without_the_sandbox_and_fail_behind_it(level):
    succeeded, failed = [], {}
    with Prize() as host, level.kernel() as kernel:
        for payload in PAYLOADS:
            if payload.lacking():
                continue
            with level.kernel() if payload.destroys else contextlib.nullcontext(kernel) as fresh:
                through, execution = host.run(payload, fresh)
            if through:
                succeeded.append(payload.id)
            else:
                failed[payload.id] = execution.error[-300:] or execution.stderr[-300:]

    if level.name == "off":
        others = {name: why for name, why in failed.items() if name not in REFUSED_BY_INSTALL}
        assert not others, "\n".join(f"{name}: {why}" for name, why in others.items())
    else:
        assert not succeeded
