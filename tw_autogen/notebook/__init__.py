"""In a notebook: the magic `%tw`, and approvals that are asked for below the cell."""

from tw_autogen.notebook.approval import approve_in_notebook
from tw_autogen.notebook.magic import load_ipython_extension, unload_ipython_extension

__all__ = ["approve_in_notebook", "load_ipython_extension", "unload_ipython_extension"]
