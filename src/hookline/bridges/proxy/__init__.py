"""`hookline proxy`: a model proxy that runs Hookline's hooks around any agent.

An agent that is pointed at the proxy keeps its own loop and tools. The proxy sees each request and each
answer, so that the gates judge prompts, model calls, the tool calls that the model requests, and
their results. Each wire format is one module; the rest does not know which format it serves.
"""
