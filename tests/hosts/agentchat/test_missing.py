import importlib.util

import pytest

from tw_autogen.errors import HostError


@pytest.mark.skipif(importlib.util.find_spec("autogen_agentchat") is not None, reason="the host is installed here")
def test_without_the_host_one_error_says_what_to_install():
    with pytest.raises(HostError, match="needs autogen-agentchat, and there is no package") as caught:
        importlib.import_module("tw_autogen.hosts.agentchat")

    assert caught.value.command == 'pip install "tw-autogen[agentchat]"'
