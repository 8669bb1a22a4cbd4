"""Attacks, and what must become of them."""
