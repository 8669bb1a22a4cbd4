"""Shell expansions: the words of a command, and what the shell replaces in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hookline.text.errors import UnreadableScript

from .script import LONGEST, ShellScript, SimpleCommand, without_documents
from .words import Part, Word, literal_parts

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 60
"""Levels of nesting that are read."""
WORDS = frozenset(
    [
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "concatenation",
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "brace_expression",
        "extglob_pattern",
        "variable_name",
        "$",
    ]
)
CONTROL = re.compile(r"[\0\r\f\v\x85\u2028\u2029]")
"""Characters that end a word or a line for the grammar or for a shell, but not for both."""
LINES = re.compile(r"(?:[ \t\n]|\\\n)*")
PLAIN = re.compile(r"""(?:[^ \t\n\r\f\v|&;()<>"'`$\\]|\\[^\n]|\$(?![\w({'"@*#?$!\-\[]))+""", re.ASCII)
QUOTED = re.compile(r"""(?:[^"\\`$]|\\.|\$(?![\w({@*#?$!\-\[]))*""", re.DOTALL | re.ASCII)
VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|\d|[@*#?$!\-])", re.ASCII)
EXPANSION = re.compile(
    r"\$\{#?(?:\w+|[@*#?$!\-])(?:\[(?:\d+|[@*])\])?"
    r"(?::\s?-?\d+(?::-?\d+)?|(?:[-=?+%#/^,]|:[-=?+])[^'\"`\\{}$()]*|@[QUuLAaKk])?\}",
    re.ASCII,
)
ASSIGNED = re.compile(r"\$\{(\w+)(?:\[[^]]*\])?:?=", re.ASCII)
"""`${NAME:=value}`, which sets the variable."""
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
FIXED = re.compile(r"[\w./:@%+,-]+", re.ASCII)
"""Text that the shell passes on as it is, without quotes."""
KNOWN_PLACES = {"HOME": "~", "PWD": "."}
SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v",
}  # fmt: skip
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|[abeEfnrtv\\\"?])")
ESCAPED = re.compile(
    r"(?:[^'\\]|\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|[abeEfnrtv\\\"?]))*"
)


class ExpansionReader:
    """Reads words. The nodes of the syntax tree count bytes."""

    def __init__(self, text: str, script: ShellScript, variables: Mapping[str, str]) -> None:
        if CONTROL.search(text):
            raise UnreadableScript("it has control characters")
        try:
            source = text.encode()
        except UnicodeEncodeError:
            raise UnreadableScript("it is not valid text") from None
        if len(source) > LONGEST:
            raise UnreadableScript(f"it is longer than {LONGEST // 1000} kB")
        self.text = source.decode("latin-1")
        """One character for each byte, since the parser counts bytes."""
        self.syntax, self.documents = without_documents(self.text)
        """What the parser is given, and the here-documents that were left out."""
        self.script = script
        self.variables = dict(variables)
        """Variables that have one known value."""
        self.arithmetic: list[tuple[int, int]] = []
        self.here: set[int] = set()
        """Lines on which a here-document begins."""

    def scan(self, node: Node, depth: int) -> None:
        """Read a statement; substitutions hold some."""
        raise NotImplementedError

    def redirect(self, node: Node, command: SimpleCommand, depth: int) -> None:
        """Read a redirection."""
        raise NotImplementedError

    def start(self, node: Node) -> int:
        """The start of a node."""
        return node.start_byte

    def end(self, node: Node) -> int:
        """The end of a node."""
        return node.end_byte

    def of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def gap(self, start: int, end: int, allowed: re.Pattern[str]) -> None:
        """Refuse anything but blanks between two tokens."""
        if start < end:
            if not allowed.fullmatch(self.text, start, end):
                raise UnreadableScript(f"{self.text[start:end][:40]!r} cannot be read")
            if not self.text[start:end].replace("\\\n", ""):
                raise UnreadableScript("a word may be continued on the next line")

    def note(self, word: Word, *, target: bool = False) -> None:
        """Keep the known value of a word."""
        self.script.dynamic = self.script.dynamic or word.dynamic
        if target:
            self.script.targets.append(word)

    def word(self, nodes: list[Node], depth: int) -> Word:
        """One word, of nodes that stand next to each other."""
        parts: list[Part] = []
        for number, node in enumerate(nodes):
            if node.type == "$" and number + 1 < len(nodes) and nodes[number + 1].type == "string":
                parts.append(
                    ("", "dynamic")
                )  # to be translated; a `$` for a shell that does not know it
                continue
            self.parts_of_word(node, parts, depth)
        return Word.of(parts)

    def parts_of_word(self, node: Node, parts: list[Part], depth: int, *, quoted: bool = False) -> None:
        """Add the pieces of a word that a node stands for."""
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        kind, text = node.type, self.of(node)
        if kind in ("concatenation", "command_name"):
            at = self.start(node)
            for child in node.children:
                if self.start(child) != at:
                    raise UnreadableScript("it is not certain where a word ends")
                at = self.end(child)
                self.parts_of_word(child, parts, depth + 1, quoted=quoted)
        elif kind in ("word", "number", "variable_name", "extglob_pattern", "brace_expression", "$"):
            if not PLAIN.fullmatch(text):
                raise UnreadableScript(f"{text[:40]!r} cannot be read")
            parts += literal_parts(utf8(text))
        elif kind == "raw_string":
            if not re.fullmatch(r"'[^']*'", text):
                raise UnreadableScript("quotes cannot be read")
            parts.append((utf8(text[1:-1]), "quoted"))
        elif kind == "string":
            self.string(node, parts, depth)
        elif kind == "translated_string":
            inner = node.children[-1]
            if text[:2] != '$"' or inner.type != "string":
                raise UnreadableScript("quotes cannot be read")
            self.string(inner, parts, depth)
            parts.append(("", "dynamic"))
        elif kind == "ansi_c_string":
            parts.append((decoded(text), "quoted"))
            parts.append(("", "dynamic"))
        elif kind == "simple_expansion":
            if not VARIABLE.fullmatch(text):
                raise UnreadableScript(f"{text[:40]!r} cannot be read")
            self.variable(text[1:], parts, quoted=quoted)
        elif kind == "expansion":
            self.expansion(node, parts, depth, quoted=quoted)
        elif kind == "command_substitution":
            self.substitution(node, depth)
            parts.append(("", "dynamic"))
        elif kind == "process_substitution":
            self.inner(node, depth, ("<(", ">("))
            parts.append(("", "dynamic"))
        elif kind == "arithmetic_expansion":
            if not text.startswith("$(("):
                raise UnreadableScript("arithmetic of an old form")
            self.note_arithmetic(self.start(node), self.end(node))
            parts.append(("", "dynamic"))
        else:
            raise UnreadableScript(f"{text[:40]!r} cannot be read ({kind})")

    def assign(self, name: str) -> None:
        """Note a variable whose value is known only at run time."""
        value = Word("", dynamic=True)
        self.script.commands.append(SimpleCommand(assignments=[(name, value)]))

    def variable(self, name: str, parts: list[Part], *, quoted: bool) -> None:
        """Add the value of a variable, if the text says it."""
        value = self.variables.get(name)
        if value is not None and (quoted or FIXED.fullmatch(value)):
            self.script.constants.add(name)
            parts.append((value, "quoted" if quoted else "plain"))
        elif name in KNOWN_PLACES and not any(text for text, _ in parts):
            parts.append((KNOWN_PLACES[name], "plain"))
        else:
            parts.append(("", "dynamic"))

    def string(self, node: Node, parts: list[Part], depth: int) -> None:
        """Add the pieces of a text in double quotes."""
        start, end = self.start(node), self.end(node)
        if end - start < 2 or self.text[start] != '"' or self.text[end - 1] != '"':
            raise UnreadableScript("quotes cannot be read")
        at = start + 1
        parts.append(("", "quoted"))
        for child in node.children[1:-1]:
            if child.type in ("string_content", "$"):
                continue
            self.literal(at, self.start(child), parts)
            self.parts_of_word(child, parts, depth + 1, quoted=True)
            at = self.end(child)
        self.literal(at, end - 1, parts)

    def literal(self, start: int, end: int, parts: list[Part]) -> None:
        """Text between double quotes in which nothing is replaced."""
        if start == end:
            return
        text = self.text[start:end]
        if not QUOTED.fullmatch(text):
            raise UnreadableScript("quotes cannot be read")
        parts.append((utf8(re.sub(r'\\([$`"\\])|\\\n', r"\1", text)), "quoted"))

    def expansion(self, node: Node, parts: list[Part], depth: int, *, quoted: bool) -> None:
        """`${…}`: dynamic; what is replaced within it must be plain to see."""
        text, start = self.of(node), self.start(node)
        inner = [c for c in node.children if c.type in ("command_substitution", "simple_expansion")]
        if simple := re.fullmatch(r"\$\{(\w+)\}", text, re.ASCII):
            self.variable(simple[1], parts, quoted=quoted)
            return
        for child in inner:
            self.parts_of_word(child, [], depth + 1, quoted=True)
        for child in reversed(inner):
            a, b = self.start(child) - start, self.end(child) - start
            text = f"{text[:a]}{text[b:]}"
        if not EXPANSION.fullmatch(text):
            raise UnreadableScript(f"{self.of(node)[:40]!r} is worked out when it runs")
        if assigned := ASSIGNED.match(text):
            self.assign(assigned[1])
        parts.append(("", "dynamic"))

    def substitution(self, node: Node, depth: int) -> None:
        """Read the commands of `$(…)` or backquotes."""
        text = self.of(node)
        if text.startswith("`"):
            if "\\" in text or text.count("`") != 2 or "#" in text:
                raise UnreadableScript("a substitution in backquotes cannot be read")
            self.inner(node, depth, ("`",))
        elif text.startswith("$(("):
            raise UnreadableScript("it may be arithmetic or a command")
        else:
            self.inner(node, depth, ("$(",))

    def inner(self, node: Node, depth: int, opening: tuple[str, ...]) -> None:
        """Read the statements of a substitution."""
        first, *rest = node.children
        if first.type not in opening or not rest or rest[-1].type not in (")", "`"):
            raise UnreadableScript("a substitution cannot be read")
        at = self.end(first)
        for child in rest[:-1]:
            self.gap(at, self.start(child), LINES)
            at = self.end(child)
            if child.type == "file_redirect":
                self.redirect(child, SimpleCommand(), depth + 1)
            else:
                self.scan(child, depth + 1)
        self.gap(at, self.start(rest[-1]), LINES)

    # --- arithmetic -----------------------------------------------------------------------------

    def note_arithmetic(self, start: int, end: int) -> None:
        """Keep a place where the shell computes."""
        if re.search(r"[`'\"\\]|\$\(|\$\[", self.text[start + 3 : end]):
            raise UnreadableScript("arithmetic on something that is known only when it runs")
        self.arithmetic.append((start, end))

    def check_arithmetic(self) -> None:
        """Bash runs what is in the value of a variable that it computes with: only numbers are safe."""
        names = {name for a, b in self.arithmetic for name in NAME.findall(self.text[a:b])}
        names -= {"for", "do", "done"}
        if len(names) > 20:
            raise UnreadableScript("it computes with many variables")
        for name in names:
            mention = re.compile(rf"(?<![\w${{]){name}(?!\w)(?!=\$\(\(|=-?\d*(?![^\s;&|)]))", re.ASCII)
            for found in mention.finditer(self.text):
                if any(a <= found.start() < b for a, b in self.arithmetic):
                    continue
                if re.compile(rf"for\s+{name}\s+in\s+[\d\s{{}}.]+[;\n]").match(
                    self.text, max(0, self.text.rfind("for", 0, found.start()))
                ):
                    continue
                raise UnreadableScript("arithmetic on something that is known only when it runs")


def utf8(text: str) -> str:
    """The characters of a text that has one for each byte."""
    return text if text.isascii() else text.encode("latin-1").decode()


def decoded(text: str) -> str:
    r"""The value of `$'…'`. One with `\'` ends elsewhere for a shell that does not know this form."""
    body = text[2:-1]
    if not text.startswith("$'") or not ESCAPED.fullmatch(body):
        raise UnreadableScript("quotes that shells read differently")

    def one(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "xu":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 255)
        return SIMPLE_ESCAPES.get(code, code)

    value = ESCAPE.sub(one, body)
    if "\0" in value or not value.isascii():
        raise UnreadableScript("quotes that shells read differently")
    return value
