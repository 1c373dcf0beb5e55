"""vLLM in this process: one thread steps `LLMEngine`, so a co-located trainer alternates with it and shares its memory.

Token ids in and out, no tokenizer. Prefix-cache blocks are salted by weight update: vLLM cannot flush the cache while
requests hold blocks of it, and what older weights computed must not serve a later request.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from metier.envs.core import ConfigError
from metier.harness.policy.contract import Stop

from .engine import GenerationRequest
from .stepped import Emitted, SteppedEngine, Weights

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput

_BATCH_TOKENS = 2048
CPU_KV_DTYPES = ("auto", "fp8", "fp8_e4m3", "fp8_e5m2")
"""What the CPU backend computes rightly; it starts with int8 and int4 as well, and then returns garbage."""
MIN_HEAD_SIZE = 32
_STOPS = {"stop": Stop.END, "length": Stop.LENGTH, "abort": Stop.ABORT}


class VllmSettings(BaseModel, extra="forbid", frozen=True):
    """How to start the engine."""

    model_config = ConfigDict(protected_namespaces=())

    model: Path
    """A Hugging Face folder."""
    dtype: str = "auto"
    """As in `precision.dtype_named`."""
    context_tokens: int = Field(default=2048, gt=1)
    max_sequences: int = Field(default=64, gt=0)
    """Decoded together; further requests wait."""
    kv_mb: int = Field(default=512, gt=0)
    kv_dtype: str = "auto"
    block_tokens: int = 32
    """Granularity of the prefix cache."""
    seed: int = 0


def vllm_engine(settings: VllmSettings, *, version: int = 0) -> SteppedEngine:
    """An engine not yet started: enter it as an async context manager."""
    return SteppedEngine(lambda: VllmCore(settings, version=version), version=version)


class VllmCore:
    """`Core` over an in-process `LLMEngine`.

    Raises:
        ConfigError: The model folder, KV dtype or head size cannot be served.
    """

    def __init__(self, settings: VllmSettings, *, version: int) -> None:
        self.vocabulary = _validated(settings)
        # Read by vLLM when it is imported: in-process, quiet, off the network.
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        try:
            from vllm import EngineArgs, LLMEngine
            from vllm.platforms import current_platform

            from ..precision import dtype_named
        except ImportError as error:
            raise ConfigError(f"vLLM cannot be imported ({error}); install the extra metier[vllm]") from error
        if current_platform.is_cpu() and settings.kv_dtype not in CPU_KV_DTYPES:
            raise ConfigError(
                f"kv_dtype {settings.kv_dtype!r} gives wrong output on the CPU backend; use {', '.join(CPU_KV_DTYPES)}"
            )
        dtype: Any = dtype_named(settings.dtype)
        self.context_tokens = settings.context_tokens
        self._salt = f"start {version}"
        self._num_loads = 0
        self._engine = LLMEngine.from_engine_args(
            EngineArgs(
                model=str(settings.model),
                dtype=dtype,
                seed=settings.seed,
                skip_tokenizer_init=True,
                max_model_len=settings.context_tokens,
                max_num_seqs=settings.max_sequences,
                kv_cache_memory_bytes=settings.kv_mb * 2**20,
                kv_cache_dtype=settings.kv_dtype,  # pyright: ignore[reportArgumentType] - as above
                block_size=settings.block_tokens,
                enable_prefix_caching=True,
                enforce_eager=True,
                # A seeded request whose prompt is cut by the batch's end rewinds its generator, which a CPU generator
                # cannot, and the engine dies; without chunks no prompt is cut.
                enable_chunked_prefill=not current_platform.is_cpu(),
                max_num_batched_tokens=max(_BATCH_TOKENS, settings.context_tokens),
                async_scheduling=False,
                logprobs_mode="processed_logprobs",
                disable_log_stats=True,
            )
        )

    def add(self, key: str, request: GenerationRequest) -> None:
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop_token_ids=list(request.stop_ids),
            ignore_eos=True,
            logprobs=0,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
        )
        prompt = TokensPrompt(prompt_token_ids=list(request.prompt_ids), cache_salt=self._salt)
        self._engine.add_request(key, prompt, params)

    def abort(self, key: str) -> None:
        self._engine.abort_request([key])

    def step(self) -> list[Emitted]:
        return [_emitted(output) for output in self._engine.step()]  # pyright: ignore[reportArgumentType]

    def load(self, weights: Weights, version: int) -> None:
        detached = ((name, tensor.detach()) for name, tensor in weights)
        self._engine.collective_rpc("reload_weights", kwargs={"weights_iterator": detached})
        self._engine.collective_rpc(_repack_tied_head)
        # Counted, since two runs may push different weights under the same version.
        self._num_loads += 1
        self._salt = f"load {self._num_loads}"
        self._engine.reset_prefix_cache()

    def close(self) -> None:
        from vllm.distributed import cleanup_dist_env_and_memory

        self._engine.engine_core.shutdown()
        cleanup_dist_env_and_memory()


def _validated(settings: VllmSettings) -> int:
    """The vocabulary's size, once the model's configuration is known to be servable."""
    path = settings.model / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text())
        head_size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        vocabulary, longest = int(config["vocab_size"]), int(config["max_position_embeddings"])
    except (OSError, KeyError, ValueError) as error:
        raise ConfigError(f"{path} describes no language model ({error!r}); name a Hugging Face folder") from error
    if head_size < MIN_HEAD_SIZE:
        raise ConfigError(f"the model's head size {head_size} is under {MIN_HEAD_SIZE}, which vLLM cannot serve")
    if settings.context_tokens > longest:
        raise ConfigError(f"context_tokens {settings.context_tokens} is over the model's {longest}")
    return vocabulary


def _repack_tied_head(worker: Any) -> None:
    """Gives a head that shares the embedding's weights the new ones.

    The CPU kernels multiply by a packed copy, and vLLM's reload packs anew only those layers that the weights name.
    """
    model = worker.model_runner.get_model()
    head = getattr(model, "lm_head", None)
    if head is not None and model.config.tie_word_embeddings:
        head.weight = model.model.embed_tokens.weight
        head.quant_method.process_weights_after_loading(head)


def _emitted(output: RequestOutput) -> Emitted:
    completion = output.outputs[0]
    ids = list(completion.token_ids)
    rows: Any = completion.logprobs or ()
    logprobs = [row[token].logprob for row, token in zip(rows, ids, strict=True)]
    return Emitted(
        key=output.request_id,
        ids=ids,
        logprobs=logprobs,
        stop=_STOPS[completion.finish_reason] if completion.finish_reason else None,
        cached_tokens=output.num_cached_tokens or 0,
    )
