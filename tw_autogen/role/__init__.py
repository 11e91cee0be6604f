"""Who answers posts: the contract of a role, and how one is found, checked and made."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.role.find import ROLE_FILE, find_role, read_role
from tw_autogen.role.loading import as_role
from tw_autogen.role.role import (
    CodeRunner,
    Interruptible,
    Killable,
    Offering,
    Placed,
    PostStream,
    Role,
    Turn,
    Worker,
    report_call,
)
from tw_autogen.role.spec import RoleSpec
from tw_autogen.role.taskweaver import SUFFIX
from tw_autogen.role.validation import checked_post, offer_of, role_error

__all__ = [
    "CodeRunner",
    "PostStream",
    "Interruptible",
    "Killable",
    "Offering",
    "Placed",
    "ROLE_FILE",
    "Role",
    "RoleSpec",
    "SUFFIX",
    "Turn",
    "Worker",
    "as_role",
    "checked_post",
    "find_role",
    "offer_of",
    "read_role",
    "report_call",
    "role_error",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(__name__, {"Growing": "PostStream"})
