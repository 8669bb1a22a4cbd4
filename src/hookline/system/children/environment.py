"""The environment of child processes: an allow-list, and a search path without surprises."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

KEPT = frozenset({
    "COLORTERM", "COLUMNS", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "LOGNAME", "NO_COLOR",
    "NO_PROXY", "TERM", "TZ", "USER", "no_proxy",
})  # fmt: skip
"""Variables that every child sees, together with `LC_*`."""

PLACES = frozenset({
    "ANDROID_HOME", "CARGO_HOME", "CONDA_PREFIX", "CURL_CA_BUNDLE", "DENO_DIR", "DOTNET_ROOT", "GOPATH",
    "GOROOT", "HOME", "JAVA_HOME", "NODE_EXTRA_CA_CERTS", "NVM_DIR", "PNPM_HOME", "PYENV_ROOT",
    "RBENV_ROOT", "REQUESTS_CA_BUNDLE", "RUSTUP_HOME", "SDKMAN_DIR", "SHELL", "SSL_CERT_DIR",
    "SSL_CERT_FILE", "TMPDIR", "VIRTUAL_ENV", "VOLTA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "XDG_DATA_HOME", "XDG_STATE_HOME",
})  # fmt: skip
"""Variables that every child sees if they are absolute: others would lead into the workspace."""

PROXIES = frozenset(
    {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "http_proxy", "https_proxy"}
)
"""Variables that every child sees unless they contain a password."""

SYSTEM = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
    "/opt/homebrew/bin", "/run/current-system/sw/bin",
)  # fmt: skip
"""Where the system keeps programs; these entries count even if the workspace is the whole disk."""


def environment(
    extra: Mapping[str, str] | None = None,
    *,
    keep: Iterable[str] = (),
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a child: the allowed part of ours, and `extra` on top.

    `keep` allows more variables by name or pattern, such as `AWS_*`.
    """
    source = os.environ if source is None else source
    found = {name: value for name, value in source.items() if _allowed(name, value)}
    if patterns := tuple(keep):
        from hookline.text.patterns import matches_glob

        found.update(
            {
                name: value
                for name, value in source.items()
                if any(matches_glob(name, pattern) for pattern in patterns)
            }
        )
    found["PATH"] = search_path(source.get("PATH"))
    found.update(extra or {})
    return found


def _allowed(name: str, value: str) -> bool:
    if name in KEPT or name.startswith("LC_"):
        return True
    if name in PLACES:
        return value.startswith("/")
    return name in PROXIES and "@" not in value


def search_path(path: str | None = None, *, avoid: Iterable[str] = ()) -> str:
    """Return a `PATH` of absolute entries, none of which lies in a folder of `avoid`.

    An empty or relative entry would find the programs of whatever folder the child is in.
    """
    avoided = [os.path.realpath(folder) for folder in avoid]
    entries = [
        entry
        for entry in (path or "").split(os.pathsep)
        if entry.startswith("/") and (entry in SYSTEM or not _inside(entry, avoided))
    ]
    return os.pathsep.join(dict.fromkeys(entries or SYSTEM))


def _inside(entry: str, folders: list[str]) -> bool:
    if not folders:
        return False
    place = os.path.realpath(entry)
    return any(place == folder or place.startswith(folder.rstrip("/") + "/") for folder in folders)


def program(name: str, *, avoid: Iterable[str] = ()) -> str | None:
    """Find a program for Hookline's own use, never in the current folder or one of `avoid`."""
    try:
        here = [str(Path.cwd())]
    except OSError:  # it was deleted
        here = []
    return shutil.which(name, path=search_path(os.environ.get("PATH"), avoid=(*here, *avoid)))
