"""Secret names: whether the name of a field, variable or option says that its value is a secret."""

from __future__ import annotations

import re
from functools import lru_cache

from hookline.text.printable import names

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STRONG = names(
    "password passwords passwd passphrase passphrases passcode pwd pw secret secrets apikey "
    "apikeys credential credentials creds privatekey secretkey accesskey authtoken "
    "accesstoken refreshtoken bearertoken sessiontoken clientsecret"
)
_ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey")
"""How names end that are written as one word: `PGPASSWORD`."""
_TOKEN = frozenset({"pat", "jwt"})
_TOKENS = names(
    "access refresh auth api bearer session bot secret service user id deploy admin personal"
)
"""Words before `tokens` that make it a list of credentials and not a count."""
_KEYS = names(
    "api secret access private auth encryption signing master account storage deploy ssh "
    "license service client app shared webhook hmac aes rsa session subscription"
)
"""Words before `key` that make it a secret."""
_WEAK = frozenset({"auth", "authorization", "cookie", "cookies", "pass", "pin"})
_SUFFIXES = names(
    "prod production live test testing dev development staging stage old new value base64 b64 "
    "hex default local primary secondary plain plaintext text string str env"
)
"""Words after a secret's name that leave it one."""
_PUBLIC = frozenset({"public", "count", "max", "min", "num", "total", "next", "page", "csrf"})


@lru_cache(maxsize=4096)
def strength(name: str) -> int:
    """2 if the value of a name is a secret, 1 if it may be one, 0 if it is not."""
    words = [word.lower() for word in _WORDS.findall(name[:200])]
    while words and (words[-1].isdigit() or (len(words) > 1 and words[-1] in _SUFFIXES)):
        words.pop()
    if not words or _PUBLIC.intersection(words):
        return 0
    *before, last = words
    joined = "".join(words[-2:])
    if last.endswith(_ENDINGS) or last in _STRONG or joined in _STRONG or (last in _TOKEN and before):
        return 2
    if last == "tokens" and _TOKENS.intersection(before):
        return 2
    if last in ("key", "keys") and _KEYS.intersection(before):
        return 2
    if last == "pass" and before:
        return 2
    return 1 if last in _WEAK else 0


_HARMLESS = names(
    "str string strings text bytes int integer float number bool boolean none null nil true "
    "false undefined object array list dict any required optional secretstr secret password "
    "passwd passphrase token tokens key keys api_key apikey credentials type value default "
    "example name enabled disabled yes no on off self unset missing invalid empty redacted "
    "hidden varchar char uuid env inherit file vault keyring prompt ask auto basic bearer "
    "digest oauth oauth2 jwt"
)
_PLACEHOLDER = re.compile(
    r"(?i)\$[{(]|\$\w+\Z|%\w+%|\{\{|<[^<>]*>\Z|\[redacted|\[withheld|env[:.(]|process\.env|os\.(?:environ|getenv)|secrets?[.(/]"
    r"|(?:(?:your|insert|replace|enter|todo|fixme|dummy|fake|sample|placeholder|not[-_]?set)(?:\b|[-_]))"
    r"|(?:null|none|true|false)\b"
)
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_SIGNS = "<>{}[]%$*.•…_-\\\"'# \t"
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z|[a-z_]\w*\Z|[A-Z][a-z]+(?:[A-Z][a-z]*)*\Z"
)
"""Matches expressions such as `self.password`, `new_token`, `SecretStr`."""


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: `${TOKEN}`, `<your-key>`, `str`, `***`."""
    bare = value.strip()
    letters = bare.strip(_SIGNS).lower()
    hidden = not letters or (len(letters) > 2 and not letters.strip("x"))  # ***, xxxx, <...>
    return hidden or bare.lower() in _HARMLESS or _PLACEHOLDER.match(bare[:200]) is not None


def looks_random(value: str) -> bool:
    """Whether a value is made as generated ones are: long, with letters and digits or both cases."""
    if len(value) < 8 or " " in value.strip():
        return False
    digit, letter = _DIGIT.search(value), _LETTER.search(value)
    mixed = value[1:] != value[1:].lower() and value != value.upper()
    return bool(digit and letter) or mixed


def is_code(value: str) -> bool:
    """Whether a bare word reads as an expression of a program, not as a value."""
    return _CODE.match(value) is not None and not any(char.isdigit() for char in value)
