# SPDX-License-Identifier: Apache-2.0
"""Small files that policies are made from: a GGUF file, an adapter, a Hub cache."""

import warnings
from pathlib import Path
from shutil import copytree
from typing import Any

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.convert_slow_tokenizer import bytes_to_unicode

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *bytes_to_unicode().values(), "th"]


def toy_llama() -> Any:
    """Two layers, two heads that share one key; embeddings that Q8_0 holds without a loss."""
    torch.manual_seed(3)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(TOKENS), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
            tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip
    # a block's largest value is 127/128, so its scale is 1/128 and every value a multiple of it
    whole = torch.randint(-127, 128, (len(TOKENS), 32)).float()
    whole[:, 0] = 127
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(whole / 128)
    return model.eval()


def rotated(weight: Any, heads: int) -> Any:
    """Rows of a projection in GGUF's order: it pairs neighbours, Llama pairs halves."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(
    path: Path, architecture: str = "llama", template: str | None = TEMPLATE, eos: bool = True
) -> Any:
    """Write a toy Llama, embeddings in Q8_0 blocks, the rest float32; returns the model."""
    model = toy_llama()
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(1)
    if eos:
        writer.add_eos_token_id(2)
    if template is not None:
        writer.add_chat_template(template)
    embeddings = weights.pop("model.embed_tokens.weight")
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(embeddings, kind), raw_dtype=kind)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, value in weights.items():
        heads = {"q_proj": 2, "k_proj": 1}.get(name.split(".")[-2])
        turned = value if heads is None else rotated(value, heads)
        written = names.get_name(name, try_suffixes=(".weight",))
        assert written is not None
        writer.add_tensor(written, np.ascontiguousarray(turned))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def write_adapter(base: Path, folder: Path, seed: int = 0) -> Any:
    """Train nothing, save an adapter of random weights for a base; returns base and adapter."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    rank2 = LoraConfig(
        r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), rank2)
    model.save_pretrained(folder)
    return model.eval()


def write_hub_cache(cache: Path, name: str, folder: Path, commit: str = COMMIT) -> Path:
    """A Hub cache that holds one commit of one model; returns the commit's folder."""
    place = cache / f"models--{name.replace('/', '--')}" / "snapshots" / commit
    copied: Path = copytree(folder, place)
    return copied
