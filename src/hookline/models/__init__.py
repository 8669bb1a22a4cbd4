"""Models: one streaming interface, the local model and the scripted one.

    models = Models()
    async for event in models.get("scripted:turns.toml").stream(ModelRequest(messages=[...])):
        ...

Names are loaded when they are first used: a runtime or a script reader costs nothing until then.
"""

from typing import TYPE_CHECKING

from hookline.errors import (
    BadSetting,
    ContextOverflow,
    ModelError,
    ModelFailed,
    ModelUnavailable,
    ScriptError,
    UnknownModel,
)

from .model import Model, ModelRequest, ToolChoice, ToolSchema, content_text, last_user_text
from .registry import DEFAULT_MODEL, Availability, ModelProvider, Models
from .thinking_level import LEVELS, check_thinking

if TYPE_CHECKING:
    from .local import LocalModel, LocalSettings
    from .script import Call, Fault, Turn
    from .scripted import ScriptedModel
else:
    _HOMES = {
        "Call": "script",
        "Fault": "script",
        "LocalModel": "local",
        "LocalSettings": "local",
        "ScriptedModel": "scripted",
        "Turn": "script",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hookline.models' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"hookline.models.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


__all__ = [
    "DEFAULT_MODEL",
    "LEVELS",
    "Availability",
    "BadSetting",
    "Call",
    "ContextOverflow",
    "Fault",
    "LocalModel",
    "LocalSettings",
    "Model",
    "ModelError",
    "ModelFailed",
    "ModelProvider",
    "ModelRequest",
    "ModelUnavailable",
    "Models",
    "ScriptError",
    "ScriptedModel",
    "ToolChoice",
    "ToolSchema",
    "Turn",
    "UnknownModel",
    "check_thinking",
    "content_text",
    "last_user_text",
]
