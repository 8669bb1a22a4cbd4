"""Bridges: Hookline's hooks, policies and approvals in agents of other frameworks.

    from hookline.bridges.langchain import hookline

    agent = create_agent(model, tools, middleware=[hookline([no_sudo])])

Each framework has a module with one function, `hookline(...)`, which returns what that framework takes.
`Bridge` is what they are made of: a host reports what happens in its agent and gets verdicts back.
"""

from typing import TYPE_CHECKING

from hookline.errors import BridgeError
from hookline.system.lazy_names import lazy_names

if TYPE_CHECKING:
    from .bridge import Bridge
    from .reports import HostAnswer, HostCall, HostRequest
    from .run import BridgeRun
else:
    __getattr__ = lazy_names(__name__, "bridge reports run")  # the command line loads this package, too

__all__ = ["Bridge", "BridgeError", "BridgeRun", "HostAnswer", "HostCall", "HostRequest"]
