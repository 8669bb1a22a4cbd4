"""Command hooks: the hooks that users have in the settings files of coding agents, run unchanged.

`.claude/settings.json` of the user and of a trusted project, and `[hooks.commands]` of the
configuration, name programs and HTTP addresses for moments of an agent's work. Each gets JSON and
answers by its exit code or by JSON; `handlers` maps the moments and the answers onto our events.
"""
