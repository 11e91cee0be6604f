"""Sessions: rounds, routing, limits, journal; and the one place where the parts of one are put together."""

from tw_autogen.session.answer import USER, Answer, Seconds, answer_text, failure_text, files_of
from tw_autogen.session.asked import asked_role
from tw_autogen.session.assembly import PluginsWanted, check_plugins, check_roles, open_kernel, open_session, open_team
from tw_autogen.session.budget import count_asked
from tw_autogen.session.conversation import AGENT_DESCRIPTION, CONTINUE, Conversation, Line, Reply
from tw_autogen.session.conversations import AnswerKey, Conversations, idle_seconds
from tw_autogen.session.inputs import FilesWanted, several
from tw_autogen.session.journal import Journal, read_journal, rounds_of
from tw_autogen.session.landing import Landing, Saved
from tw_autogen.session.learning import Learner, keep_example
from tw_autogen.session.named_files import files_not_made
from tw_autogen.session.profile import profile_file, profile_request, profile_value
from tw_autogen.session.project import Project, example_files, is_project, read_project
from tw_autogen.session.seats import (
    KernelWanted,
    ModelWanted,
    PolicyWanted,
    RolesWanted,
    RoleWanted,
    Seat,
    checked_models,
    checked_policy,
    role_name,
)
from tw_autogen.session.session import Session
from tw_autogen.session.settings import SessionSettings
from tw_autogen.session.settings_sources import ROOMS, read_logged, read_settings, review_folder
from tw_autogen.session.trust import Review, refuse_link, trust_lines
from tw_autogen.session.workspace import PastSession, outside_reason, past_sessions, prune_sessions

__all__ = [
    "AGENT_DESCRIPTION",
    "Answer",
    "CONTINUE",
    "AnswerKey",
    "Conversation",
    "Conversations",
    "Journal",
    "FilesWanted",
    "KernelWanted",
    "Landing",
    "Learner",
    "Line",
    "ModelWanted",
    "PastSession",
    "PluginsWanted",
    "PolicyWanted",
    "Project",
    "ROOMS",
    "Reply",
    "RoleWanted",
    "RolesWanted",
    "Review",
    "Saved",
    "Seat",
    "Seconds",
    "Session",
    "SessionSettings",
    "USER",
    "answer_text",
    "asked_role",
    "check_plugins",
    "check_roles",
    "checked_models",
    "checked_policy",
    "count_asked",
    "example_files",
    "failure_text",
    "files_of",
    "is_project",
    "keep_example",
    "idle_seconds",
    "open_kernel",
    "open_session",
    "open_team",
    "outside_reason",
    "past_sessions",
    "profile_file",
    "profile_request",
    "profile_value",
    "prune_sessions",
    "read_journal",
    "read_project",
    "read_logged",
    "read_settings",
    "refuse_link",
    "review_folder",
    "role_name",
    "rounds_of",
    "several",
    "trust_lines",
    "files_not_made",
]
