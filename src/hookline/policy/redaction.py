"""`Redactor`: takes out of texts and nested data what should not be kept.

    redactor = Redactor(["secrets", "emails"])
    redactor.redact({"to": "ada@lovelace.org"})      # {"to": "[redacted email]"}

The plugin puts it before the tape. It is a guard: where it fails, nothing of the text is kept.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pydantic import Field, field_validator

from hookline.errors import PolicyError
from hookline.hooks import hookimpl
from hookline.hooks.errors import suggestion
from hookline.system.log_redaction import WITHHELD
from hookline.text.patterns import Pattern
from hookline.text.printable import names

from .detectors import DETECTORS, Find, SecretPattern, Span
from .secret_names import is_placeholder, looks_random, strength
from .settings import Section

REPLACE = "[redacted {kind}]"
IN_A_THREAD = 20_000
"""Characters of entries that are redacted in a thread; fewer take less time than the change to one."""
MOST_FINDINGS = 50_000
"""How many findings of one detector count before the rest of the text is redacted as a whole."""
_BASE_64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_OUTPUT = re.compile(r'read_output\(id="([0-9a-f]{8}-[0-9]{3,7})"')


class RedactionSettings(Section):
    """`[redaction]`."""

    enabled: bool = False
    """Redact everything stored: the tape, the trace, the audit log, files of long outputs."""
    detectors: list[str] = Field(default_factory=lambda: [*DETECTORS])
    patterns: dict[str, str] = Field(default_factory=dict)
    """Additional expressions in RE2 syntax, named by what they find."""
    allow: list[str] = Field(default_factory=list)
    """Expressions in RE2 syntax; a finding that one of them matches as a whole is left as it is."""
    replace: str = REPLACE
    exported: bool = True
    """Redact everything that leaves the machine, even if stored data is not redacted."""

    @field_validator("detectors")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in DETECTORS:
                near = suggestion(name, DETECTORS) or f"; there are {', '.join(DETECTORS)}"
                raise ValueError(f"no detector {name!r}{near}")
        return names

    @field_validator("patterns", "allow")
    @classmethod
    def _compiles(cls, given: Any) -> Any:
        named = cast("dict[str, str] | list[str]", given)
        for text in named.values() if isinstance(named, dict) else named:
            Pattern(text)
        return named

    @field_validator("replace")
    @classmethod
    def _formats(cls, text: str) -> str:
        try:
            text.format(kind="email")
        except (LookupError, ValueError):
            raise ValueError("may have {kind} in it and no other braces") from None
        return text


class Redactor:
    """Runs detectors, and replaces what they find with a word."""

    def __init__(
        self,
        detectors: Sequence[str] = tuple(DETECTORS),
        *,
        patterns: Mapping[str, str] | None = None,
        allow: Sequence[str] = (),
        replace: str = REPLACE,
    ) -> None:
        self._find: list[Find] = [find for name in detectors for find in DETECTORS[name]()]
        self._by_name = "secrets" in detectors
        for kind, text in (patterns or {}).items():
            self._find.append(SecretPattern(kind, text).find)
        self._allow = [Pattern(text) for text in allow]
        self._replace = replace

    @classmethod
    def of(cls, settings: RedactionSettings) -> Redactor:
        """The redactor that the settings describe."""
        return cls(
            settings.detectors,
            patterns=settings.patterns,
            allow=settings.allow,
            replace=settings.replace,
        )

    def redact(self, value: Any) -> Any:
        """A redacted copy of texts, lists, dicts and records.

        Everything below a field named password, token or the like is removed as a whole.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value))
        return self._parts(value, self.redact)

    def _parts(self, value: Any, redact: Callable[[Any], Any]) -> Any:
        if isinstance(value, list | tuple | set | frozenset):
            items = [redact(each) for each in cast("Iterable[Any]", value)]
            made = cast("Callable[[list[Any]], Any]", type(cast("Any", value)))
            return made(items)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: redact(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(cast("Any", value), **changed)
        return value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        named = _named(value)
        for key, each in value.items():
            name = self.text(key) if isinstance(key, str) else key
            while name in found:  # two that are the same once they are redacted
                name = f"{name} "
            says = named if named and key == "value" else key
            level = strength(says) if self._by_name and isinstance(says, str) else 0
            found[name] = self._secret(each, level, says) if level else self.redact(each)
        return found

    def _secret(self, value: Any, level: int, name: str, *, direct: bool = True) -> Any:
        """The redacted value of a secret name; sentences in nested data, such as descriptions, stay."""
        if isinstance(value, str):
            random = looks_random(value)
            is_secret = random or (level == 2 and (direct or " " not in value))
            return (
                self._word("secret", value)
                if value and is_secret and not is_placeholder(value)
                else self.text(value)
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            is_secret = level == 2 and "token" not in name.lower()
            return self._word("secret", str(value)) if is_secret else value
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value).items()
            return {key: self._secret(each, level, name, direct=False) for key, each in items}
        return self._parts(value, lambda each: self._secret(each, level, name))

    def text(self, text: str) -> str:
        """A redacted text."""
        spans = sorted(span for find in self._find for span in _bounded(find, text))
        if not spans:
            return text
        parts: list[str] = []
        at = 0
        for begin, end, kind in _apart(spans):
            parts += [text[at:begin], self._word(kind, text[begin:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _word(self, kind: str, found: str) -> str:
        if any(pattern.matches(found) for pattern in self._allow):
            return found
        return self._replace.format(kind=kind)


def _named(value: Mapping[Any, Any]) -> str:
    """The name in `{"name": "API_KEY", "value": "…"}`, a common form of lists of variables."""
    said = value.get("name", value.get("key")) if "value" in value else None
    return said if isinstance(said, str) else ""


def _bounded(find: Find, text: str) -> list[Span]:
    """The findings of a detector; after `MOST_FINDINGS`, the rest of the text counts as one."""
    spans = [*islice(find(text), MOST_FINDINGS)]
    if len(spans) == MOST_FINDINGS:
        _, end, kind = spans[-1]
        spans.append((end, len(text), kind))
    return spans


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one, by the name of the most telling one."""
    apart: list[Span] = []
    for begin, end, kind in spans:
        if apart and begin < apart[-1][1]:
            first = apart[-1]
            known = kind if first[2] == "secret" else first[2]
            apart[-1] = (first[0], max(end, first[1]), known)
        else:
            apart.append((begin, end, kind))
    return apart


class RedactionPlugin:
    """Redacts what tools answer before it is kept, the outputs that are kept in files too."""

    def __init__(self, redactor: Callable[[], Redactor], outputs: Path) -> None:
        self._redactor = redactor
        self._outputs = outputs

    @hookimpl(guard=True, trylast=True)
    async def tool_result_persist(self, result: Any) -> Any:
        """What the tape keeps of a result."""
        return await asyncio.to_thread(self._redact, result)

    def _redact(self, result: Any) -> Any:
        for name in {name for text in texts(result) for name in _OUTPUT.findall(text)}:
            for path in self._outputs.glob(f"{name}.*.txt"):
                self._redact_file(path)
        return self._redactor().redact(result)

    def _redact_file(self, path: Path) -> None:
        """Redact the file of a long output; it is removed if that fails."""
        if not path.is_file():
            return
        beside = path.with_suffix(".part")
        try:
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            data = self._redactor().text(text).encode("utf-8", "surrogateescape")
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            beside.replace(path)
        except BaseException:
            path.unlink(missing_ok=True)
            beside.unlink(missing_ok=True)
            raise


def texts(value: Any) -> Iterable[str]:
    """The texts of a result: itself, or those of its parts."""
    if isinstance(value, str):
        return [value]
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return [text for part in parts if isinstance(text := getattr(part, "text", None), str)]


STRUCTURE = names(
    "id role type kind status tool_call_id call_id entry_id from_id keep_from parent_id "
    "position session_id turn_id channel chat_id message_id joined delivery_id agent_id "
    "mime_type data"
)
"""Fields that link entries, or name a message's origin or a value's type; they stay."""
NAMING = ("name", "label")
"""Kinds of entries whose `name` is a person's own words."""
REDACTED = "redacted"
"""Set on a stored call whose arguments were redacted: resuming a turn must not make it again."""


class RedactedStore:
    """A tape's store that is given nothing unredacted; everything else is the store's own."""

    def __init__(self, store: Any, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, entries: Sequence[Any], **options: Any) -> None:
        """Keep entries, redacted."""
        size = sum(len(str(entry.payload)) for entry in entries)
        if size > IN_A_THREAD:
            kept = await asyncio.to_thread(self._all, entries)
        else:
            kept = self._all(entries)
        await self._store.append(kept, **options)

    def _all(self, entries: Sequence[Any]) -> list[Any]:
        return [redacted_entry(self._redactor, entry) for entry in entries]


def redacted_entry(redactor: Redactor, entry: Any) -> Any:
    """A redacted entry of a tape."""
    try:
        payload = _payload(redactor, entry.kind, entry.payload)
        return replace(entry, payload=payload, meta=_fields(redactor, entry.meta))
    except Exception as error:
        raise PolicyError(f"{WITHHELD}: {type(error).__name__}") from error


def _payload(redactor: Redactor, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    if kind in NAMING:
        return {**payload, "name": redactor.redact(payload.get("name"))}
    found = _fields(redactor, payload)
    if "arguments" in payload and kind == "tool_call":
        found |= _call(redactor, payload)
    if isinstance(message := payload.get("message"), dict):
        found["message"] = _message(redactor, cast("dict[str, Any]", message))
    if isinstance(envelope := payload.get("envelope"), dict):
        found["envelope"] = _fields(redactor, cast("dict[str, Any]", envelope))
    return found


def _fields(redactor: Redactor, given: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its links as they were."""
    return {
        **redactor.redact(given),
        **{n: given[n] for n in STRUCTURE & given.keys() if _links(given, n)},
    }


def _links(given: Mapping[str, Any], name: str) -> bool:
    """Whether a field links entries or holds media, and not text that was stored under such a name."""
    value = given[name]
    if name == "data":
        return (
            given.get("type") is not None
            and isinstance(value, str)
            and _BASE_64.fullmatch(value) is not None
        )
    if isinstance(value, str):
        return "=" not in value and not any(map(str.isspace, value))
    return value is None or isinstance(value, int)


def _message(redactor: Redactor, message: dict[str, Any]) -> dict[str, Any]:
    found = _fields(redactor, message)
    if calls := message.get("tool_calls"):
        found["tool_calls"] = [_call(redactor, call) for call in calls]
    if isinstance(content := message.get("content"), list):
        parts = cast("list[Any]", content)
        found["content"] = [
            _fields(redactor, cast("dict[str, Any]", part)) if isinstance(part, dict) else part
            for part in parts
        ]
    return found


def _call(redactor: Redactor, call: dict[str, Any]) -> dict[str, Any]:
    """A call with redacted arguments, and marked if that changed them."""
    found = _fields(redactor, call)
    for name in ("arguments", "requested"):
        if name in call:
            found[name] = redacted_arguments(redactor, call[name])
    if any(found.get(name) != call.get(name) for name in ("arguments", "requested")):
        found[REDACTED] = True
    return found


def redacted_arguments(redactor: Redactor, arguments: Any) -> Any:
    """Arguments of a call without secrets; JSON text stays JSON text."""
    if not isinstance(arguments, str):
        return redactor.redact(arguments)
    try:
        given: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return redactor.text(arguments)
    found = redactor.redact(given)
    return arguments if found == given else json.dumps(found)


def redacted_line(redactor: Redactor, line: str) -> str:
    """A redacted line of an export; ids, which link lines, stay."""
    value: dict[str, Any] = json.loads(line)
    if "payload" in value:
        value["payload"] = _payload(redactor, str(value.get("kind")), value["payload"])
    if "meta" in value:
        value["meta"] = _fields(redactor, value["meta"])
    return json.dumps(value, separators=(",", ":")) + "\n"
