"""Extensions that ship with Hookline: tools, skills, MCP, command hooks, triggers, voice, stores."""
