"""System calls that no sandbox needs, refused by a seccomp filter: namespaces, mounts, tracing, keys, modules, clocks.

A classic BPF program for x86_64. `clone` is refused only with namespace flags; `clone3` does not exist (its flags are
out of a filter's sight, and C libraries then use `clone`); `prlimit64` reaches the caller only, so that nobody can set
the steward's limits.
"""

from __future__ import annotations

import errno
import platform
import struct

_ARCH_X86_64 = 0xC000003E
_X32_BIT = 0x40000000
_NR, _ARCH, _ARG0 = 0, 4, 16
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_CLONE, _CLONE3, _PRLIMIT64 = 56, 435, 302
NAMESPACE_FLAGS = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME."""
REFUSED = {
    "ptrace": 101, "syslog": 103, "uselib": 134, "vhangup": 153, "pivot_root": 155, "adjtimex": 159, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172,
    "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212,
    "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip


def program() -> bytes | None:
    """The filter for this machine; None where there is none for its processor."""
    if platform.machine() != "x86_64":
        return None
    refuse, absent = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    code = [_op(_LOAD, _ARCH), _op(_EQUAL, _ARCH_X86_64, 1, 0), _op(_RETURN, absent)]
    code += [_op(_LOAD, _NR), _op(_AT_LEAST, _X32_BIT, 0, 1), _op(_RETURN, absent)]
    for number in sorted(REFUSED.values()):
        code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, refuse)]
    code += [_op(_EQUAL, _CLONE3, 0, 1), _op(_RETURN, absent)]
    code += [_op(_EQUAL, _CLONE, 0, 4), _op(_LOAD, _ARG0), _op(_ANY_BIT, NAMESPACE_FLAGS, 0, 1)]
    code += [_op(_RETURN, refuse), _op(_RETURN, _ALLOW)]
    code += [_op(_EQUAL, _PRLIMIT64, 0, 3), _op(_LOAD, _ARG0), _op(_EQUAL, 0, 1, 0), _op(_RETURN, refuse)]
    code += [_op(_RETURN, _ALLOW)]
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
