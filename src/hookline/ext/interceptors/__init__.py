"""Interceptors: components written for the agent-hooks specification, run on our hooks.

The specification has eight interception points; `plugin` maps them onto our events, as an ordinary
plugin. `host` makes the emitter from `[agent_hooks]` of the settings, `approval` leads its questions to
`resolve_approval`, and `conformance` runs the specification's own test kit through a whole app.

The package `agent-hooks-sdk` brings the types, the composition of verdicts and the kit.
"""
