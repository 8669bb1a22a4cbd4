"""Agents that run hooks as commands: Claude Code, Codex, Gemini CLI, opencode, pi.

    hookline hook install --for claude-code

The host starts a small client for each event (`hookline.system.hook_client`). It asks a local server, or
does the work itself. Either way the event becomes a `Moment`, the moment of a `BridgeRun` in the user's
home, and its `Judgement` an answer in the host's own format. Whatever goes wrong on this way is a no.
"""
