"""`fetch_url`: a page of the web as text.

It counts as external, not as reading: an address that a model makes up can carry anything out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from functools import partial
from typing import Annotated
from urllib.parse import SplitResult, urljoin, urlsplit

from pydantic import Field

from hookline.errors import ToolError
from hookline.specs import SideEffects
from hookline.tools.output import is_binary
from hookline.tools.threads import in_thread
from hookline.tools.tool import Tool, tool

from .addresses import Reachable
from .html_text import html_text
from .http_get import Getting, HttpAnswer

LARGEST = 5_000_000
"""Bytes of a page that are read."""

_REDIRECTS = 5
_TEXT = re.compile(r"text/.*|application/(.*\+)?(json|xml|javascript|yaml|toml|x-ndjson|x-sh)")
_META = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)


def fetch_tool(*, allow: Iterable[str] = (), largest: int = LARGEST) -> Tool:
    """`fetch_url`, for an app that lets it reach some networks that are not public: `10.0.0.0/8`."""
    reachable = Reachable(allow)

    @tool(side_effects=SideEffects.external, registry=None)
    async def fetch_url(url: str, timeout: Annotated[float, Field(gt=0, le=120)] = 30) -> str:
        """Fetch a page by HTTP GET and show its text. HTML is converted to readable text.

        Refuses addresses that are not public, and content that is not text.

        url: The address, with http:// or https://.
        timeout: The limit for the whole request, in seconds.

        """
        try:
            async with asyncio.timeout(timeout):
                return await _fetch(url, reachable, timeout, largest)
        except TimeoutError:
            raise ToolError(f"{url} did not answer within {timeout:g} s") from None

    return fetch_url


fetch_url = fetch_tool()


async def _fetch(url: str, reachable: Reachable, seconds: float, largest: int) -> str:
    for _ in range(_REDIRECTS + 1):
        parts = _checked(url)
        getting = Getting(reachable, seconds, largest)
        try:
            answer = await in_thread(partial(getting.get, parts))
        finally:
            getting.give_up()
        target = answer.headers.get("Location")
        if answer.status not in {301, 302, 303, 307, 308} or not target:
            return await in_thread(partial(_text, url, answer, largest))
        url = urljoin(url, target)
    raise ToolError(f"{url} redirects more than {_REDIRECTS} times")


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{url!r} is not an address: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise ToolError(f"{url!r} is not an address that can be fetched; it begins with https://")
    if parts.username is not None or parts.password is not None:
        raise ToolError("an address with a name and a password in it is refused")
    return parts


def _text(url: str, answer: HttpAnswer, largest: int) -> str:
    kind = answer.headers.get_content_type() if "Content-Type" in answer.headers else ""
    if kind and not _TEXT.fullmatch(kind) and answer.status < 400:
        raise ToolError(f"{url} is {kind}, which is not text")
    text = _decoded(answer, kind)
    if "\0" in text[:8192] or is_binary(text[:8192]):
        raise ToolError(f"{url} is not text: {len(answer.body):,} bytes of binary data")
    if kind in {"text/html", "application/xhtml+xml"}:
        text = html_text(text, url)
    if answer.status >= 400:
        raise ToolError(f"{url} answered {answer.status} {answer.reason}\n{text[:1000]}".rstrip())
    cut = "" if answer.complete else f"\n[cut: only the first {largest:,} bytes were read]"
    return f"[{url}: {answer.status} {answer.reason}, {kind or 'no type'}]\n{text}{cut}"


def _decoded(answer: HttpAnswer, kind: str) -> str:
    charset = answer.headers.get_content_charset()
    if charset is None and kind == "text/html" and (found := _META.search(answer.body[:2048])):
        charset = found[1].decode()
    try:
        return answer.body.decode(charset or "utf-8", errors="replace")
    except (LookupError, ValueError):
        return answer.body.decode("utf-8", errors="replace")
