"""Agents that run hooks as commands: Claude Code, Codex, Gemini CLI, opencode, pi.

    hookline hook install --for claude-code

The host starts a small client for each event (`hookline.system.hook_client`). The client asks a local
server, or does the work itself. Either way the event becomes a `Moment`, a `BridgeRun` with the hooks
of the user's home judges it, and the `Judgement` becomes an answer in the host's own format. A failure
anywhere on this way is a no.
"""
