"""`Redactor`: takes out of texts and nested data what should not be kept.

    redactor = Redactor(["secrets", "emails"])
    redactor.redact({"to": "ada@lovelace.org"})      # {"to": "[redacted email]"}

The plugin puts it before the tape. It is a guard: where it fails, nothing of the text is kept.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field, field_validator

from hookline.hooks import hookimpl
from hookline.hooks.errors import suggestion

from .detectors import BLOCK, DETECTORS, LIBRARIES, SECRET_NAME, Find, Pattern, Span, missing
from .errors import PolicyError
from .settings import Section

REPLACE = "[redacted {kind}]"
PIECE = 100_000
"""Characters that are searched in one go, and those up to the end of the line."""
WITHHELD = "[withheld: it could not be redacted]"
_OUTPUT = re.compile(r'read_output\(id="([0-9a-f]{8}-[0-9]{3,7})"')


class RedactionSettings(Section):
    """`[redaction]`."""

    enabled: bool = False
    detectors: list[str] = Field(default_factory=lambda: [*DETECTORS])
    patterns: dict[str, str] = Field(default_factory=dict)
    """Further expressions, each with the name of what it finds."""
    allow: list[str] = Field(default_factory=list)
    """Expressions; what matches one as a whole is left as it is."""
    replace: str = REPLACE
    stored: list[Literal["results", "messages"]] = Field(
        default_factory=lambda: cast("list[Literal['results', 'messages']]", ["results"])
    )
    """What is redacted before it goes on the tape."""
    exported: bool = True

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
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from None
        return named

    @field_validator("replace")
    @classmethod
    def _formats(cls, text: str) -> str:
        try:
            text.format(kind="email")
        except (LookupError, ValueError):
            raise ValueError("may have {kind} in it and no other braces") from None
        return text


def check_installed(detectors: Iterable[str]) -> None:
    """Refuse detectors whose library is not there; the library itself is loaded when it is needed."""
    from importlib.util import find_spec

    for name in detectors:
        module, library = LIBRARIES.get(name, ("", ""))
        if module and find_spec(module) is None:
            raise missing(library)


class Redactor:
    """Finds by detectors, and puts a word in the place of what was found."""

    def __init__(
        self,
        detectors: Sequence[str] = tuple(DETECTORS),
        *,
        patterns: Mapping[str, str] | None = None,
        allow: Sequence[str] = (),
        replace: str = REPLACE,
    ) -> None:
        self._find: list[Find] = [find for name in detectors for find in DETECTORS[name]()]
        self._across: list[Find] = [BLOCK.find] if "secrets" in detectors else []
        """What may find something that goes over many lines."""
        for kind, text in (patterns or {}).items():
            self._across.append(Pattern(kind, re.compile(text)).find)
        self._allow = [re.compile(text) for text in allow]
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
        """A copy of texts, lists, dicts and records without what was found in them.

        The text of a field that is called a password, token or the like goes as a whole.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[Any, Any]", value))
        if isinstance(value, list | tuple | set | frozenset):
            items = [self.redact(each) for each in cast("Iterable[Any]", value)]
            made = cast("Callable[[list[Any]], Any]", type(cast("Any", value)))
            return made(items)
        if is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: self.redact(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(cast("Any", value), **changed)
        return value

    def _mapping(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, each in value.items():
            name = self.text(key) if isinstance(key, str) else key
            while name in found:  # two that are the same once they are redacted
                name = f"{name} "
            if isinstance(each, str) and each and isinstance(key, str) and SECRET_NAME.search(key):
                found[name] = self._word("secret", each)
            else:
                found[name] = self.redact(each)
        return found

    def text(self, text: str) -> str:
        """A text without what was found in it."""
        text = self._without(text, self._across)
        return "".join(self._without(piece, self._find) for piece in pieces(text))

    def _without(self, text: str, finders: Iterable[Find]) -> str:
        spans = sorted(span for find in finders for span in find(text))
        if not spans:
            return text
        parts: list[str] = []
        at = 0
        for begin, end, kind in _apart(spans):
            parts += [text[at:begin], self._word(kind, text[begin:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _word(self, kind: str, found: str) -> str:
        if any(pattern.fullmatch(found) for pattern in self._allow):
            return found
        return self._replace.format(kind=kind)


def pieces(text: str) -> Iterable[str]:
    """A long text in parts that end with a line: one search in all of it would hold up everybody."""
    at = 0
    while len(text) - at > PIECE:
        end = text.find("\n", at + PIECE) + 1
        if not end:
            break
        yield text[at:end]
        at = end
    yield text[at:]


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Spans that overlap as one, by the name of the first."""
    apart: list[Span] = []
    for begin, end, kind in spans:
        if apart and begin < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]), apart[-1][2])
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
            self._redact_file(self._outputs / f"{name}.txt")
        return self._redactor().redact(result)

    def _redact_file(self, path: Path) -> None:
        """Redact a long output where it lies; one that cannot be is removed."""
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


ADDRESS = ("channel", "chat_id", "message_id", "joined", "session_id")
"""The fields of an envelope by which a message is known."""


class RedactedStore:
    """A tape's store that keeps no message as it was said; everything else is the store's own.

    Calls stay as they are: a turn that was cut off makes them again, and must not make others.
    """

    KINDS = ("message", "turn", "inbound", "outbound", "anchor", "switch", "note", "state")

    def __init__(self, store: Any, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, entries: Sequence[Any], **options: Any) -> None:
        """Keep entries, redacted."""
        await self._store.append([self._redacted(entry) for entry in entries], **options)

    def _redacted(self, entry: Any) -> Any:
        if entry.kind not in self.KINDS:
            return entry
        try:
            return replace(entry, payload=self._payload(entry.kind, entry.payload))
        except Exception as error:
            raise PolicyError(f"{WITHHELD}: {error}") from error

    def _payload(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        redact = self._redactor.redact
        if kind in ("turn", "inbound") and payload.get("envelope"):
            return {**redact(payload), "envelope": self._envelope(payload["envelope"])}
        if kind != "message":
            return redact(payload)
        message: dict[str, Any] = payload["message"]
        calls = {"tool_calls": message["tool_calls"]} if "tool_calls" in message else {}
        return {**payload, "message": {**redact(message), **calls}}

    def _envelope(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Where it came from stays: a turn that was cut off must still find its sender."""
        kept = {name: envelope[name] for name in ADDRESS if name in envelope}
        return {**self._redactor.redact(envelope), **kept}


def redacted_line(redactor: Redactor, line: str) -> str:
    """A line of an export without what was found in its payload; ids, which link lines, stay."""
    import json

    value: dict[str, Any] = json.loads(line)
    for name in ("payload", "meta"):
        if name in value:
            value[name] = redactor.redact(value[name])
    return json.dumps(value, separators=(",", ":")) + "\n"
