"""Shell redirections: files that a command opens, and here-documents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hookline.text.errors import UnreadableScript

from .expansions import DEEPEST, LINES, WORDS, ExpansionReader, utf8
from .script import SimpleCommand, end_of_document
from .words import expand

if TYPE_CHECKING:
    from tree_sitter import Node

BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
REST_OF_LINE = re.compile(r"""(?:[^'"`\\#$()\n]|'[^'\n]*'|"[^"\n`$\\]*"|\$\w+|\))*""")
DELIMITER = re.compile(r"""(?:'([^'"\\$`\n]+)'|"([^'"\\$`\n]+)"|\\([\w.]+)|([\w.!-]+))""")
LIVE = re.compile(r"\\.|(`|\$[({\[])", re.DOTALL)


class RedirectionReader(ExpansionReader):
    """Reads redirections."""

    def take(self, command: SimpleCommand, pending: list[Node], depth: int) -> None:
        """Add a word to a command."""
        word = self.word(pending, depth)
        words = expand(word)
        if words is None:
            raise UnreadableScript("its braces stand for too many words")
        for one in words:
            self.note(one)
        if command.unexpanded or words != [word]:
            command.unexpanded = [*(command.unexpanded or command.words), word]
        command.words += words

    def redirect(self, node: Node, command: SimpleCommand, depth: int) -> None:
        """Read a redirection."""
        if depth > DEEPEST:
            raise UnreadableScript("it is nested too deeply")
        if node.type == "heredoc_redirect":
            self.here_document(node, command, depth)
            return
        at = self.start(node)
        words: list[Node] = []
        operator = ""
        for child in node.children:
            start = self.start(child)
            self.gap(at, start, BLANKS)
            if words and start == at:
                raise UnreadableScript("it is not certain where a word ends")
            at = self.end(child)
            if child.type == "file_descriptor":
                # The grammar takes `-f2>` for one, and shells differ about several digits.
                if not self.of(child).isdecimal() or at - start != 1 or self.follows_word(start):
                    raise UnreadableScript("it is not certain which file a redirection is about")
                continue
            if child.type in WORDS:
                words.append(child)
            elif not operator:
                operator = child.type
            else:
                raise UnreadableScript(f"{self.of(child)[:40]!r} cannot be read")
        self.script.operators.add(operator.rstrip("-") if operator.endswith("&-") else operator)
        if operator.startswith("&>") and command.cut is None:
            command.cut = len(command.words)
        if not words:
            if not operator.endswith("&-"):
                raise UnreadableScript("a redirection has no file")
            return
        word = self.word(words[:1], depth)
        if node.type == "herestring_redirect":
            self.note(word)
            command.text = None if word.dynamic else word.text
            if len(words) > 1:
                raise UnreadableScript("a word follows a here-string")
        elif not (operator in (">&", "<&") and word.text.strip("-").isdigit()):
            opened = expand(word)
            if opened is None:
                raise UnreadableScript("its braces stand for too many words")
            for one in opened:
                self.note(one, target=True)
        for extra in words[1:]:
            self.take(command, [extra], depth)

    def follows_word(self, at: int) -> bool:
        """Whether something that may belong to the same word stands directly before a place."""
        return at > 0 and self.text[at - 1] not in " \t\n;&|()<>"

    def here_document(self, node: Node, command: SimpleCommand, depth: int) -> None:
        """A here-document, its end found as a shell finds it: a line that is the delimiter."""
        parts = {child.type: child for child in node.children}
        begin, body, finish = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
        if begin is None or finish is None:
            raise UnreadableScript("a here-document has no end")
        found = DELIMITER.fullmatch(self.of(begin))
        if found is None:
            raise UnreadableScript("the delimiter of a here-document cannot be read")
        delimiter = next(group for group in found.groups() if group)
        quoted, stripped = found[4] is None, "<<-" in parts
        self.script.operators.add("<<-" if stripped else "<<")
        after = self.end(begin)
        line_end = self.text.find("\n", after)
        if (
            line_end < 0
            or line_end in self.here
            or not REST_OF_LINE.fullmatch(self.text, after, line_end)
        ):
            raise UnreadableScript("it is not certain where a here-document begins")
        self.here.add(line_end)
        last = end_of_document(self.text, line_end + 1, delimiter, stripped)
        if last is None:
            raise UnreadableScript("a here-document has no end")
        content = self.text[line_end + 1 : last]
        self.documents.discard((line_end + 1, last))
        line = self.text.find("\n", last)
        if (
            self.end(finish) != (line if line >= 0 else len(self.text))
            or self.of(finish).lstrip("\t") != delimiter
        ):
            raise UnreadableScript("it is not certain where a here-document ends")
        if not quoted:
            if "\\\n" in content:
                raise UnreadableScript("a here-document has continued lines")
            self.live_text(content, line_end + 1, body, depth)
        command.text = utf8(content) if quoted or not re.search(r"[$`\\]", content) else None
        at = after
        for child in node.children:
            if child.type in ("<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end"):
                continue
            self.gap(at, self.start(child), LINES)
            at = self.end(child)
            if "redirect" in child.type:
                self.redirect(child, command, depth + 1)
            elif child.type in WORDS:
                self.take(command, [child], depth)
            else:
                self.scan(child, depth + 1)

    def live_text(self, content: str, start: int, body: Node | None, depth: int) -> None:
        """Text in which variables and substitutions are replaced."""
        inner = [child for child in body.children if child.type != "heredoc_content"] if body else []
        ranges = [(self.start(child), self.end(child)) for child in inner]
        if "$" in content or "`" in content:
            self.script.dynamic = True
        for found in LIVE.finditer(content):
            if found[1] and not any(a <= start + found.start(1) < b for a, b in ranges):
                raise UnreadableScript("a substitution in a here-document cannot be read")
        for child in inner:
            self.parts_of_word(child, [], depth, quoted=True)
