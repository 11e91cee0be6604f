"""The command line: `tw-autogen`, also `python -P -m tw_autogen.cli`: without `-P` the current folder's modules win."""

from tw_autogen.cli.main import main

__all__ = ["main"]
