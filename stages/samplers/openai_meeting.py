# SPDX-License-Identifier: Apache-2.0
"""What an OpenAI-compatible server is: served model, version, weights, and how it replies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from stages.errors import SamplerError
from stages.policies.checkpoint import model_id_of
from stages.samplers.openai_client import Pool
from stages.samplers.openai_replies import gives_tokens, is_processed

Api = Literal["auto", "tokens", "chat"]
NO_SUCH_PAGE = (404, 405, 501)
# a server may refuse prompts of ids in many ways; 401 and 403 are about the key
NO_TOKENS = (400, 404, 405, 415, 422, 501)


@dataclass(frozen=True, slots=True)
class Met:
    """A server: `processed` log-probabilities are of the distribution drawn from.

    `shown` is the model id of the weights it serves, where it shows one.
    """

    model: str
    shown: UUID | None
    version: str
    tokens: bool
    processed: bool


async def meet(pool: Pool, url: str, model: str | None, api: Api, probe: list[int]) -> Met:
    """The facts of one server; a prompt `probe` is sent to see what comes back."""
    listing = await pool.fetch("/models", None, dict, NO_SUCH_PAGE)
    named = _served(url, listing, model)
    version = (await pool.look("version")).get("version")
    tokens = processed = False
    if api != "chat":
        body = {
            "model": named,
            "prompt": probe,
            "max_tokens": 1,
            "seed": 0,
            "temperature": 1.0,
            "top_k": 1,
            "logprobs": 2,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        reply = await pool.fetch("/completions", body, dict, NO_TOKENS if api == "auto" else ())
        tokens = reply is not None and gives_tokens(reply, probe)
        processed = tokens and is_processed(reply or {})
        if api == "tokens" and not tokens:
            raise SamplerError(
                f"sampler.api: {url} replies to token ids without token ids and log-probabilities "
                "(vLLM gives them for return_token_ids): use `api: chat` or `api: auto`"
            )
    shown = await _shown(pool, next((c for c in _cards(listing) if c["id"] == named), {}))
    return Met(named, shown, version if isinstance(version, str) else "unknown", tokens, processed)


async def _shown(pool: Pool, card: dict[str, Any]) -> UUID | None:
    """The weights' id: vLLM's /weight_info where it is one, or that of the folder it started on.

    The folder's content is read where it is there, else its name counts if that is an id.
    """
    version = (await pool.look("weight_info")).get("weight_version")
    return _id_in(version) or _weights_at(card.get("root"))


def check_weights(url: str, met: Met, folder: Path, said: str | None) -> None:
    """SamplerError where a server shows or is said to serve other weights than the policy's."""
    policy, declared = model_id_of(folder), _id_in(said)
    fix = f"start the server on {folder}"
    if met.shown is not None and met.shown != policy:
        raise SamplerError(f"{url} serves model {met.shown}, but the policy is {policy}: {fix}")
    if declared is not None and declared != policy:
        raise SamplerError(
            f"sampler.weight_version: {said} is not the policy's id {policy}: {fix}, then set it"
        )
    if met.shown is None and said is None:
        raise SamplerError(
            f"{url} does not show which weights it serves under {met.model!r}: {fix}, or set "
            f"sampler.weight_version to what it serves (the policy is {policy})"
        )


def _cards(listing: dict[str, Any] | None) -> list[dict[str, Any]]:
    found = (listing or {}).get("data")
    return [
        card
        for card in (found if isinstance(found, list) else [])
        if isinstance(card, dict) and isinstance(card.get("id"), str)
    ]


def _served(url: str, listing: dict[str, Any] | None, model: str | None) -> str:
    names = [card["id"] for card in _cards(listing)]
    if model is not None:
        if names and model not in names:
            raise SamplerError(f"sampler.model: {url} does not serve {model!r} but {_some(names)}")
        return model
    if len(names) != 1:
        raise SamplerError(
            f"sampler.model: {url} serves {_some(names) or 'no model that it lists'}: name one"
        )
    return str(names[0])


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name[:80]) for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _id_in(text: Any) -> UUID | None:
    try:
        return UUID(text)
    except (ValueError, TypeError, AttributeError):
        return None


def _weights_at(root: Any) -> UUID | None:
    if not isinstance(root, str) or not root:
        return None
    folder = Path(root)
    if folder.is_absolute() and (folder / "config.json").is_file():
        return model_id_of(folder)
    return _id_in(folder.name)
