"""The command line: `tw-autogen`, also `python -P -m tw_autogen.cli`: without `-P` the current folder's modules win."""

from tw_autogen.cli.search_path import leave_out_current_folder

leave_out_current_folder(__file__)  # before anything is imported that is not of this package

from tw_autogen.cli.main import main  # noqa: E402 - see above

__all__ = ["main"]
