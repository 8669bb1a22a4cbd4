"""The operating system: child processes, private files, locks, the home folder."""
