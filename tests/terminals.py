"""Forks that a pseudo-terminal controls."""

import os
import pty
import termios
from typing import Any

from pexpect.fdpexpect import fdspawn

from . import forks


class Child(fdspawn):
    """A fork that a pseudo-terminal controls, at the other end of it."""

    def __init__(self, code: str, *arguments: object, dimensions: tuple[int, int], **options: Any):
        master, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, dimensions)
        self.process = forks.fork(code, *arguments, files=(terminal,) * 3, terminal=True, **options)
        os.close(terminal)
        super().__init__(master, encoding="utf-8", timeout=60)
        self.delaybeforesend = None

    def isalive(self):
        return self.process.poll() is None

    def kill(self, number):
        self.process.send_signal(number)

    def sendintr(self):
        self.send("\x03")

    def setwinsize(self, rows, columns):
        termios.tcsetwinsize(self.child_fd, (rows, columns))

    def rest(self) -> str:
        """What it still says until its end."""
        try:
            return self.read()
        except OSError:  # the other end of the terminal is gone
            return self.before or ""

    def close(self, force=False):
        if force:
            self.process.kill()
        self.exitstatus = self.process.wait()
        super().close()
