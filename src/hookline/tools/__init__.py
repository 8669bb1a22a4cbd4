"""Tools: functions that a model may call, the registry of them, and what becomes of their output.

`builtin_tools()` in `hookline.ext.tools` gives the ones that come with Hookline.
"""

from hookline.errors import DuplicateTool, ToolArgumentError, ToolError, UnknownTool

from .context import ToolContext
from .invoke import Result
from .output import cut, cut_content, model_content
from .registry import REGISTRY, Registry
from .tool import Tool, tool

__all__ = [
    "REGISTRY",
    "DuplicateTool",
    "Registry",
    "Result",
    "Tool",
    "ToolArgumentError",
    "ToolContext",
    "ToolError",
    "UnknownTool",
    "cut",
    "cut_content",
    "model_content",
    "tool",
]
