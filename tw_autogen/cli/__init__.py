"""The command line: `tw-autogen`, also `python -m tw_autogen.cli`."""

from tw_autogen.cli.main import main

__all__ = ["main"]
