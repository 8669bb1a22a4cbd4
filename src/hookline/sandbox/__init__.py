"""A sandbox of the operating system for every child that the agent causes to start.

    from hookline.sandbox import Sandbox

    sandbox = Sandbox(workspace=Path.cwd(), home=Path.home() / ".hookline")
    launch = sandbox.launch(["sh", "-c", "make"], cwd=Path.cwd(), env=dict(os.environ))
    try:
        subprocess.run(launch.argv, env=launch.env, cwd=launch.cwd, pass_fds=launch.pass_fds)
    finally:
        launch.close()

It is a command line in front of another one: bubblewrap where it works, else sandlock, else
`sandbox-exec` on macOS, else nothing, and then it says so.
"""

from .errors import SandboxError
from .sandbox import Launch, Sandbox
from .settings import Kind, Profile, SandboxSettings

__all__ = ["Kind", "Launch", "Profile", "Sandbox", "SandboxError", "SandboxSettings"]
