"""Why a confined command failed, in one line, so that the model and the person understand it."""

from __future__ import annotations

import re

from .settings import Profile

_WRITE = re.compile(r"Read-only file system|EROFS|Errno 30\b|Device or resource busy", re.IGNORECASE)
_NETWORK = re.compile(
    r"Network is unreachable|ENETUNREACH|Errno 101\b|Could not resolve|resolve host|ENOTFOUND|EAI_AGAIN"
    r"|failure in name resolution|Name or service not known|nodename nor servname"
    r"|Proxy CONNECT|tunnel failed|407 Proxy|403 Forbidden by Hookline",
    re.IGNORECASE,
)
_DENIED = re.compile(r"Permission denied|EACCES|Operation not permitted|EPERM", re.IGNORECASE)
_TAIL = 20_000

_WRITES = {
    "read-only": "nothing may be written but /tmp",
    "workspace": "writes are limited to the workspace (not its .git/hooks, .git/config or settings "
    "folders) and /tmp",
}


def explain(output: str, profile: Profile) -> str:
    """What in an output looks like the work of the sandbox; empty if nothing does."""
    text = output[-_TAIL:]
    found: list[str] = []
    if profile in _WRITES and _WRITE.search(text):
        found.append(_WRITES[profile])
    if _NETWORK.search(text):
        found.append("the network is reachable only through the proxy, for the hosts that are allowed")
    if not found and _DENIED.search(text):
        found.append("keys, other homes and Hookline's own files are hidden")
    return f"[sandbox ({profile}): {'; '.join(found)}]" if found else ""
