"""Where the hook files of tests leave word: they are imported apart from everything else."""

SEEN: list = []
