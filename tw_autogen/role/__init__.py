"""Who answers posts: the contract of a role, and how one is found, checked and made."""

from tw_autogen.role.faults import checked_post, offer_of, role_error
from tw_autogen.role.find import ROLE_FILE, find_role, read_role
from tw_autogen.role.loading import as_role
from tw_autogen.role.role import (
    CodeRunner,
    Growing,
    Interruptible,
    Killable,
    Offering,
    Placed,
    Role,
    Turn,
    Worker,
    report_call,
)
from tw_autogen.role.spec import RoleSpec
from tw_autogen.role.taskweaver import SUFFIX

__all__ = [
    "CodeRunner",
    "Growing",
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
