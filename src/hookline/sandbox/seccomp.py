"""A seccomp filter: system calls that no confined child needs, and that reach past its namespaces.

Network namespaces do not hold every address family (vsock, Bluetooth), kernel keyrings are inherited,
and io_uring opens sockets that a filter on `socket` never sees. Whoever traces the first process of a
sandbox could make it leave its group, and so outlive its parent.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from functools import cache

_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    # name: (audit architecture, numbers)
    "x86_64": (
        0xC000003E,
        {
            "socket": 41,
            "clone": 56,
            "ioctl": 16,
            "clone3": 435,
            "io_uring_setup": 425,
            "io_uring_enter": 426,
            "io_uring_register": 427,
            "keyctl": 250,
            "add_key": 248,
            "request_key": 249,
            "bpf": 321,
            "perf_event_open": 298,
            "userfaultfd": 323,
            "kexec_load": 246,
            "kexec_file_load": 320,
            "init_module": 175,
            "finit_module": 313,
            "delete_module": 176,
            "mount": 165,
            "umount2": 166,
            "pivot_root": 155,
            "chroot": 161,
            "move_mount": 429,
            "open_tree": 428,
            "fsopen": 430,
            "fsconfig": 431,
            "fsmount": 432,
            "fspick": 433,
            "mount_setattr": 442,
            "swapon": 167,
            "swapoff": 168,
            "reboot": 169,
            "setns": 308,
            "unshare": 272,
            "quotactl": 179,
            "acct": 163,
            "open_by_handle_at": 304,
            "lookup_dcookie": 212,
            "iopl": 172,
            "ioperm": 173,
            "settimeofday": 164,
            "clock_settime": 227,
            "clock_adjtime": 305,
            "syslog": 103,
            "vhangup": 153,
            "ptrace": 101,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "pidfd_getfd": 438,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "socket": 198,
            "clone": 220,
            "ioctl": 29,
            "clone3": 435,
            "io_uring_setup": 425,
            "io_uring_enter": 426,
            "io_uring_register": 427,
            "keyctl": 219,
            "add_key": 217,
            "request_key": 218,
            "bpf": 280,
            "perf_event_open": 241,
            "userfaultfd": 282,
            "kexec_load": 104,
            "kexec_file_load": 294,
            "init_module": 105,
            "finit_module": 273,
            "delete_module": 106,
            "mount": 40,
            "umount2": 39,
            "pivot_root": 41,
            "chroot": 51,
            "move_mount": 429,
            "open_tree": 428,
            "fsopen": 430,
            "fsconfig": 431,
            "fsmount": 432,
            "fspick": 433,
            "mount_setattr": 442,
            "swapon": 224,
            "swapoff": 225,
            "reboot": 142,
            "setns": 268,
            "unshare": 97,
            "quotactl": 60,
            "acct": 89,
            "open_by_handle_at": 265,
            "lookup_dcookie": 18,
            "settimeofday": 170,
            "clock_settime": 112,
            "clock_adjtime": 266,
            "syslog": 116,
            "vhangup": 58,
            "ptrace": 117,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "pidfd_getfd": 438,
        },
    ),
}

_FAMILIES = (1, 2, 10, 16)
"""unix, inet, inet6, netlink."""
_CLONE_NEWUSER = 0x10000000
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put characters into a terminal, as if somebody had typed them."""
_ABSENT = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""Said to be missing: programs then use what came before."""
_SPECIAL = ("socket", "clone", "ioctl", *_ABSENT)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = 0x7FFF0000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
_X32 = 0x40000000


def _failed(number: int) -> int:
    return 0x00050000 | number


def program(machine: str, families: tuple[int, ...] = _FAMILIES) -> bytes | None:
    """The filter for a kind of processor, with the kinds of sockets that are left; None if unknown."""
    if machine not in _NUMBERS:
        return None
    architecture, numbers = _NUMBERS[machine]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _failed(errno.ENOSYS)),  # another processor's numbers mean other calls
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _failed(errno.ENOSYS))]
    for name, number in numbers.items():
        if name not in _SPECIAL:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _failed(errno.EPERM))]
    for name in _ABSENT:
        code += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _failed(errno.ENOSYS))]
    code += [
        (_EQUAL, 0, 3, numbers["clone"]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _CLONE_NEWUSER),
        (_RETURN, 0, 0, _failed(errno.EPERM)),
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 1 + 2 * len(_TERMINAL), numbers["ioctl"]),
        (_LOAD, 0, 0, _SECOND),
    ]
    for request in _TERMINAL:
        code += [(_EQUAL, 0, 1, request), (_RETURN, 0, 0, _failed(errno.EPERM))]
    code += [(_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, 2 + len(families), numbers["socket"])]
    code.append((_LOAD, 0, 0, _FIRST))
    for left, family in zip(range(len(families), 0, -1), families, strict=True):
        code.append((_EQUAL, left, 0, family))
    code += [(_RETURN, 0, 0, _failed(errno.EAFNOSUPPORT)), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *each) for each in code)


@cache
def _stored() -> int | None:
    code = program(platform.machine())
    if code is None or not hasattr(os, "memfd_create"):
        return None
    file = os.memfd_create("hookline-seccomp", os.MFD_CLOEXEC)
    os.write(file, code)
    return file


def opened() -> int | None:
    """A file descriptor to read the filter from, to be closed by the caller."""
    file = _stored()
    return None if file is None else os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
