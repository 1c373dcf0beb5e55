"""The system call filter as a program: every call goes where it should, for every kind of argument that matters."""

from __future__ import annotations

import errno
import platform
import struct

import pytest

from metier.harness.sandbox.bubblewrap.filter import program

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter is for x86_64")

X86_64, I386 = 0xC000003E, 0x40000003
ALLOW, REFUSED, ABSENT = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
OPEN_NAMESPACE = 0x10000000


def _run(number: int, argument: int = 0, *, arch: int = X86_64) -> int:
    """The filter's verdict, by a small machine for classic BPF."""
    code = program()
    assert code is not None
    data = struct.pack("=IIQQ", number, arch, 0, argument)
    position = accumulator = 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("=HBBI", code, position * 8)
        position += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            position += if_true if holds else if_false


@pytest.mark.parametrize("number", [101, 165, 166, 272, 308, 321, 425, 428, 250, 310])
def test_dangerous_calls_are_refused(number: int) -> None:
    assert _run(number) == REFUSED


@pytest.mark.parametrize("number", [0, 1, 2, 9, 41, 59, 57, 61, 257, 262, 334, 439, 999])
def test_ordinary_calls_pass(number: int) -> None:
    assert _run(number) == ALLOW


def test_a_clone_is_refused_only_with_a_new_namespace() -> None:
    assert _run(56, 0x1200011) == ALLOW
    assert _run(56, 0x3D0F00) == ALLOW
    assert _run(56, OPEN_NAMESPACE | 17) == REFUSED
    assert _run(435) == ABSENT


def test_limits_can_be_set_for_the_caller_only() -> None:
    assert _run(302, 0) == ALLOW
    assert _run(302, 1) == REFUSED


def test_other_instruction_sets_find_no_calls() -> None:
    assert _run(1, arch=I386) == ABSENT
    assert _run(0x40000001) == ABSENT
