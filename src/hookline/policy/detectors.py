"""Detectors: where in a text something is that should not be kept.

Every expression runs on RE2, so the time is linear in the text. They are our own: those of the known
libraries use lookaround, which RE2 does not have, and take minutes on a long line.

Forms that cannot be told from harmless text are not found: a password in prose ("the password is
hunter two"), base 64 of a secret under an ordinary name, a column of a CSV file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hookline.text.patterns import Pattern

from .assignments import ASSIGNMENTS
from .secret_names import looks_random

Span = tuple[int, int, str]
"""Start, end and kind."""

_DIGIT = re.compile(r"\d")

Find = Callable[[str], Iterable[Span]]


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """One expression and what it finds: its group, or the whole match if it has none."""

    kind: str
    expression: str
    needs: tuple[str, ...] = ()
    """Texts, one of which every match contains: searching for them is faster than the expression."""
    fits: Callable[[str], bool] | None = None
    group: int = 0
    dot_all: bool = False
    pattern: list[Pattern] = field(default_factory=list[Pattern])

    def find(self, text: str) -> Iterator[Span]:
        """Every match."""
        if self.needs and not any(each in text for each in self.needs):
            return
        if not self.pattern:
            self.pattern.append(Pattern(self.expression, dot_all=self.dot_all))
        for begin, end in self.pattern[0].spans(text, self.group):
            if text.startswith("[redacted", begin):
                continue
            if begin < end and (self.fits is None or self.fits(text[begin:end])):
                yield begin, end, self.kind


def _has_digit(text: str) -> bool:
    return _DIGIT.search(text) is not None


PRIVATE_KEY = SecretPattern(
    "private key",
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
    needs=("PRIVATE KEY",),
    dot_all=True,
)
"""A key from its first line to its last, or to the end of the text."""

SHAPES = (
    SecretPattern(
        "aws access key",
        r"\b(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}\b",
        needs=("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
    ),
    SecretPattern(
        "github token",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})",
        needs=("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    SecretPattern(
        "gitlab token", r"\bgl[a-z]{2,5}-[\w-]{20,}(?:\.[\w-]+)*", needs=("gl",), fits=_has_digit
    ),
    SecretPattern(
        "slack token",
        r"\b(?:xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-\d-[\w-]{10,})"
        r"|https://hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}",
        needs=("xox", "xapp-", "hooks.slack.com"),
    ),
    SecretPattern(
        "webhook address",
        r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[\w-]{20,}"
        r"|https://[\w-]+\.webhook\.office\.com/[\w@/-]{30,}",
        needs=("discord", "webhook.office.com"),
    ),
    SecretPattern("discord token", r"\b[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}", needs=(".",)),
    SecretPattern(
        "stripe key",
        r"\b(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})",
        needs=("sk_", "rk_", "whsec_"),
    ),
    SecretPattern("key", r"\bsk-(?:[a-z]+[0-9]*-)*[\w-]{20,}", needs=("sk-",), fits=_has_digit),
    SecretPattern(
        "google key",
        r"\b(?:AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{30,})",
        needs=("AIza", "ya29.", "GOCSPX-", "1//0"),
    ),
    SecretPattern("json web token", r"\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)*", needs=("eyJ",)),
    SecretPattern(
        "key",
        r"\b(?:hf_[A-Za-z0-9]{30,}|xai-\w{20,}|gsk_\w{20,}|npm_\w{30,}|pypi-[\w-]{50,}|dckr_(?:pat|oat)_[\w-]{20,}"
        r"|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|SG\.[\w-]{16,}\.[\w-]{16,}|key-[0-9a-f]{32}\b|SK[0-9a-f]{32}\b"
        r"|sq0[a-z]{3}-[\w-]{22,}|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|lin_api_\w{32,}|ntn_\w{40,}"
        r"|figd_[\w-]{20,}|hv[sbr]\.[\w-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}|PMAK-[\w-]{40,}"
        r"|rubygems_[0-9a-f]{48}|gl(?:sa|c)_[\w=]{30,}|nvapi-[\w-]{40,}|r8_[A-Za-z0-9]{30,}|pplx-\w{32,}"
        r"|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|tskey-[\w-]{20,}|CFPAT-[\w-]{30,}|fly?o?_\w{40,}|whs_\w{30,}"
        r"|EAACEdEose0cBA\w+|secret_[A-Za-z0-9]{43}\b|ATATT3[\w=-]{40,}|NRAK-[A-Z0-9]{20,}|phc_\w{40,}"
        r"|sntrys_[\w+/=-]{40,}|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|v1\.0-[0-9a-f]{24}-[0-9a-f]{60,})",
    ),
    SecretPattern("telegram token", r"\b[0-9]{8,10}:[\w-]{35}\b", needs=(":",)),
    SecretPattern(
        "authorization",
        r"(?i)\b(?:bearer|basic|token|apikey)\s+[\w.~+/-]{16,}=*",
        fits=lambda text: _has_digit(text) or text.endswith("="),
    ),
    SecretPattern(
        "authorization",
        r"(?i)\bauthorization\b[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?"
        r"([^\s\"',;<>${}][^\s\"',<>{}]{5,})",
        group=1,
        fits=looks_random,
    ),
    SecretPattern(
        "cookie",
        r"(?i)\b(?:set-)?cookie\b[\"']?\s*[:=]\s*[\"']?([\w.$!%*+-]+=[^\r\n\"']{4,})",
        group=1,
    ),
    SecretPattern(
        "password in an address",
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@?#\"'<>]*:([^\s/\"'<>]+)@",
        needs=("://",),
        group=1,
        fits=lambda text: not text.startswith(("$", "{", "*", "[redacted")),
    ),
    SecretPattern(
        "token in an address", r"[A-Za-z]://([\w-]{20,})@", needs=("://",), group=1, fits=_has_digit
    ),
    SecretPattern(
        "secret in an address",
        r"(?i)[?&#](?:sig|signature|access_token|token|api_?key|key|code|secret|password|auth|x-amz-signature)"
        r"=([\w%.+/=-]{8,})",
        needs=("=",),
        group=1,
        fits=_has_digit,
    ),
    SecretPattern(
        "password",
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker login|podman login|smbclient)\b"
        r"[^\n|;&]{0,300}?\s-(?:p|w)[ \t]?[\"']?([^\s\"'-][^\s\"']*)",
        needs=(" -p", " -w"),
        group=1,
    ),
    SecretPattern(
        "password",
        r"\b(?:curl|wget|http|https|xh)\b[^\n|;&]{0,500}?\s(?:-u|--user|--proxy-user|-a)[ =]?"
        r"[\"']?[^\s:\"']+:([^\s\"'$][^\s\"']*)",
        needs=(" -u", " --user", " -a", " --proxy-user"),
        group=1,
    ),
    SecretPattern("password", r"\blogin\s+\S+\s+password\s+(\S+)", needs=("password",), group=1),
    SecretPattern(
        "password",
        r"(?m)^[\w.*-]+:(?:[0-9]{2,5}|\*):[\w.*-]+:[\w.@-]+:(\S+)$",
        needs=(":5432:", ":*:", ":5433:", ":6432:"),
        group=1,
    ),
)

EMAIL = SecretPattern("email", r"[\p{L}\p{N}_.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b", needs=("@",))
CARD = SecretPattern("card", r"(?:^|[^\w.-])((?:[3-6]\d|2[2-7])(?:[ -]?\d){11,17})\b", group=1)


def secrets() -> Iterator[Find]:
    """Keys, tokens, and passwords."""
    yield PRIVATE_KEY.find
    yield from (shape.find for shape in SHAPES)
    yield from ASSIGNMENTS


def emails() -> Iterator[Find]:
    """Addresses of people."""
    yield EMAIL.find


def cards() -> Iterator[Find]:
    """Numbers of payment cards: 13 to 19 digits whose last one fits the others."""

    def find(text: str) -> Iterator[Span]:
        for begin, end, kind in CARD.find(text):
            digits = [int(char) for char in text[begin:end] if char.isdigit()]
            if text[end : end + 1] != "-" and len(set(digits)) > 1 and has_check_digit(digits):
                yield begin, end, kind

    yield find


def has_check_digit(digits: list[int]) -> bool:
    """Whether the last digit is what Luhn's formula makes of the others."""
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


DETECTORS: dict[str, Callable[[], Iterable[Find]]] = {
    "secrets": secrets,
    "emails": emails,
    "cards": cards,
}
"""What `[redaction] detectors` may name."""
