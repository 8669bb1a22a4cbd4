"""Shell syntax: the simple commands of a command line, read with the grammar of tree-sitter-bash.

The grammar was made for editors: it accepts more than a shell does and sometimes ends a word, a
comment or a here-document elsewhere. So nothing is taken on trust. Every byte of the text must belong
to a token that a shell would read in the same way; otherwise the text is `unclear`. Where bash and a
plain POSIX shell read a line differently, both readings are reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from hookline.text.errors import UnreadableScript

from .expansions import DEEPEST, FIXED, LINES, NAME, WORDS
from .redirections import BLANKS, RedirectionReader
from .script import ShellScript, SimpleCommand, parse
from .words import Word

if TYPE_CHECKING:
    from tree_sitter import Node

STRUCTURES = frozenset(
    [
        "program", "list", "pipeline", "subshell", "compound_statement", "if_statement", "elif_clause",
        "else_clause", "while_statement", "for_statement", "do_group", "case_statement", "case_item",
        "negated_command",
    ]
)  # fmt: skip
OPERATORS = frozenset(["&&", "||", "|", "|&", ";", "&", "(", ")"])
RESERVED = frozenset(
    [
        "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "for", "select", "case",
        "esac", "function", "{", "}", "[[", "]]", "!", "in",
    ]
)  # fmt: skip
TOKENS = OPERATORS | RESERVED | {";;", ";&", ";;&", "\n"}
EXPRESSIONS = frozenset(["binary_expression", "unary_expression", "parenthesized_expression"])
NUMERIC = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"])
MENTION = re.compile(r"(?<![\w${])[A-Za-z_]\w*", re.ASCII)
BEFORE_A_COMMENT = " \t\n;&|()"


def read_script(text: str, variables: Mapping[str, str] | None = None) -> ShellScript:
    """Take a command line apart. What cannot be read is noted as unclear."""
    script = ShellScript()
    try:
        _StatementReader(text, script, variables or {}).read()
    except UnreadableScript as error:
        script.unclear.append(str(error))
    return script


class _StatementReader(RedirectionReader):
    """Reads statements."""

    def read(self) -> None:
        """Read the whole text."""
        for name in [name for name in self.variables if self.mentions[name]]:
            del self.variables[name]  # the text may set it
        root = parse(self.syntax.encode("latin-1"))
        if root.has_error:
            raise UnreadableScript("it is not correct shell syntax")
        self.scan(root, 0)
        if self.documents:
            raise UnreadableScript("it is not certain where a here-document is")
        if self.end(root) < len(self.text) and not LINES.fullmatch(self.text, self.end(root)):
            raise UnreadableScript("the end of it cannot be read")
        if not LINES.fullmatch(self.text, 0, self.start(root)):
            raise UnreadableScript("the beginning of it cannot be read")
        self.check_arithmetic()

    # --- structures -----------------------------------------------------------------------------

    def scan(self, node: Node, depth: int) -> None:
        """Read a statement and everything in it."""
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        kind = node.type
        if kind == "command":
            self.simple([node], depth)
        elif kind == "redirected_statement":
            self.redirected(node, depth)
        elif kind in STRUCTURES:
            if kind == "for_statement" and (name := node.child_by_field_name("variable")):
                self.assign(self.of(name))
            if kind == "compound_statement" and self.of(node).startswith("(("):
                self.double_parentheses(node)
            else:
                self.children(node, depth)
        elif kind in ("variable_assignment", "variable_assignments"):
            self.assignment_statement(node, depth)
        elif kind in ("declaration_command", "unset_command"):
            self.declaration(node, depth)
        elif kind == "test_command":
            self.test(node, depth)
        elif kind == "function_definition":
            self.function(node, depth)
        elif kind == "c_style_for_statement":
            self.counting_loop(node, depth)
        elif kind == "comment":
            self.comment(node)
        elif kind in WORDS:
            self.note(self.word([node], depth))
        elif kind in TOKENS:
            self.operator(kind)
        else:
            raise UnreadableScript(f"{self.of(node)[:40]!r} cannot be read ({kind})")

    def children(self, node: Node, depth: int) -> None:
        """Read the parts of a structure, with nothing but blanks and line ends between them."""
        at = self.start(node)
        for child in node.children:
            self.gap(at, self.start(child), LINES)
            self.scan(child, depth + 1)
            at = self.end(child)
        self.gap(at, self.end(node), LINES)

    def operator(self, kind: str) -> None:
        """Keep an operator."""
        if kind in OPERATORS:
            self.script.operators.add(kind)

    def comment(self, node: Node) -> None:
        """Refuse a comment that a shell would not take for one."""
        start = self.start(node)
        if "\n" in self.of(node) or (start and self.text[start - 1] not in BEFORE_A_COMMENT):
            raise UnreadableScript("it is not certain where a comment begins")
        if "\\" in self.text[max(0, start - 2) : start]:
            raise UnreadableScript("it is not certain where a comment begins")

    def function(self, node: Node, depth: int) -> None:
        """Read the definition of a function."""
        at, name, before = self.start(node), "", len(self.script.commands)
        for child in node.children:
            self.gap(at, self.start(child), LINES)
            at = self.end(child)
            if child.type == "word":
                name = self.of(child)
                if not re.fullmatch(r"[\w.:-]+", name):
                    raise UnreadableScript(f"the function name {name[:40]!r} cannot be read")
                self.script.functions.add(name)
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                self.redirect(child, SimpleCommand(), depth + 1)
            elif child.type not in ("function", "(", ")"):
                self.scan(child, depth + 1)
        if any(c.words and c.words[0].text == name for c in self.script.commands[before:]):
            self.script.unclear.append("a function calls itself")

    def counting_loop(self, node: Node, depth: int) -> None:
        """Read `for ((…))`."""
        header = True
        start = self.start(node)
        for child in node.children:
            if child.type in ("do_group", "compound_statement"):
                if header:
                    self.note_arithmetic(start, self.start(child))
                header = False
                self.scan(child, depth + 1)

    def double_parentheses(self, node: Node) -> None:
        """Arithmetic for bash; for other shells commands in parentheses."""
        self.note_arithmetic(self.start(node), self.end(node))
        self.also(self.of(node))

    def also(self, text: str) -> None:
        """Words that only some shells take for commands."""
        for piece in re.split(r"[;&|()<>\n]+", text):
            if words := piece.split():
                found = [*[Word(word) for word in words], Word("", dynamic=True)]
                self.script.commands.append(SimpleCommand(found))

    # --- simple commands ------------------------------------------------------------------------

    def redirected(self, node: Node, depth: int) -> None:
        """A statement and its redirections. Words after a redirection belong to the command."""
        children = node.children
        if children[0].type == "command" or "redirect" in children[0].type:
            self.simple(children, depth)
            return
        at, owner = self.start(node), SimpleCommand()
        for child in children:
            self.gap(at, self.start(child), BLANKS)
            at = self.end(child)
            if "redirect" in child.type:
                self.redirect(child, owner, depth + 1)
                if owner.words:
                    raise UnreadableScript("a word follows a redirection of a group")
            else:
                self.scan(child, depth + 1)

    def simple(self, nodes: list[Node], depth: int) -> None:
        """One command, with its redirections."""
        command = SimpleCommand()
        self.script.commands.append(command)
        pending: list[Node] = []
        at = self.start(nodes[0])
        for node in self.parts(nodes):
            start = self.start(node)
            self.gap(at, start, BLANKS)
            joined = start == at or (" " not in self.text[at:start] and "\t" not in self.text[at:start])
            if pending and (not joined or "redirect" in node.type):
                self.take(command, pending, depth)
                pending = []
            elif pending and start != at:
                raise UnreadableScript("a word is continued on the next line")
            at = self.end(node)
            if "redirect" in node.type:
                self.redirect(node, command, depth + 1)
            elif node.type == "variable_assignment":
                if command.words or pending:
                    raise UnreadableScript("a variable is set after the program")
                self.assignment(node, command, depth)
            elif node.type == "command_name" or node.type in WORDS or node.type == "regex":
                pending.append(node)
            elif node.type == "comment":
                self.comment(node)
            else:
                raise UnreadableScript(f"{self.of(node)[:40]!r} cannot be read ({node.type})")
        if pending:
            self.take(command, pending, depth)
        if command.cut is not None and command.cut < len(command.words):
            if command.unexpanded:
                raise UnreadableScript("shells differ about where a command ends")
            before, after = command.words[: command.cut], command.words[command.cut :]
            self.script.commands += [SimpleCommand(before), SimpleCommand(after)]
        first = command.words[0] if command.words else None
        if first is not None and first.text in RESERVED and not first.quoted:
            raise UnreadableScript(f"{first.text!r} is not where the shell expects it")

    def parts(self, nodes: list[Node]) -> list[Node]:
        """The parts of a command and of its redirections."""
        found: list[Node] = []
        for node in nodes:
            found += node.children if node.type == "command" else [node]
        return found

    # --- variables ------------------------------------------------------------------------------

    @cached_property
    def mentions(self) -> Counter[str]:
        """How often each name occurs other than as `$name`."""
        return Counter(MENTION.findall(self.text))

    def assignment_statement(self, node: Node, depth: int) -> None:
        """Read variables that are set by themselves."""
        command = SimpleCommand()
        self.script.commands.append(command)
        nodes = node.children if node.type == "variable_assignments" else [node]
        at = self.start(node)
        for child in nodes:
            self.gap(at, self.start(child), BLANKS)
            at = self.end(child)
            self.assignment(child, command, depth)
        following = node.next_sibling
        alone = node.parent is not None and node.parent.type == "program"
        if alone and (
            following is None or following.type in (";", "\n", "comment") or following.is_named
        ):
            for name, value in command.assignments:
                self.keep(name, value)

    def keep(self, name: str, value: Word) -> None:
        """Remember a variable that has one value from here on: nothing else in the text can set it."""
        mentions = self.mentions[name]
        if mentions == 1 and not value.dynamic and FIXED.fullmatch(value.text):
            self.variables[name] = value.text

    def assignment(self, node: Node, command: SimpleCommand, depth: int) -> None:
        """Read `NAME=value`."""
        value: list[Node] = []
        name, at = "", self.start(node)
        for child in node.children:
            if self.start(child) != at:
                raise UnreadableScript("a variable is set in a way that cannot be read")
            at = self.end(child)
            if child.type == "variable_name" and not name:
                name = self.of(child)
            elif child.type == "subscript" and not name:
                name = self.subscript(child)
            elif child.type == "array":
                for item in child.children:
                    if item.type in WORDS:
                        self.note(self.word([item], depth))
                    elif item.type not in ("(", ")", "comment", "\n"):
                        raise UnreadableScript("a list of values cannot be read")
                self.gaps_of_array(child)
            elif child.type in WORDS:
                value.append(child)
            elif child.type not in ("=", "+="):
                raise UnreadableScript(f"{self.of(child)[:40]!r} cannot be read")
        if not NAME.fullmatch(name):
            raise UnreadableScript("a variable is set in a way that cannot be read")
        word = self.word(value, depth) if value else Word("")
        self.note(word)
        command.assignments.append((name, word))

    def gaps_of_array(self, node: Node) -> None:
        """Refuse anything but blanks between values."""
        at = self.start(node)
        for child in node.children:
            self.gap(at, self.start(child), LINES)
            at = self.end(child)

    def subscript(self, node: Node) -> str:
        """The name in `name[0]`."""
        found = re.fullmatch(r"(\w+)\[\d+\]", self.of(node), re.ASCII)
        if found is None:
            raise UnreadableScript("a subscript is worked out when it runs")
        return found[1]

    def declaration(self, node: Node, depth: int) -> None:
        """`export`, `declare`, `local`, `unset`: commands that set variables."""
        first, *rest = node.children
        command = SimpleCommand([Word(self.of(first))])
        self.script.commands.append(command)
        at = self.end(first)
        for child in rest:
            self.gap(at, self.start(child), BLANKS)
            if self.start(child) == at:
                raise UnreadableScript("it is not certain where a word ends")
            at = self.end(child)
            if child.type == "variable_assignment":
                self.assignment(child, command, depth)
            elif child.type in WORDS:
                self.take(command, [child], depth)
            else:
                raise UnreadableScript(f"{self.of(child)[:40]!r} cannot be read")

    # --- tests ----------------------------------------------------------------------------------

    def test(self, node: Node, depth: int) -> None:
        """`[ … ]` is a command like any other, and so is `[[ … ]]` for some shells."""
        opening = self.of(node)[:2]
        single = opening != "[["
        command = SimpleCommand([Word("[" if single else "[[")])
        self.script.commands.append(command)
        target = numeric = False
        opened, *leaves = self.operands(node, depth)
        at = self.end(opened)
        for leaf in leaves:
            self.gap(at, self.start(leaf), BLANKS if single else LINES)
            joined = at == self.start(leaf)
            at = self.end(leaf)
            kind = leaf.type
            if kind in ("&&", "||"):
                command = SimpleCommand()
                self.script.commands.append(command)
                self.script.operators.add(kind)
            elif kind in ("<", ">"):
                target = True
            elif kind in ("(", ")"):
                if single:
                    raise UnreadableScript("a test has parentheses")
            elif kind in ("regex", "extglob_pattern"):
                self.pattern_of_test(leaf, command)
            elif kind in WORDS:
                if joined:
                    raise UnreadableScript("it is not certain where a word ends")
                word = self.word([leaf], depth)
                self.note(word, target=target)
                command.words.append(word)
                target = False
            else:
                text = self.of(leaf)
                numeric = numeric or text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R")
                command.words.append(Word(text))
        if numeric and (not single or any(word.text == "-v" for word in command.words)):
            self.note_arithmetic(self.start(node), self.end(node))

    def operands(self, node: Node, depth: int) -> list[Node]:
        """The words and operators of a test, in order."""
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        found: list[Node] = []
        for child in node.children:
            if child.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
                found += self.operands(child, depth + 1)
            elif child.type.endswith("_expression") or child.type in ("test_command", "command"):
                raise UnreadableScript("a test cannot be read")
            else:
                found.append(child)
        return found

    def pattern_of_test(self, leaf: Node, command: SimpleCommand) -> None:
        """Read a pattern; for some shells it holds operators."""
        text = self.of(leaf)
        if re.search(r"[`$\\'\"\n]", text.rstrip("$")):
            raise UnreadableScript("the pattern of a test cannot be read")
        command.words.append(Word(text))
        if re.search(r"[|&;()<>]", text):
            self.also(text.partition("|")[2] or text)
