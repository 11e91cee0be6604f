"""`resolve_model`: the model that the settings name, or one line about what is missing."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from tw_autogen.errors import NoModelError
from tw_autogen.model.error_messages import shown_url
from tw_autogen.model.openai_model import OpenAIModel, is_loopback
from tw_autogen.model.settings import OPENAI_URL, ModelSettings
from tw_autogen.text_escaping import visible_line

LOOKED_AT = (
    "--api-key",
    "OPENAI_API_KEY",
    "OAI_CONFIG_LIST",
    "./tw_autogen.yaml",
    "./taskweaver_config.json",
    "~/.config/tw-autogen/config.yaml",
)

_REMEDIES = """\
  - OpenAI:      export OPENAI_API_KEY=sk-...
  - local:       tw-autogen --base-url http://localhost:11434/v1 --model qwen3 ...   (no key needed)
  - no model:    tw-autogen demo"""


def resolve_model(settings: ModelSettings) -> OpenAIModel:
    """Return the model that the settings name.

    A key is needed unless the server is on loopback. A missing name is the only model that the server has; OpenAI's
    own server is not asked, a small model is the default.

    Args:
        settings: As the settings' reader filled them, environment and files included.

    Raises:
        NoModelError: no key, or no name and the server has several models or none.
        ModelError: no name, and the server that should say which it has doesn't answer.
        ConfigError: the address is none.
    """
    places = f"(looked at: {', '.join(LOOKED_AT)})"
    url = settings.base_url
    if not settings.api_key and not (url and is_loopback(url)):
        if url is None:
            raise NoModelError(f"no model configured.\n{_REMEDIES}\n{places}", looked_at=LOOKED_AT)
        remedy = "  - export OPENAI_API_KEY=...   (any word, if that server wants none)"
        raise NoModelError(f"no key for {shown_url(url)}.\n{remedy}\n{places}", looked_at=LOOKED_AT)
    model = OpenAIModel(settings)
    if settings.name or urlsplit(url or OPENAI_URL).hostname == urlsplit(OPENAI_URL).hostname:
        return model
    names = model.models()
    if len(names) == 1:
        return OpenAIModel(replace(settings, name=names[0]))
    message = (
        f"choose one of its models: {', '.join(map(visible_line, names))}" if names else "it has no model yet: load one"
    )
    raise NoModelError(
        f"no model configured: {model.base_url} was not told which one; {message}.\n"
        "  - tw-autogen --model NAME ..., or export OPENAI_MODEL=NAME",
        looked_at=("--model", "OPENAI_MODEL", f"{model.base_url}/models"),
    )
