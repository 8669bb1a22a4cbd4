"""The guard: a shell that kills the groups of our children when this process ends, in whatever way.

It waits at a pipe that only this process holds, and is started with the first child. A signal that the
kernel sends at the death of a parent (`PR_SET_PDEATHSIG`) would not do: it comes when the *thread* that
started the child ends.
"""

from __future__ import annotations

import atexit
import os
import subprocess
from threading import RLock

_SCRIPT = """
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
[ "$groups" = ' ' ] && exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class GroupGuard:
    """Knows the process groups that must not outlive this process."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._lock = RLock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def add(self, group: int) -> None:
        """Kill a group when this process ends."""
        with self._lock:
            self._groups.add(group)
            if self._shell is None or not self._say(f"+ {group}\n"):
                self._start()

    def remove(self, group: int) -> None:
        """Forget a group; to be called when its number may be used again."""
        with self._lock:
            if group in self._groups:
                self._groups.discard(group)
                self._say(f"- {group}\n")

    def _start(self) -> None:
        """Start a guard, or another one after it was killed."""
        self.abandon()
        theirs, self._pipe = os.pipe()
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        for group in self._groups:
            self._say(f"+ {group}\n")

    def _say(self, line: str) -> bool:
        try:
            return os.write(self._pipe, line.encode()) > 0
        except OSError:
            return False

    def abandon(self) -> None:
        """Release the guard, which ends if it has nothing to kill."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._shell is not None:
            self._shell.poll()
            self._shell.returncode = 0  # it ends by itself: no warning that it is still running
            self._shell = None


guard = GroupGuard()


def _forked() -> None:
    """Forget the parent's children: they end with the parent, not with this fork."""
    global guard
    guard.abandon()
    guard = GroupGuard()


os.register_at_fork(after_in_child=_forked)
atexit.register(lambda: guard.abandon())
