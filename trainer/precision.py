"""Which floating-point type this machine computes fast: older CPUs emulate bf16, 5 times slower than fp32."""

from __future__ import annotations

import torch


def dtype_named(name: str) -> torch.dtype:
    """`float32`, `bfloat16`, or `auto`: bf16 where a GPU or the CPU's instructions serve it, else fp32.

    Raises:
        ValueError: Another name.
    """
    if name == "auto":
        cpu_does = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
        return torch.bfloat16 if cpu_does or torch.cuda.is_available() else torch.float32
    if name not in ("float32", "bfloat16"):
        raise ValueError(f"dtype {name!r}: use auto, float32 or bfloat16")
    return getattr(torch, name)
