"""Foreign text made safe: printable text, linear patterns, bounded JSON and diffs."""
