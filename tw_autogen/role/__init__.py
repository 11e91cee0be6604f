"""Who answers posts: the contract of a role, and how one is found, checked and made."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.role.post_validation import checked_post, offer_of, role_error
from tw_autogen.role.role import (
    CheckRunner,
    CodeRunner,
    Interruptible,
    KeepsVariables,
    Killable,
    Placed,
    PostStream,
    Role,
    TakesCode,
    Turn,
    Worker,
    report_model_call,
)
from tw_autogen.role.role_finder import find_role, is_role_file
from tw_autogen.role.role_source import as_role
from tw_autogen.role.spec import RoleSpec

__all__ = [
    "CheckRunner",
    "CodeRunner",
    "Interruptible",
    "KeepsVariables",
    "Killable",
    "Placed",
    "PostStream",
    "Role",
    "RoleSpec",
    "TakesCode",
    "Turn",
    "Worker",
    "as_role",
    "checked_post",
    "find_role",
    "is_role_file",
    "offer_of",
    "report_model_call",
    "role_error",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "Growing": "PostStream",
            "Offering": "tw_autogen.role.role.Offering",
            "read_role": "tw_autogen.role.role_finder.read_role",
            "ROLE_FILE": "tw_autogen.role.role_finder.ROLE_FILE",
            "SUFFIX": "tw_autogen.role.taskweaver.spec.SUFFIX",
        },
    )
