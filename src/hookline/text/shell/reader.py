"""What a command line would run and touch, for policies to judge.

    found = commands_of("sudo git -C . push")
    found.lines        # ["sudo git -C . push", "git -C . push"]

The reader over-estimates: every command that could run is listed, whether or not a condition leads
to it. What it cannot understand with certainty makes the whole line opaque; `unclear` says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .options import GLOBAL_OPTIONS, LONG_OPTIONS, SAME_OPTIONS
from .programs import WRAPPERS
from .script import LONGEST, ShellScript, SimpleCommand
from .syntax import RESERVED, read_script
from .words import Word
from .wrappers import QUIET, effects_of

DEEPEST = 8
"""Commands within commands that are read."""
MOST = 4_000
"""Words that are looked at."""
MOST_COMMANDS = 1_000
REMEMBERED = 2_000
"""Characters of a command line that is remembered: hooks, rules and the floor all ask about it."""
COMMON = re.compile(
    r"""
    [ \t]*+
    (?: ( (?: [\w./:=@%+,^-]++ | '(?!~)[^'\0\r]*+' | "(?!~)[^"\\$`\0\r]*+" ) (?=[ \t\n|&;]|\Z)
        | && | \|\| | ;(?!;) | \|(?![&|]) | \n[ \t\n]*+
        | [012]?>&[012](?=[ \t\n|&;]|\Z) | [012]?>>?(?![>&|(]) | [012]?<(?![<&>(])
        )
      | .+
    )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
"""The next word or operator of a line that needs no grammar; nothing if one is needed."""
SEPARATORS = frozenset(["&&", "||", ";", "|"])
SIGNS = frozenset("&|;\n<>")
NEEDS_GRAMMAR = RESERVED | {
    "time",
    "coproc",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
}
STEERING = re.compile(
    r"PATH|IFS|HOME|PWD|OLDPWD|ENV|BASH\w*|SHELL\w*|PS[0-4]|CDPATH|GLOBIGNORE|FIGNORE|EXECIGNORE|PROMPT_COMMAND|"
    r"LD_\w+|DYLD_\w+|GIT_\w+|PYTHON\w*|PERL\w*|RUBY\w*|NODE_\w+|LUA_\w+|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|\w*EDITOR|"
    r"\w*PAGER|VISUAL|BROWSER|LESS\w*|MAN\w+|TAR_OPTIONS|RSYNC_\w+|SSH_\w+|SUDO_\w+|MAKE\w*|\w*FLAGS|CC|CXX|CARGO_\w+|"
    r"RUSTC\w*|GO\w+|NPM_\w+|npm_\w+|PIP_\w+|UV_\w+|DOCKER_\w+|KUBECONFIG|AWS_\w+|GIO_\w+|GCONV_PATH|LOCPATH|NLSPATH|"
    r"TERMINFO\w*|TERMCAP|HISTFILE|INPUTRC|XDG_\w+|TMPDIR|GREP_OPTIONS|POSIXLY_CORRECT|OPENSSL_\w+|PROMPT|ZDOTDIR|"
    r"HOSTALIASES|http_proxy|https_proxy|\w+_proxy|\w+_PROXY|COMP_\w+|MAPFILE|TIMEFORMAT|FCEDIT|\w*ASKPASS|"
    r"\w+_OPTS|\w+_OPTIONS|\w+_WRAPPER|\w+_LAUNCHER|\w+_RUNNER|PSQL\w*|PG[A-Z]+|MYSQL\w*|CURL_HOME|\w+RC|NETRC|"
    r"GNUPGHOME|FZF_\w+|RIPGREP_CONFIG_PATH|CLASSPATH|AWK\w*PATH|JAVA_HOME|GRADLE_\w+|MAVEN_\w+|SYSTEMD_\w+|QT_\w+|"
    r"GTK_\w+|GST_\w+|VIM\w*|EMACS\w*|ERL_\w+|JULIA_\w+|R_\w+|PHP\w*|COMPOSER_\w+|BUNDLE_\w+|GEM_\w+|YARN_\w+|"
    r"PNPM_\w+|DENO_\w+|BUN_\w+|COREPACK_\w+|SSL_\w+|CMAKE_\w+|C?CCACHE_\w+|SCCACHE_\w+|GLIBC_TUNABLES|MALLOC_\w+|"
    r"SQLITE_\w+|ANSIBLE_\w+|TF_\w+|HELM_\w+|CONDA_\w+|VIRTUAL_ENV|TERM"
)
"""Variables that change which program runs, or what it does."""


@dataclass(slots=True)
class ShellCommands:
    """What a command line would run: an over-estimate wherever that is not certain."""

    calls: list[list[Word]] = field(default_factory=list[list[Word]])
    """Each command that may run: the program, without its folder, and its arguments."""
    lines: list[str] = field(default_factory=list[str])
    """The same as text, one blank between words."""
    subcommands: list[str] = field(default_factory=list[str])
    """Those with options before a subcommand, without these: `git push` for `git -C . push`."""
    programs: set[str] = field(default_factory=set[str])
    options: set[str] = field(default_factory=set[str])
    """`rm -r`, `rm --force`: each program with each of its options, bundles taken apart."""
    words: list[Word] = field(default_factory=list[Word])
    """Every word that may name a file or an address."""
    folders: list[str] = field(default_factory=list[str])
    """Where `cd` may have gone."""
    operators: set[str] = field(default_factory=set[str])
    unclear: list[str] = field(default_factory=list[str])
    """Why some of it cannot be understood with certainty."""
    assigned: set[str] = field(default_factory=set[str])
    """Variables that programs such as `read` set."""
    dynamic: bool = False
    """Some word is known only when it runs."""

    @property
    def opaque(self) -> bool:
        """Whether some of it cannot be understood with certainty."""
        return bool(self.unclear)

    def add(self, other: ShellCommands) -> None:
        """Take in those of another command line."""
        self.calls += other.calls
        self.lines += other.lines
        self.subcommands += other.subcommands
        self.programs |= other.programs
        self.options |= other.options
        self.words += other.words
        self.folders += other.folders
        self.operators |= other.operators
        self.unclear += other.unclear
        self.assigned |= other.assigned
        self.dynamic |= other.dynamic


def commands_of(text: str) -> ShellCommands:
    """Parse a command line. The result is shared: a line is read once for all rules."""
    return _commands_of(text) if len(text) < REMEMBERED else _commands_of.__wrapped__(text)


@lru_cache(maxsize=128)
def _commands_of(text: str) -> ShellCommands:
    found = ShellCommands([], [], [], set(), set(), [], [], set(), [])
    _read(text, found, 0)
    return found


def argv_commands(words: list[str]) -> ShellCommands:
    """The same for a program with its arguments, which no shell will read."""
    found = ShellCommands()
    if sum(map(len, words)) > LONGEST:
        found.unclear.append(f"it is longer than {LONGEST // 1000} kB")
    elif words:
        _inspect([Word(word, quoted=True) for word in words], None, found, 0)
    return found


def command_of(command: SimpleCommand) -> ShellCommands:
    """The same for one command of a script."""
    found = ShellCommands()
    _add(command, found, 0)
    return found


def split(text: str, variables: Mapping[str, str] | None = None) -> ShellScript:
    """The simple commands of a text: at one look if it is words and operators, else by grammar.

    `variables` are known to have one value, unless the text may set them.
    """
    if len(text) > LONGEST:
        return ShellScript(unclear=[f"it is longer than {LONGEST // 1000} kB"])
    pieces: list[str] = COMMON.findall(text)
    return (None if "" in pieces else _split_plain(pieces)) or read_script(text, variables)


def _split_plain(pieces: list[str]) -> ShellScript | None:
    """The commands of words and operators; None if it takes the grammar to tell."""
    if len(pieces) > MOST:
        return ShellScript(unclear=["it has too many words"])
    words: list[Word] = []
    commands: list[SimpleCommand] = []
    targets: list[Word] = []
    operators: set[str] = set()
    redirected = False
    for piece in pieces:
        first = piece[0]
        if first in "'\"" or (first not in SIGNS and "<" not in piece and ">" not in piece):
            word = Word(piece[1:-1], quoted=True) if first in "'\"" else Word(piece)
            if redirected:
                targets.append(word)
                redirected = False
            elif not words and (piece in NEEDS_GRAMMAR or "=" in piece):
                return None
            else:
                words.append(word)
        elif redirected or (not words and first != "\n"):
            return None
        elif piece in SEPARATORS or first == "\n":
            if first != "\n":
                operators.add(piece)
            if words:
                commands.append(SimpleCommand(words))
            words = []
        else:
            operators.add(piece.strip("012"))
            redirected = "&" not in piece
    if redirected:
        return None
    if words:
        commands.append(SimpleCommand(words))
    return ShellScript(commands, targets, operators)


def _read(text: str, found: ShellCommands, depth: int) -> None:
    """Add what a text, given to a shell, would run."""
    script = split(text)
    found.operators |= script.operators
    if "\n" in text and "\n" in text.strip():
        found.operators.add("newline")
    found.unclear += script.unclear
    found.dynamic = found.dynamic or script.dynamic
    found.words += script.targets
    for command in script.commands:
        if len(found.calls) > MOST_COMMANDS:
            found.unclear.append("it has too many commands")
            break
        _add(command, found, depth)
    if twice := script.constants & found.assigned:
        found.unclear.append(f"{min(twice)} is set when it runs")


def _add(command: SimpleCommand, found: ShellCommands, depth: int) -> None:
    """Add what one command would run."""
    if command.assignments:
        _assign(command.assignments, found)
    if command.words:
        _inspect(command.words, command.text, found, depth)
    if command.unexpanded:
        _inspect(command.unexpanded, command.text, found, depth)


def _assign(assignments: list[tuple[str, Word]], found: ShellCommands) -> None:
    for name, value in assignments:
        found.words.append(value)
        if STEERING.fullmatch(name):
            found.unclear.append(f"it sets {name}, which changes what programs do")


def _inspect(words: list[Word], text: str | None, found: ShellCommands, depth: int) -> None:
    """Add a command, and the commands that it runs in turn."""
    first, rest = words[0], words[1:]
    program = first.text.rpartition("/")[2]
    if not program.islower() and program.lower() in WRAPPERS:
        program = program.lower()  # as a file system that ignores case would find it
    if len(words) > MOST or len(found.calls) > MOST_COMMANDS:
        found.unclear.append("it has too many words")
        return
    _note(
        words if program == first.text else [Word(program, first.dynamic, first.quoted), *rest], found
    )
    if first.dynamic or (first.glob is not None and program not in ("[", "[[")):
        found.unclear.append("the program is known only when it runs")
        return
    if program in QUIET:
        return
    effects = effects_of(program, rest, text)
    found.unclear += effects.unclear
    found.folders += effects.folders
    if effects.assignments:
        _assign(effects.assignments, found)
        found.assigned.update([name for name, _ in effects.assignments])
    if depth >= DEEPEST and (effects.runs or effects.texts):
        found.unclear.append("commands within commands are nested too deeply")
        return
    for command in effects.runs:
        if command:
            _inspect(command, None, found, depth + 1)
    for line in effects.texts:
        _read(line, found, depth + 1)


def _note(words: list[Word], found: ShellCommands) -> None:
    """Keep a command with its words and its options."""
    program = words[0].text
    texts = [word.text for word in words]
    line = " ".join(texts)
    if line.count(" ") >= len(texts) or not line.isprintable():  # there are blanks in some of them
        line = " ".join([" ".join(text.split()) for text in texts])
    found.calls.append(words)
    found.programs.add(program)
    found.lines.append(line)
    found.words += words[1:]
    for word in words:
        if word.dynamic:
            found.dynamic = True
    if program in GLOBAL_OPTIONS and len(texts) > 1 and texts[1][:1] in ("-", "+"):
        found.subcommands.append(without_globals(program, texts))
    if " -" in line:
        for text in texts[1:]:
            if text[:1] == "-" and text != "-":
                if len(text) == 2 and program not in SAME_OPTIONS:
                    found.options.add(f"{program} {text}")
                else:
                    found.options.update([f"{program} {one}" for one in options_of(program, text)])


def without_globals(program: str, texts: list[str]) -> str:
    """A command without the options between the program and its subcommand."""
    takes, _ = GLOBAL_OPTIONS[program]
    at = 1
    while at < len(texts) and texts[at][:1] in ("-", "+"):
        at += 2 if texts[at] in takes else 1
    return " ".join([program, *texts[at:]])


def options_of(program: str, text: str) -> set[str]:
    """The options that a word holds: `-rf` are two, and `--recur` is `--recursive`."""
    if text[1] == "-":
        name = text.partition("=")[0]
        known = LONG_OPTIONS.get(program, ())
        return {name, *[one for one in known if len(name) > 2 and one.startswith(name)]}
    found = {text} if len(text) == 2 else {text, *[f"-{letter}" for letter in text[1:]]}
    same = SAME_OPTIONS.get(program)
    return found | {same[one] for one in found if one in same} if same else found
