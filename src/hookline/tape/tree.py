"""A session's tree: its outline as runs of entries between branch points, and the drawing of it.

tree = Tree.of(await tape.outline())
print(tree.draw())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from .entry import ANCHOR, FORK, LABEL, SWITCH
from .outline import OutlineEntry, one_line


@dataclass(slots=True, eq=False)
class Stretch:
    """Consecutive entries without a branch; `children` continue from the last of them."""

    entries: Sequence[OutlineEntry]
    parent: Stretch | None = None
    children: list[Stretch] = field(default_factory=list["Stretch"])


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line of a drawn tree: the entry that it stands for (None: for entries left out)."""

    text: str
    entry_id: str | None = None
    is_leaf: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of one session. There are several roots when it began again from nothing."""

    roots: list[Stretch]
    leaf: Stretch | None
    """The run at whose end the next entry goes."""
    labels: dict[str, list[str]]
    """The labels of each entry that has some."""

    @classmethod
    def of(cls, outline: Sequence[OutlineEntry]) -> Tree:
        """Build the tree of an outline; its last entry is the leaf."""
        runs = _runs(outline)
        leaf = next((run for run in runs if run.entries[-1] is outline[-1]), None)
        return cls([run for run in runs if run.parent is None], leaf, _labels(outline))

    def trunk(self) -> list[Stretch]:
        """The runs from the root to the leaf."""
        trunk: list[Stretch] = []
        run = self.leaf
        while run is not None:
            trunk.append(run)
            run = run.parent
        return trunk[::-1]

    def lines(
        self, *, limit: int = 200, width: int = 100, ascii_only: bool = False, depth: int = 12
    ) -> list[TreeLine]:
        """Draw what the user said, each branch indented, `limit` lines at most.

        In a tree that is too large, what is near the leaf and the branch points stays, and lines say
        how much was left out. `depth` is how many branch points above the leaf are drawn.
        """
        pen = _Pen(self, max(width, 20), ascii_only, depth)
        lines: list[TreeLine] = []
        for around in (max(1, (limit - 1) // 2), 8, 3, 1):
            pen.around = around
            lines = list(islice(pen.draw(), limit + 1))
            if len(lines) <= limit:
                return lines
        pen.trunk_only = True
        return _window(list(pen.draw()), max(limit, 3), pen.dots)

    def draw(
        self, *, limit: int = 200, width: int = 100, ascii_only: bool = False, depth: int = 12
    ) -> str:
        """The lines as one text."""
        lines = self.lines(limit=limit, width=width, ascii_only=ascii_only, depth=depth)
        return "\n".join(line.text for line in lines)


def _runs(outline: Sequence[OutlineEntry]) -> list[Stretch]:
    """Split the outline where an entry does not follow the previous one, or has several children."""
    jumps: list[int] = []
    before: str | None = None
    for place, entry in enumerate(outline):
        if entry.parent_id != before or not place:
            jumps.append(place)
        before = entry.id
    parents = {outline[place].parent_id for place in jumps}
    after = (place + 1 for place, entry in enumerate(outline[:-1]) if entry.id in parents)
    starts = sorted({*jumps, *after})
    by_end: dict[str, Stretch] = {}
    runs: list[Stretch] = []
    for start, end in zip(starts, [*starts, len(outline)][1:], strict=True):
        run = Stretch(outline[start:end], by_end.get(outline[start].parent_id or ""))
        if run.parent is not None:
            run.parent.children.append(run)
        by_end[run.entries[-1].id] = run
        runs.append(run)
    branches = [run for run in runs if not _is_continued(run)]
    for run in branches:
        _join(run)
    return branches


def _is_continued(run: Stretch) -> bool:
    """Whether a stretch is its parent's only continuation: then it is no branch."""
    return run.parent is not None and len(run.parent.children) == 1


def _join(run: Stretch) -> None:
    """Take in the runs that only continue this one."""
    if len(run.children) != 1:
        return
    entries = list(run.entries)
    while len(run.children) == 1:
        (child,) = run.children
        entries += child.entries
        run.children = child.children
    run.entries = entries
    for child in run.children:
        child.parent = run


def _labels(outline: Sequence[OutlineEntry]) -> dict[str, list[str]]:
    """The labels as they are now: a name stays with the entry that got it last."""
    names: dict[str, str | None] = {}
    for entry in outline:
        if entry.kind == LABEL:
            names.pop(entry.preview, None)
            names[entry.preview] = entry.target
    labels: dict[str, list[str]] = {}
    for name, target in names.items():
        if target is not None:
            labels.setdefault(target, []).append(name)
    return labels


def _window(lines: list[TreeLine], limit: int, dots: str) -> list[TreeLine]:
    """The lines around the leaf's."""
    if len(lines) <= limit:
        return lines
    here = next((place for place, line in enumerate(lines) if line.is_leaf), len(lines) - 1)
    start = max(0, min(here - limit // 2, len(lines) - limit))
    shown = lines[start : start + limit]
    if start:
        shown[0] = TreeLine(f"{dots} {start + 1} lines above")
    if below := len(lines) - start - limit:
        shown[-1] = TreeLine(f"{dots} {below + 1} lines below")
    return shown


class _Pen:
    """Draws a tree with one set of characters and limits."""

    def __init__(self, tree: Tree, width: int, ascii_only: bool, depth: int) -> None:
        self.tree = tree
        self.width = width
        self.depth = depth
        self.around = 0
        self.trunk_only = False
        self.ascii = ascii_only
        self.dots = "..." if ascii_only else "…"
        self.here = "  <- here" if ascii_only else "  ← here"
        self.bar, self.tee, self.end = ("|  ", "|- ", "`- ") if ascii_only else ("│  ", "├─ ", "└─ ")
        self.trunk: set[Stretch] = set()
        self.nodes: dict[Stretch, list[OutlineEntry]] = {}

    def draw(self) -> Iterator[TreeLine]:
        """All the lines, within the limits of the moment."""
        trunk = self.tree.trunk()
        self.trunk = set(trunk)
        left_out = trunk[: max(0, len(trunk) - self.depth - 1)]
        roots = [trunk[len(left_out)]] if left_out else self.tree.roots
        if left_out:
            count = sum(len(self._nodes(run)) for run in left_out)
            yield TreeLine(f"{self.dots} {count} earlier, {len(left_out)} branch points")
        if len(roots) == 1:
            yield from self._run(roots[0], "", "", 0)
        else:
            yield from self._branches(roots, "", 0)

    def _run(self, run: Stretch, first: str, rest: str, level: int) -> Iterator[TreeLine]:
        """A run's nodes, the first with its branch before it, then what branches off at its end."""
        if self.trunk_only and run not in self.trunk:
            yield self._folded(run, first)
            return
        prefix = first
        nodes = self._nodes(run)
        gap = len(nodes) - 2 * self.around
        shown = nodes if gap <= 1 else [*nodes[: self.around], None, *nodes[-self.around :]]
        for node in shown:
            if node is None:
                yield TreeLine(f"{rest}{self.dots} {gap} more")
            else:
                yield self._line(node, prefix, run is self.tree.leaf and node is nodes[-1])
            prefix = rest
        if level > 2 * self.depth and run.children:
            yield TreeLine(f"{rest}{self.end}{self.dots} {len(run.children)} branches deeper")
        else:
            yield from self._branches(run.children, rest, level + 1)

    def _branches(self, runs: Sequence[Stretch], prefix: str, level: int) -> Iterator[TreeLine]:
        for run in runs:
            last = run is runs[-1]
            first, rest = (self.end, "   ") if last else (self.tee, self.bar)
            yield from self._run(run, prefix + first, prefix + rest, level)

    def _folded(self, run: Stretch, prefix: str) -> TreeLine:
        """A branch in one line."""
        node = self._nodes(run)[0]
        more, waiting = -1, [run]
        while waiting:
            each = waiting.pop()
            more += len(self._nodes(each))
            waiting += each.children
        line = self._line(node, prefix, False)
        return TreeLine(f"{line.text} (+{more})", node.id) if more else line

    def _nodes(self, run: Stretch) -> list[OutlineEntry]:
        """The entries of a run that get a line: at least one."""
        if run not in self.nodes:
            labels = self.tree.labels
            shown = [e for e in run.entries if e.role == "user" or e.id in labels or _tells(e)]
            said = (e for e in run.entries if e.role or e.kind not in (SWITCH, LABEL))
            self.nodes[run] = shown or [next(said, run.entries[0])]
        return self.nodes[run]

    def _line(self, node: OutlineEntry, prefix: str, is_leaf: bool) -> TreeLine:
        said = node.preview
        who = node.role if node.role else node.kind
        text = said if node.role == "user" else f"({who}) {said}".rstrip()
        labels = "".join(f" [{one_line(name, 30)}]" for name in self.tree.labels.get(node.id, ()))
        mark = labels + (self.here if is_leaf else "")
        text = one_line(text or "(nothing)", max(8, self.width - len(prefix) - len(mark)))
        line = f"{prefix}{text}{mark}"
        if self.ascii:
            line = line.replace("…", "...").encode("ascii", "replace").decode()
        return TreeLine(line, node.id, is_leaf)


def _tells(entry: OutlineEntry) -> bool:
    """Whether an entry deserves a line of its own although it is not a message."""
    return entry.kind in (ANCHOR, FORK) or (entry.kind == SWITCH and bool(entry.preview))
