"""Roles in TaskWeaver's own form: `<name>/<name>.role.yaml` and a class written against `taskweaver.role`."""

from tw_autogen.role.taskweaver.spec import SUFFIX, TaskWeaverRoleSpec, find_role_yaml, read_role_yaml

__all__ = ["SUFFIX", "TaskWeaverRoleSpec", "find_role_yaml", "read_role_yaml"]
