"""The hook reference: its text, its examples, and the order of one turn."""
