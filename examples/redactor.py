"""A redactor that leaks nothing, not even when it breaks.

Run it: python examples/redactor.py
"""

import asyncio
import re

from hookline import Hooks, hookimpl


class Redactor:
    """Keeps e-mail addresses out of what the tape stores."""

    pattern = re.compile(r"[\w.]+@[\w.]+")

    @hookimpl(guard=True)
    def tool_result_persist(self, result):
        return self.pattern.sub("[e-mail]", result)


async def main() -> None:
    hooks = Hooks()
    redactor = Redactor()
    hooks.add(redactor)

    kept = await hooks.call("tool_result_persist", tool_name="read", result="write to ada@example.org")
    print("kept:  ", kept)

    redactor.pattern = None  # type: ignore[assignment]  # something broke
    kept = await hooks.call("tool_result_persist", tool_name="read", result="write to ada@example.org")
    print("broken:", kept)


if __name__ == "__main__":
    asyncio.run(main())
