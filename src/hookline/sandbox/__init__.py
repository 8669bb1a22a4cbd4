"""A sandbox of the operating system for every child that the agent causes to start.

    from hookline.system.children.process import run
    from hookline.sandbox import Sandbox

    sandbox = Sandbox(workspace=Path.cwd(), home=Path.home() / ".hookline")
    done = run(["sh", "-c", "make"], cwd=Path.cwd(), sandbox=sandbox, timeout=600)

It is a command line in front of another one: bubblewrap where it works, else sandlock, else
`sandbox-exec` on macOS, else nothing, and then it says so.
"""

from hookline.errors import SandboxError

from .launch import Launch
from .sandbox import Sandbox
from .settings import Kind, Profile, SandboxSettings

__all__ = ["Kind", "Launch", "Profile", "Sandbox", "SandboxError", "SandboxSettings"]
