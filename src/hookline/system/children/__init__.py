"""Child processes: the one place in which Hookline starts a program.

No child runs code of the folder that Hookline happens to be in unless it is the user's own command:

- its program is an absolute path, never looked up in a relative entry of `PATH`;
- its environment is an allow-list: neither our secrets nor `LD_PRELOAD`, `BASH_ENV` or `PYTHONPATH`
  reach it;
- its working directory is `/` unless the caller names another;
- a Python child of ours runs isolated (`-I`), with the import path it is given;
- it has a session and a process group of its own, no open files of ours, and closed input;
- its group is killed when this process ends, in whatever way that happens.

`environment` says what a child sees, `process` starts it, `guard` ends it, and `own` protects this
process itself.
"""
