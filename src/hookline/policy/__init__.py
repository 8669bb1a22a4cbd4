"""Policy: what happens to a tool call where no plugin decides, and what no plugin can loosen.

    policy = Policy.load({"packs": ["protected-paths"], "floor": {"deny": {"tools": ["shell"]}}})
    app = Hookline(policy=policy)

Cedar is loaded when the first rule is.
"""

from hookline.errors import PolicyError

from .meter import METERED, Meter
from .pack import Pack, load_pack, shipped_packs
from .policy import Policy, PolicyStep, strictest
from .settings import PolicySettings

__all__ = [
    "METERED",
    "Meter",
    "Pack",
    "Policy",
    "PolicyError",
    "PolicySettings",
    "PolicyStep",
    "load_pack",
    "shipped_packs",
    "strictest",
]
