# SPDX-License-Identifier: Apache-2.0
"""`tiny`: a Llama of about 0.8 M parameters that reads single characters.

Written as an ordinary Hugging Face checkpoint, so transformers, TRL and vLLM load it as it is.
Its base is trained here once, in a minute or two, on worked additions of one and two digits with
and without hints, and on ten examples of each longer length: the few-shot examples of STaR
(arXiv 2203.14465, section 4.1) in the only form that a model of this size can take them. This
training belongs to the policy, not to a run: the base's model row has origin `outside`.
"""

import random
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stages.errors import ConfigError
from stages.ids import hash_text
from stages.policies.base import Policy, Progress
from stages.policies.made import made_once
from stages.settings import Settings, identity_json
from stages.tasks import addition

CHARACTERS = string.digits + string.ascii_lowercase + " \n+=;:#()"
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'user' %}{{ '\\n' }}{% else %}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)
RECIPE = 1


class Config(Settings):
    """Size of the model and training of its base. `steps: 0` leaves random weights."""

    type: Literal["tiny"]
    digits: int = Field(5, ge=1, le=len(addition.PLACES))
    hidden_size: int = Field(128, ge=8)
    layers: int = Field(4, ge=1)
    heads: int = Field(4, ge=1)
    steps: int = Field(450, ge=0)
    batch_size: int = Field(64, ge=1)
    learning_rate: float = Field(2e-3, gt=0)
    warmup_steps: int = Field(50, ge=0)
    two_digit_examples: int = Field(1500, ge=1)
    long_share: float = Field(0.08, ge=0, le=0.5)
    long_hinted_share: float = Field(0.14, ge=0, le=0.5)
    seed: int = Field(0, ge=0, lt=2**31)

    def build(self) -> Policy:
        return Tiny(self)


@dataclass(frozen=True, slots=True)
class Tiny:
    """Trains its base at first use; later uses find it by the hash of its config."""

    config: Config

    def check(self) -> None:
        if self.config.hidden_size % (2 * self.config.heads):
            raise ConfigError(
                f"policy.hidden_size: {self.config.hidden_size} is not a multiple of 2 × heads "
                f"({2 * self.config.heads}): each head needs an even number of dimensions"
            )

    def prepare(self, models: Path, progress: Progress) -> Path:
        key = hash_text(f"{RECIPE}|{identity_json(self.config)}")[:16]

        def make(draft: Path) -> None:
            _train_base(self.config, progress).save_pretrained(draft)
            write_tokenizer(draft)

        return made_once(models, f"tiny-{key}", make)


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of one token per character, with its chat template."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(folder)


def _new_model(config: Config) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(config.seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(SPECIAL) + len(CHARACTERS),
            hidden_size=config.hidden_size,
            intermediate_size=3 * config.hidden_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            pad_token_id=SPECIAL.index("<pad>"),
            bos_token_id=SPECIAL.index("<bos>"),
            eos_token_id=SPECIAL.index("<eos>"),
        )
    )


def _train_base(config: Config, progress: Progress) -> Any:
    """AdamW with a cosine schedule; each batch is drawn by the chance of each example."""
    import torch
    from transformers import get_cosine_schedule_with_warmup

    model = _new_model(config).train()
    shown, weights = _examples(config)
    rng = random.Random(f"tiny|{config.seed}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.95))
    schedule = get_cosine_schedule_with_warmup(optimizer, config.warmup_steps, config.steps)
    for step in range(config.steps):
        batch = rng.choices(shown, weights, k=config.batch_size)
        tokens = sum(map(_loss_tokens, batch))
        for group in _of_like_length(batch):
            share = sum(map(_loss_tokens, group)) / tokens
            (model(**_batch(group)).loss * share).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        progress(step + 1, config.steps)
    return model.eval()


def _examples(config: Config) -> tuple[list[addition.Example], list[float]]:
    """Worked examples and the chance of each to be drawn.

    Lengths 1 and 2 share what the long lengths leave, 15 to 63, hinted and plain alike.
    """
    short = 1.0 - config.long_share - config.long_hinted_share
    long = [length for length in range(1, config.digits + 1) if length not in addition.SHORT]
    groups = []
    for hinted, long_share in ((False, config.long_share), (True, config.long_hinted_share)):
        ones = addition.examples(1, 100, hinted, config.seed)
        twos = addition.examples(2, config.two_digit_examples, hinted, config.seed)
        count = addition.LONG_EXAMPLES
        longer = [e for n in long for e in addition.examples(n, count, hinted, config.seed + 1)]
        groups += [(ones, short * 0.096), (twos, short * 0.404), (longer, long_share)]
    drawn = [(e, share / len(group)) for group, share in groups for e in group]
    return [example for example, _ in drawn], [weight for _, weight in drawn]


def _loss_tokens(example: addition.Example) -> int:
    return len(example.completion) + 1


def _of_like_length(batch: list[addition.Example]) -> list[list[addition.Example]]:
    """The batch in groups that differ by at most 20 characters: little padding, same gradient."""

    def length(example: addition.Example) -> int:
        return len(example.prompt) + len(example.completion)

    groups: list[list[addition.Example]] = []
    for example in sorted(batch, key=length):
        if groups and length(example) - length(groups[-1][0]) <= 20:
            groups[-1].append(example)
        else:
            groups.append([example])
    return groups


def _batch(examples: list[addition.Example]) -> dict[str, Any]:
    import torch

    code = {c: len(SPECIAL) + i for i, c in enumerate(CHARACTERS)}
    pad, bos, eos = (SPECIAL.index(t) for t in ("<pad>", "<bos>", "<eos>"))
    prompts = [[bos, *(code[c] for c in e.prompt), code["\n"]] for e in examples]
    completions = [[*(code[c] for c in e.completion), eos] for e in examples]
    width = max(len(p) + len(c) for p, c in zip(prompts, completions, strict=True))
    ids, labels = [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        filler = width - len(prompt) - len(completion)
        ids.append(prompt + completion + [pad] * filler)
        labels.append([-100] * len(prompt) + completion + [-100] * filler)
    tokens = torch.tensor(ids)
    return {
        "input_ids": tokens,
        "attention_mask": (tokens != pad).long(),
        "labels": torch.tensor(labels),
    }
