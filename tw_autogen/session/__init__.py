"""Sessions: rounds, routing, limits, journal; and the one place where the parts of one are put together."""

from typing import TYPE_CHECKING

from tw_autogen.deprecated import old_names
from tw_autogen.lazy_module import lazy_face

if TYPE_CHECKING:
    from tw_autogen.session.answer import AGENT_DESCRIPTION, USER, Answer
    from tw_autogen.session.answer_files import AnswerFiles, Saved
    from tw_autogen.session.assembly import (
        PluginsWanted,
        check_plugins,
        checked_opening,
        open_kernel,
        open_session,
        open_team,
    )
    from tw_autogen.session.budget import count_asked
    from tw_autogen.session.compaction import compact_session
    from tw_autogen.session.earlier_session import read_events
    from tw_autogen.session.event_journal import read_journal, rounds_of
    from tw_autogen.session.export import FORMATS, export_session
    from tw_autogen.session.markdown_text import fence_printed_output
    from tw_autogen.session.mentioned_files import files_not_made
    from tw_autogen.session.notebook_export import write_notebook
    from tw_autogen.session.program import Program
    from tw_autogen.session.program_parameters import Parameter
    from tw_autogen.session.project import Project, example_files, is_project, read_project
    from tw_autogen.session.request_inputs import FilesWanted, several
    from tw_autogen.session.role_configs import (
        KernelWanted,
        ModelWanted,
        PolicyWanted,
        RoleConfig,
        RolesWanted,
        RoleWanted,
        checked_policy,
        model_key,
        policy_of,
    )
    from tw_autogen.session.session import Session
    from tw_autogen.session.session_fork import fork_session
    from tw_autogen.session.settings import SessionSettings
    from tw_autogen.session.settings_sources import keyword_settings, read_logged, read_settings, review_folder
    from tw_autogen.session.trust_review import Review, distrusted_folder, trust_lines
    from tw_autogen.session.workspace import (
        PastSession,
        past_sessions,
        prune_refusal_reason,
        prune_sessions,
        refuse_link,
        remove_session,
        session_folder,
    )

__all__ = [
    "AGENT_DESCRIPTION",
    "Answer",
    "FORMATS",
    "FilesWanted",
    "KernelWanted",
    "AnswerFiles",
    "ModelWanted",
    "Parameter",
    "PastSession",
    "PluginsWanted",
    "PolicyWanted",
    "Program",
    "Project",
    "Review",
    "RoleWanted",
    "RolesWanted",
    "Saved",
    "RoleConfig",
    "Session",
    "SessionSettings",
    "USER",
    "fence_printed_output",
    "check_plugins",
    "checked_opening",
    "checked_policy",
    "compact_session",
    "count_asked",
    "distrusted_folder",
    "example_files",
    "export_session",
    "files_not_made",
    "fork_session",
    "is_project",
    "keyword_settings",
    "model_key",
    "open_kernel",
    "open_session",
    "open_team",
    "prune_refusal_reason",
    "past_sessions",
    "policy_of",
    "prune_sessions",
    "read_events",
    "read_journal",
    "read_logged",
    "read_project",
    "read_settings",
    "refuse_link",
    "remove_session",
    "review_folder",
    "rounds_of",
    "session_folder",
    "several",
    "trust_lines",
    "write_notebook",
]

if not TYPE_CHECKING:  # a type checker names an unknown attribute
    __getattr__ = lazy_face(
        __name__,
        {
            "answer": ("AGENT_DESCRIPTION", "USER", "Answer"),
            "answer_files": ("AnswerFiles", "Saved"),
            "assembly": (
                "PluginsWanted",
                "check_plugins",
                "checked_opening",
                "open_kernel",
                "open_session",
                "open_team",
            ),
            "budget": ("count_asked",),
            "compaction": ("compact_session",),
            "earlier_session": ("read_events",),
            "event_journal": ("read_journal", "rounds_of"),
            "export": ("FORMATS", "export_session"),
            "markdown_text": ("fence_printed_output",),
            "mentioned_files": ("files_not_made",),
            "notebook_export": ("write_notebook",),
            "program": ("Program",),
            "program_parameters": ("Parameter",),
            "project": ("Project", "example_files", "is_project", "read_project"),
            "request_inputs": ("FilesWanted", "several"),
            "role_configs": (
                "KernelWanted",
                "ModelWanted",
                "PolicyWanted",
                "RolesWanted",
                "RoleWanted",
                "RoleConfig",
                "checked_policy",
                "model_key",
                "policy_of",
            ),
            "session": ("Session",),
            "session_fork": ("fork_session",),
            "settings": ("SessionSettings",),
            "settings_sources": ("keyword_settings", "read_logged", "read_settings", "review_folder"),
            "trust_review": ("Review", "distrusted_folder", "trust_lines"),
            "workspace": (
                "PastSession",
                "past_sessions",
                "prune_refusal_reason",
                "refuse_link",
                "prune_sessions",
                "remove_session",
                "session_folder",
            ),
        },
        old_names(
            __name__,
            {
                "tw_autogen.closing": ("IdleTimer",),
                "tw_autogen.hosts.agent_role": ("partner_role_factory",),
                "tw_autogen.hosts.open_conversations": ("AnswerKey", "Conversations", "idle_seconds"),
                "tw_autogen.hosts.partner_conversation": ("CONTINUE", "Line", "Reply"),
                "tw_autogen.recall": ("keep_example", "Learner"),
                "tw_autogen.session.answer": ("Seconds",),
                "tw_autogen.session.assembly": ("check_roles",),
                "tw_autogen.session.event_journal": ("Journal",),
                "tw_autogen.session.request_descriptions": ("profile_value",),
                "tw_autogen.session.role_configs": ("checked_models",),
            },
            renamed={
                "Conversation": "tw_autogen.hosts.partner_conversation.PartnerConversation",
                "Landing": "AnswerFiles",
                "Seat": "RoleConfig",
                "answer_text": "tw_autogen.session.Answer.markdown",
                "failure_text": "tw_autogen.errors.RoundError.in_words",
                "files_of": "tw_autogen.session.Answer.files_markdown",
                "role_name": "model_key",
            },
        ),
    )
