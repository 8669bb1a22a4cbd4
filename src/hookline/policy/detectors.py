"""Detectors: where in a text something is that should not be kept.

Keys and tokens are found by the patterns of `detect-secrets`, card numbers by the check digit of
`python-stdnum`. Both come with `pip install 'hookline[redaction]'` and are loaded when a redactor is
made. A few patterns are ours: whole blocks where the library marks a first line only, and forms that
are newer than it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from .errors import PolicyError

Span = tuple[int, int, str]
"""From, to, and what it is."""

Find = Callable[[str], Iterator[Span]]

PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
OURS = {
    "token": re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),
    "key": re.compile(
        r"\b(?:sk-(?:ant-|proj-|or-)?[\w-]{20,}|github_pat_\w{22,}|AIza[\w-]{35}|hf_[A-Za-z]{30,}"
        r"|xai-\w{20,}|gsk_\w{20,}|npm_\w{36})"
    ),
    "authorization": re.compile(r"(?i)\b(?:bearer|basic)\s+[\w.~+/-]{16,}=*"),
}
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])")
CARD = re.compile(r"(?<![\w.-])(?:[3-6]\d|2[2-7])(?:[ -]?\d){11,17}(?![\w-])")
SECRET_NAME = re.compile(
    r"(?i)(?:^|[_.-])(?:pass(?:word|wd|phrase)?|secret|token|api_?key|private_?key|authorization"
    r"|credentials?)$"
)
"""Names of fields whose text is a secret, whatever it looks like."""

LIBRARIES = {"secrets": ("detect_secrets", "detect-secrets"), "cards": ("stdnum", "python-stdnum")}
"""What a detector needs: the module, and the package that it comes in."""

_LEFT_OUT = ("IPPublicDetector",)
_ROUND = " \t\r\n\"'=:"
"""What a pattern of the library may take in around a secret."""
_NEEDED = {"OpenAIDetector": "T3BlbkFJ", "NpmDetector": "_authToken", "CloudantDetector": "cl"}
"""Words without which a pattern that is slow on long lines cannot match."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One expression, and what it finds."""

    kind: str
    expression: re.Pattern[str]
    needs: str = ""

    def find(self, text: str) -> Iterator[Span]:
        """Every match, without what only surrounds it."""
        if self.needs and self.needs not in text:
            return
        for match in self.expression.finditer(text):
            begin, end = match.span()
            while begin < end and text[begin] in _ROUND:
                begin += 1
            while begin < end and text[end - 1] in _ROUND:
                end -= 1
            if begin < end:
                yield begin, end, self.kind


BLOCK = Pattern("private key", PRIVATE_KEY)
"""A key from its first line to its last, or to the end of the text."""


def secrets() -> Iterator[Find]:
    """Keys, tokens and passwords in addresses."""
    yield from (Pattern(kind, expression).find for kind, expression in OURS.items())
    try:
        from detect_secrets.core.plugins.util import (  # pyright: ignore[reportMissingTypeStubs]
            get_mapping_from_secret_type_to_class as known,
        )
        from detect_secrets.plugins.base import (  # pyright: ignore[reportMissingTypeStubs]
            RegexBasedDetector,
        )
    except ImportError:
        raise missing(LIBRARIES["secrets"][1]) from None
    detectors: dict[str, type[Any]] = known()
    for kind, detector in detectors.items():
        name = detector.__name__
        if issubclass(detector, RegexBasedDetector) and name not in _LEFT_OUT:
            expressions: Iterable[re.Pattern[str]] = cast("Any", detector()).denylist
            for expression in expressions:
                yield Pattern(kind.lower(), expression, _NEEDED.get(name, "")).find


def emails() -> Iterator[Find]:
    """Addresses of people."""
    yield Pattern("email", EMAIL).find


def cards() -> Iterator[Find]:
    """Numbers of payment cards: 13 to 19 digits whose last one fits the others."""
    try:
        from stdnum import luhn  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise missing(LIBRARIES["cards"][1]) from None
    fits: Callable[[str], bool] = luhn.is_valid

    def find(text: str) -> Iterator[Span]:
        for match in CARD.finditer(text):
            digits = re.sub(r"\D", "", match[0])
            if len(set(digits)) > 1 and fits(digits):
                yield (*match.span(), "card")

    yield find


DETECTORS: dict[str, Callable[[], Iterable[Find]]] = {
    "secrets": secrets,
    "emails": emails,
    "cards": cards,
}
"""What `[redaction] detectors` may name."""


def missing(library: str) -> PolicyError:
    """What to do where a library is not there: what is configured is there, or nothing runs."""
    return PolicyError(
        f"[redaction] needs {library}, which is not installed: pip install 'hookline[redaction]', "
        "or set redaction.enabled = false"
    )
