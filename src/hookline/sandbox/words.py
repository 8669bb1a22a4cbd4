"""Long lists of names, written as text."""


def words(text: str) -> tuple[str, ...]:
    """The words of a text, without its comments; a blank within a word has a backslash before it."""
    lines = (line.partition("#")[0] for line in text.replace("\\ ", "\0").splitlines())
    return tuple(word.replace("\0", " ") for line in lines for word in line.split())
