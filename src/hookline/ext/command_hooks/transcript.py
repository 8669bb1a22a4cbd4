"""Transcripts: a session as JSON Lines in a file, in the form in which hooks read conversations.

A file is written when a hook is about to be given its path, and only what the tape has gained since
goes in. The first time in a process it is written anew, with the last entries of the session.
"""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.system.private_files import private_folder
from hookline.text.foreign_json import parse_json

from . import names

if TYPE_CHECKING:
    from hookline.tape import Entry, TapeStore

FOLDER = "transcripts"
MOST = 2000
"""Entries of a session that are written when its file is made."""

_KINDS = ("message", "tool_result")
_UNSAFE = re.compile(r"[^A-Za-z0-9.#@_-]+")


class Transcripts:
    """The transcripts of one home."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.folder = home / FOLDER
        self._workspace = workspace
        self._last: dict[str, str | None] = {}
        """The entry that each file ends with."""

    def path(self, session_id: str) -> str:
        """The file of a session."""
        name = _UNSAFE.sub("_", session_id)[:120]
        if name != session_id:
            name += f"-{sha256(session_id.encode()).hexdigest()[:10]}"
        return f"{self.folder}/{name}.jsonl"

    async def write(self, store: TapeStore, session_id: str) -> str:
        """Bring a session's file up to date."""
        path = self.path(session_id)
        known = self._last.get(session_id)
        if known is None:
            found = await store.entries(session_id, kinds=_KINDS, limit=MOST, newest_first=True)
            entries = found[::-1]
        else:
            entries = await store.entries(session_id, kinds=_KINDS, after=known)
        if entries or session_id not in self._last:
            text = "".join(json.dumps(self._line(entry)) + "\n" for entry in entries)
            self._append(path, text, anew=known is None)
            self._last[session_id] = entries[-1].id if entries else None
        return path

    def _append(self, path: str, text: str, *, anew: bool) -> None:
        try:
            file = self._open(path, anew)
        except FileNotFoundError:  # the first time, or somebody took the folder away
            private_folder(self.folder)
            file = self._open(path, anew)
        try:
            rest = text.encode()
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)

    @staticmethod
    def _open(path: str, anew: bool) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if anew else os.O_APPEND), 0o600)

    def _line(self, entry: Entry) -> dict[str, Any]:
        message = self._result(entry) if entry.kind == "tool_result" else self._message(entry)
        return {
            "type": message["role"],
            "message": message,
            "uuid": entry.id,
            "parentUuid": entry.parent_id,
            "sessionId": entry.session_id,
            "timestamp": datetime.fromtimestamp(entry.time, UTC).isoformat(),
            "cwd": str(self._workspace),
        }

    def _message(self, entry: Entry) -> dict[str, Any]:
        said: dict[str, Any] = entry.payload["message"]
        content: Any = said.get("content", "")
        if said["role"] != "assistant":
            return {"role": said["role"], "content": content}
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts = [part for part in parts if part.get("text", True)]
        for call in said.get("tool_calls") or ():
            parts.append({"type": "tool_use", "id": call["id"], **self._call(call)})
        return {"role": "assistant", "content": parts}

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        arguments = call.get("arguments")
        try:
            given: Any = parse_json(arguments or "{}") if isinstance(arguments, str) else arguments
        except ValueError:
            given = None
        tool: str = call["name"]
        if not isinstance(given, dict):
            return {"name": names.subjects(tool)[0], "input": {"arguments": arguments}}
        shown = names.shown_input(tool, given, self._workspace)  # pyright: ignore[reportUnknownArgumentType]
        return {"name": names.shown_name(tool, given), "input": shown}  # pyright: ignore[reportUnknownArgumentType]

    @staticmethod
    def _result(entry: Entry) -> dict[str, Any]:
        payload = entry.payload
        result = {
            "type": "tool_result",
            "tool_use_id": payload["tool_call_id"],
            "content": payload["content"],
            "is_error": payload["is_error"],
        }
        return {"role": "user", "content": [result]}
