"""Who answers posts: the contract of a role, and how one is found, checked and made."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.role.post_validation import capabilities_for, checked_post, failed_post
from tw_autogen.role.role import Killable, Placed, PostStream, Role, Turn, Worker, report_model_call
from tw_autogen.role.role_finder import find_role, is_role_file
from tw_autogen.role.role_source import as_role
from tw_autogen.role.spec import RoleSpec

__all__ = [
    "Killable",
    "Placed",
    "PostStream",
    "Role",
    "RoleSpec",
    "Turn",
    "Worker",
    "as_role",
    "capabilities_for",
    "checked_post",
    "failed_post",
    "find_role",
    "is_role_file",
    "report_model_call",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = old_names(
        __name__,
        {
            "tw_autogen.planner.answer_checks": ("CheckRunner",),
            "tw_autogen.planner.planner": ("TakesCode",),
            "tw_autogen.role.role": ("Offering",),
            "tw_autogen.role.role_finder": ("read_role", "ROLE_FILE"),
            "tw_autogen.role.taskweaver.spec": ("SUFFIX",),
            "tw_autogen.session.notebook_access": ("KeepsVariables",),
            "tw_autogen.session.team": ("CodeRunner", "Interruptible"),
        },
        renamed={
            "offer_of": "capabilities_for",
            "Growing": "PostStream",
        },
    )
