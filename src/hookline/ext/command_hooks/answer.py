"""Answers: what a hook's exit code, its output or its JSON means."""

from __future__ import annotations

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from hookline.text.foreign_json import parse_json
from hookline.tools.process import ending

from .errors import HookFailed
from .process import LARGEST, CommandExit
from .settings import CommandHook

Permission: TypeAlias = Literal["allow", "ask", "deny"]

BLOCKED = 2
"""The exit code that blocks, with what is on standard error as the reason."""

LONGEST = 10_000
"""Characters of a text that a hook adds to a conversation."""

_ANSWERS = frozenset({"decision", "permissionDecision", "hookSpecificOutput", "continue"})
"""Fields of which every JSON answer that decides something has one."""
_SPEAKS = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events where plain output is context for the model."""

_OUTPUTS = ("updatedToolOutput", "updatedMCPToolOutput")


@dataclass(slots=True)
class HookAnswer:
    """What one hook wants."""

    hook: CommandHook
    block: bool = False
    reason: str = ""
    permission: Permission | None = None
    input: dict[str, Any] | None = None
    """The tool's input in place of the one it was asked about, in the format's names."""
    output: str | None = None
    """The tool's output in place of what it gave."""
    context: str = ""
    message: str = ""
    """A line for the person."""
    stop: bool = False
    """Whether the agent is to stop altogether."""
    failure: str = ""
    """Why there is no answer."""


def failed(hook: CommandHook, why: str) -> HookAnswer:
    """The answer of a hook that came to none: nothing, or a deny where it was asked for."""
    if not hook.denies:
        return HookAnswer(hook, failure=why)
    return HookAnswer(hook, block=True, reason=f"{hook.place} failed: {why}", failure=why)


def changed(hook: CommandHook, why: str) -> HookAnswer:
    """The answer of a project's hook that is no longer as it was trusted: a guard then denies."""
    block = hook.denies or hook.event == "PreToolUse"
    return HookAnswer(hook, block=block, reason=f"{hook.place} does not run: {why}", failure=why)


def of_command(hook: CommandHook, ended: CommandExit) -> HookAnswer:
    """What a command's end means."""
    if ended.code is None:
        return failed(hook, f"it ran longer than {hook.timeout:g} s and was ended")
    if ended.code == BLOCKED:
        reason = cut(text_of(ended.stderr)) or f"{hook.place} blocked this"
        return HookAnswer(hook, block=True, reason=reason)
    if ended.code != 0:
        said = text_of(ended.stderr).partition("\n")[0][:500]
        return failed(hook, ending(ended.code) + (f": {said}" if said else ""))
    if ended.cut:
        return failed(hook, f"it printed more than {LARGEST:,} bytes")
    return of_output(hook, ended.stdout)


def of_output(hook: CommandHook, output: bytes) -> HookAnswer:
    """What is printed, or answered over HTTP: JSON, or text that some events take as context."""
    text = text_of(output)
    if text.startswith("{"):
        try:
            data: Any = parse_json(text)
        except (ValueError, RecursionError) as error:
            if hook.denies or hook.event not in _SPEAKS:
                return failed(hook, f"what it printed is not JSON: {error}")
        else:
            try:
                return of_json(hook, cast("dict[str, Any]", data))
            except HookFailed as error:
                return failed(hook, str(error))
    elif _has_answer(text):
        return failed(hook, "it printed something before its JSON answer, which must stand alone")
    return HookAnswer(hook, context=cut(text)) if text and hook.event in _SPEAKS else HookAnswer(hook)


def _has_answer(text: str) -> bool:
    """Whether a JSON answer follows other output. Without this, a deny would be taken for text."""
    begin = text.find("\n{")
    try:
        data: Any = parse_json(text[begin + 1 :]) if begin >= 0 else None
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and not _ANSWERS.isdisjoint(cast("dict[str, Any]", data))


def of_json(hook: CommandHook, data: dict[str, Any]) -> HookAnswer:
    """What a JSON answer means; `HookFailed` where it says something that has no meaning."""
    answer = HookAnswer(hook, message=cut(_text(data, "systemMessage")))
    if _of_kind(data, "continue", bool) is False:
        answer.stop, answer.reason = True, cut(_text(data, "stopReason"))
    specific = cast("dict[str, Any]", _of_kind(data, "hookSpecificOutput", dict) or {})
    named = specific.get("hookEventName", hook.event)
    if named != hook.event:
        raise HookFailed(f"it answered for {named!r}, and was asked about {hook.event}")
    decision, why = data.get("decision"), _text(data, "reason")
    if decision in ("block", "deny"):
        answer.block = True
    elif decision in ("approve", "allow"):
        answer.permission = "allow"
    elif decision is not None:
        raise HookFailed(f"its decision {decision!r} is none: block, or nothing")
    if "permissionDecision" in data:
        raise HookFailed("permissionDecision of its answer belongs into hookSpecificOutput")
    permission = specific.get("permissionDecision")
    if permission is not None:
        if permission not in ("allow", "deny", "ask", "defer"):
            raise HookFailed(f"its permissionDecision {permission!r} is none: allow, deny or ask")
        answer.permission = "ask" if permission == "defer" else permission
        why = _text(specific, "permissionDecisionReason") or why
    answer.block = answer.block or answer.permission == "deny"
    answer.reason = cut(why) or answer.reason
    if answer.block and not answer.reason and hook.event == "PreToolUse":
        answer.reason = f"the hook at {hook.location} denied this without a reason"
    answer.input = _of_kind(specific, "updatedInput", dict)
    answer.context = cut(_text(specific, "additionalContext"))
    for key in _OUTPUTS:
        if specific.get(key) is not None:
            value = specific[key]
            answer.output = value if isinstance(value, str) else json.dumps(value)
    return answer


def _of_kind(data: dict[str, Any], key: str, kind: type) -> Any:
    value = data.get(key)
    if value is not None and not isinstance(value, kind):
        what = {bool: "true or false", dict: "an object"}[kind]
        raise HookFailed(f"{key} of its answer must be {what}")
    return value


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value.strip() if isinstance(value, str) else "" if value is None else json.dumps(value)


def text_of(output: bytes) -> str:
    """Output as text, whatever its bytes are."""
    try:
        is_wide = output.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        text = output.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = output.decode("utf-8", errors="replace")
    return text.strip().strip("\0").strip()


def cut(text: str) -> str:
    """A text that is not longer than what may be added to a conversation."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} characters left out …"
