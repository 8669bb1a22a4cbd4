"""Addresses that an HTTP hook may have: encrypted, or on this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def refusal(url: str) -> str | None:
    """Why an address cannot be used; None where it can."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host, parts = None, None
    if parts is None or not host or parts.scheme not in ("http", "https"):
        return "must be an address such as https://example.com/hook"
    if parts.username is not None or parts.password is not None:
        return "must not contain a name or password; use `headers`"
    if parts.scheme == "http" and not is_loopback(host):
        return "must begin with https://; http:// is for this machine alone, such as 127.0.0.1"
    return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
