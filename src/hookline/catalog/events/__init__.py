"""The events, one module for each family. `hookline.events` has all their names."""

from . import agent, gateway, message, misc, model, session, subagent, tool

FAMILIES = (gateway, session, agent, message, model, tool, subagent, misc)
"""In the order in which one turn meets them."""
