# SPDX-License-Identifier: Apache-2.0
"""A chat as a policy's chat template writes it."""

from collections.abc import Mapping
from typing import Any

from stages.errors import ConfigError

Messages = tuple[tuple[str, str], ...]


def write_chat(messages: Messages, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> str:
    """The chat (role, text) as text, generation prompt added; ConfigError where that fails."""
    turns = [{"role": role, "content": text} for role, text in messages]
    try:
        text = tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **template_kwargs
        )
    except Exception as error:  # a template is a program of somebody else's
        roles = ", ".join(dict.fromkeys(role for role, _ in messages))
        raise ConfigError(
            f"policy: its chat template fails on a chat of {roles}: {' '.join(str(error).split())} "
            "(mend chat_template.jinja, or leave `prompts.system` out)"
        ) from error
    return str(text)


def render_chat(
    messages: Messages, tokenizer: Any, template_kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """The chat as token ids: what the template wrote, nothing added."""
    text = write_chat(messages, tokenizer, template_kwargs)
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
