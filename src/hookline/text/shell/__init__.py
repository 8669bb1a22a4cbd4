"""Shell: what a command line would run and touch, read with the grammar of bash.

    found = commands_of("sudo git -C . push")
    found.lines                                          # ["sudo git -C . push", "git -C . push"]
    found.opaque                                         # False: every word of it is understood
    command_pattern("git push *").match(found)           # "git -C . push"

`commands_of` reads a line for a shell and `argv_commands` a program with its arguments. Both follow
wrappers such as `sudo` or `sh -c`, and list every command that could run. `split` only takes a text
apart into its simple commands. `command_pattern` compares what was read with a pattern. A `Word` is one
argument: `dynamic` if it is known only when the command runs, a `pattern` if the shell expands it.
"""

from .pattern import CommandPattern, command_pattern
from .reader import ShellCommands, argv_commands, command_of, commands_of, split
from .script import ShellScript, SimpleCommand
from .words import Word

__all__ = [
    "CommandPattern",
    "ShellCommands",
    "ShellScript",
    "SimpleCommand",
    "Word",
    "argv_commands",
    "command_of",
    "command_pattern",
    "commands_of",
    "split",
]
