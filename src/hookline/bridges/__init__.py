"""Bridges: Hookline's hooks, policies and approvals in agents of other frameworks.

    from hookline.bridges.langchain import hookline

    agent = create_agent(model, tools, middleware=[hookline([no_sudo])])

Each framework has a module with one function, `hookline(...)`, which returns what that framework takes.
`Bridge` is what they are made of: a host reports what happens in its agent and gets verdicts back.
"""

from hookline.errors import BridgeError

from .bridge import Bridge, BridgeRun, HostAnswer, HostCall, HostRequest

__all__ = ["Bridge", "BridgeError", "BridgeRun", "HostAnswer", "HostCall", "HostRequest"]
