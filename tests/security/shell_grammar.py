"""Command lines of a grammar: what a shell understands, and now and then something put in between."""

# ruff: noqa: E501 - tables

from random import Random

INSERTED = [
    "'", '"', "\\", "\\\n", "$(", ")", "`", "<<E\n", "\nE\n", "# ", "x=1 ", "(", "{ ", "; }", "& ", "> f ",
    "< f.txt ", "2>&1 ", "then ", "fi ", "do ", "done ", "esac ", ";; ", "[[ ", "]] ", "(( ", ")) ", "}", "$x ",
    "{a,b}", "! ", "\t", "\r", "\f", "\u00a0", "é", "=", "$", "#", "!", "&", "<<'E'\n", "<<-E\n", "\tE\n", "@(", "+=",
    "a=(", "&> f ", "|& ", "*", "?", "~ ", "eval ", "exec ",
]  # fmt: skip
PROGRAMS = [
    "git", "rm", "cat", "a", "b", "mark", "foo", "\\git", 'g"i"t', "'rm'", "env a", "command a", "exec a",
    "nice b", "timeout 5 rm", "sh -c 'mark q'", "xargs a", "eval mark e", "time a", "! b", "nohup c",
    "env X=1 a", "find . -exec a {} +", 'bash -c "b z"', "builtin eval a", "echo", "true", "command -- a",
    "exec -a z a", "time -p b", "stdbuf -oL a", "env -u X b", "env -i a", "setsid b", "xargs -I{} a {}",
]  # fmt: skip
LITERALS = ["a", "push", "x1", "-f", "f.txt", ".env", "é", "--opt=v", "sub/g.txt"]
QUOTED = ["'a b'", "'*'", "'$(mark)'", "';mark'", "''", "'\\'", '"a b"', '"\\$(mark)"', '"$x"', '"*"', '"\\""',
          '"a\\\nb"', '"`mark z`"']  # fmt: skip
EXPANDED = [
    "{a,b}", "x{1..3}", "{a,{b,c}}d", "{a}", "a{,b}", "{a,b", "\\{a,b}", "*", "f*", "?.txt", "[ab]*", "\\*", "~",
    "~/x", ".e*", "$x", "${x}", "${x:-d}", "$1", "$#", "${#x}", "$((1+2))", "$HOME", '"$@"', "a\\ b", "\\a",
    "a\"b\"'c'", "$'a\\tb'", '$"a"', "a#b", "a=b", "--", "-",
]  # fmt: skip
REDIRECTIONS = [
    "> out",
    "2>&1",
    ">>out",
    "< f.txt",
    "2>/dev/null",
    "&>out",
    "<<<w",
    ">|out",
    "<>f.txt",
    "3<f.txt",
]
TESTS = [
    "[ -f f.txt ]", "[[ -f f.txt && -d sub ]]", "[ a = b ] || mark t", "[[ a == a* ]] && mark u",
    "((1)) && mark w", "[[ a || mark ]]", "[ a && mark ]", "[[ a =~ b|mark ]]", "[[ a < f.txt ]]",
]  # fmt: skip


def command_line(random: Random) -> str:
    """One command line; about every seventh has something in it that may not belong there."""
    made = statement(random, random.randint(0, 3))
    if random.random() < 0.15:
        at = random.randint(0, len(made))
        made = made[:at] + random.choice(INSERTED) + made[at:]
    return made


def statement(random: Random, depth: int) -> str:
    """A statement of at most so many levels."""
    if depth <= 0 or random.random() < 0.35:
        return simple(random, depth)

    def inner() -> str:
        return statement(random, depth - 1)

    return random.choice(
        [
            lambda: f"({inner()})",
            lambda: f"{{ {inner()}; }}",
            lambda: f"if {inner()}; then {inner()}; else {inner()}; fi",
            lambda: f"for i in 1 2; do {inner()}; done",
            lambda: f"case a in a) {inner()};; *) {inner()};; esac",
            lambda: f"f() {{ {inner()}; }}; f",
            lambda: f"{inner()} | {inner()}",
            lambda: f"{inner()} && {inner()}",
            lambda: f"{inner()} || {inner()}",
            lambda: f"{inner()}; {inner()}",
            lambda: f"{inner()}\n{inner()}",
            lambda: f"{inner()} & {inner()}",
            lambda: (
                f"{simple(random, 0)} <<{random.choice(['E', chr(39) + 'E' + chr(39)])}\ntext "
                f"{random.choice(['', '$(mark h)', '`mark h`', '$x'])}\nE\n{inner()}"
            ),
            lambda: f"{random.choice(TESTS)}; {inner()}",
            lambda: f"x={random.choice(LITERALS + QUOTED)}; a $x; {inner()}",
        ]
    )()


def simple(random: Random, depth: int) -> str:
    """A simple command, with what may stand before, in and after it."""
    words = [random.choice(PROGRAMS), *[word(random, depth) for _ in range(random.randint(0, 3))]]
    if random.random() < 0.2:
        words.insert(random.randint(1, len(words)), random.choice(REDIRECTIONS))
    if random.random() < 0.1:
        words.insert(0, random.choice(["V=1", "V=$(mark v)", "V='a b'", 'V="x"']))
    return " ".join(words)


def word(random: Random, depth: int) -> str:
    """One word."""
    kind = random.random()
    if depth > 0 and kind < 0.2:
        inner = statement(random, depth - 1)
        return random.choice([f"$({inner})", f'"$({inner})"', f"<({inner})"])
    return random.choice(LITERALS if kind < 0.6 else QUOTED if kind < 0.75 else EXPANDED)
