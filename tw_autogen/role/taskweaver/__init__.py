"""Roles in TaskWeaver's own form: `<name>/<name>.role.yaml` and a class written against `taskweaver.role`."""
