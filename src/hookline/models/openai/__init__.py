"""Models behind an OpenAI-compatible endpoint: `providers` names them, `client` talks to them.

The HTTP library is imported with the first request, nothing of it before.
"""
