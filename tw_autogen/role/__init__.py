"""Who answers posts: the contract of a role, and how one is found, checked and made."""

from tw_autogen.role.role import (
    CodeRunner,
    Growing,
    Interruptible,
    Offering,
    Placed,
    Role,
    Turn,
    Worker,
    report_call,
)
from tw_autogen.role.spec import RoleSpec, find_role, read_role

__all__ = [
    "CodeRunner",
    "Growing",
    "Interruptible",
    "Offering",
    "Placed",
    "Role",
    "RoleSpec",
    "Turn",
    "Worker",
    "find_role",
    "read_role",
    "report_call",
]
