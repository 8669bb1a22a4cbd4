"""HTTP hooks: the same JSON as a command gets, posted; the same JSON as answer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .errors import HookFailed
from .process import LARGEST
from .settings import CommandHook

_REFERENCE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


async def post(hook: CommandHook, body: bytes, environ: Mapping[str, str]) -> bytes:
    """What the address answered; `HookFailed` for anything but success in time."""
    import aiohttp

    headers = {"Content-Type": "application/json", **_headers(hook, environ)}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=hook.timeout)) as session,
            # one that leads elsewhere would get past the rule on addresses
            session.post(hook.url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            answer = await response.content.read(LARGEST + 1)
            while len(answer) <= LARGEST and (more := await response.content.read(LARGEST)):
                answer += more
            status = response.status
    except TimeoutError:
        raise HookFailed(f"{hook.url} did not answer within {hook.timeout:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise HookFailed(f"{hook.url} cannot be reached: {error}") from error
    if not 200 <= status < 300:
        raise HookFailed(f"{hook.url} answered with status {status}")
    if len(answer) > LARGEST:
        raise HookFailed(f"{hook.url} answered more than {LARGEST:,} bytes")
    return answer


def _headers(hook: CommandHook, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers with `${VAR}` filled in; where variables are listed, the others are empty."""

    def fill(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if hook.allowed is not None:
            return environ.get(name, "") if name in hook.allowed else ""
        if name not in environ:
            raise HookFailed(f"{hook.place}.headers refers to ${{{name}}}, which is not set")
        return environ[name]

    return {name: _REFERENCE.sub(fill, value) for name, value in hook.headers.items()}
