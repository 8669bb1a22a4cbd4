"""Folders of Claude Code: the subagents in `.claude/agents` of the user and of a project.

`hookline.ext.skills` reads the instructions and skills of such a folder, and
`hookline.ext.command_hooks` its hooks.
"""
