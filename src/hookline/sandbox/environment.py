"""The environment of a child: an allow-list, and the secrets that are meant for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hookline.text.patterns import matches_glob

from .words import words

INHERITED = frozenset(
    words(
        """
        PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR
        COLUMNS LINES TZ PWD TMPDIR PAGER EDITOR VISUAL HOSTNAME CI DEBIAN_FRONTEND
        SOURCE_DATE_EPOCH MAKEFLAGS MANPATH INFOPATH VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV
        PYENV_ROOT PYENV_VERSION PYTHONPATH PYTHONHOME PYTHONUTF8 PYTHONUNBUFFERED PYTHONIOENCODING
        PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONWARNINGS NVM_DIR NVM_BIN NODE_PATH NODE_ENV
        VOLTA_HOME PNPM_HOME BUN_INSTALL DENO_DIR CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN
        RUST_BACKTRACE RUST_LOG GOPATH GOROOT GOBIN GOPROXY GOFLAGS GOCACHE JAVA_HOME JDK_HOME
        MAVEN_HOME GRADLE_HOME SDKMAN_DIR DOTNET_ROOT RBENV_ROOT GEM_HOME GEM_PATH CC CXX CFLAGS
        CXXFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH CUDA_HOME
        NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
        CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS LOCALE_ARCHIVE SYSTEMROOT COMSPEC GIT_TERMINAL_PROMPT
        GIT_PAGER GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME
        GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL
        GIT_OPTIONAL_LOCKS GIT_EDITOR GIT_CEILING_DIRECTORIES HOOKLINE_PROJECT_DIR
        HOOKLINE_SESSION_ID HOOKLINE_HOOK HOOKLINE_EVENT HOOKLINE_TOOL_NAME CLAUDE_PROJECT_DIR
        CLAUDE_PLUGIN_ROOT
        """
    )
)
"""Variables that say where things are and how to behave; none of them is a credential."""

PREFIXES = ("LC_", "XDG_DATA_", "XDG_CONFIG_")


def filtered(
    environ: Mapping[str, str],
    allowed: Sequence[str] = (),
    secrets: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The part of an environment that a child inherits, with the secrets granted by name."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in INHERITED
        or name.startswith(PREFIXES)
        or any(matches_glob(name, pattern) for pattern in allowed)
    }
    return {**kept, **(secrets or {})}


def encoded(environ: Mapping[str, str]) -> bytes:
    """An environment as the kernel has it: `NAME=value` and a NUL, for each variable."""
    for name, value in environ.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ValueError(f"{name!r} cannot be an environment variable")
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environ.items())
