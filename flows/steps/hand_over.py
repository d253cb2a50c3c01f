# SPDX-License-Identifier: Apache-2.0
"""A new checkpoint is handed from trainer to sampler: both must mean the same model by it."""

from flows.commit import Done, Output, Workspace, once
from flows.context import Round
from flows.steps.base import ask, model_of_round, step, usable_problems
from stages import ids
from stages.errors import HeldError
from stages.handover import SAMPLING, allowed_gap, compare, scorer
from stages.ids import Id
from stages.policies.dtype import resolve
from stages.prompts import messages_of
from stages.rows import HandOver
from stages.samplers import Request
from stages.settings import canonical, identity

PROMPTS = 8
MEND = {
    "tokenizer": "the sampler reads token ids by another tokenizer than the checkpoint's: start it "
    "on the checkpoint folder itself",
    "template": "the sampler has another chat template than the checkpoint: start it on the "
    "checkpoint folder itself, without a template of its own, and with the same "
    "chat_template_kwargs",
    "weights": "the sampler has other weights than the checkpoint: start it afresh on the newest "
    "checkpoint",
    "dtype": "the number formats are too far apart for this model: set sampler.dtype and "
    "update.updater.dtype to the same, or raise gates.max_gap",
}


@step
def hand_over(r: Round) -> Done | None:
    """Compare sampler and trainer on the round's model; HeldError where they differ."""
    config = r.run.config
    if not config.sampler.holds_weights:
        return None
    model = model_of_round(r)
    key = ids.step_key(
        "hand_over",
        1,
        [model, r.run.prompts.prompt_set_id],
        canonical([identity(config.sampler), identity(config.update.updater)]),
    )
    return once(r, "hand_over", key, lambda space: _make(r, space, model))


def _make(r: Round, space: Workspace, model: Id) -> Output:
    run = r.run
    dtype, device = run.config.update.updater.precision
    dtype = resolve(dtype, device)
    problems = usable_problems(r, "dev")[:PROMPTS] or usable_problems(r, "train")[:PROMPTS]
    prompts = ask(r, space, problems, SAMPLING.max_tokens, hinted=False, turn=0).prompts
    requests = [
        Request(ids.mint("t", p.prompt_id, place), p.token_ids, place, messages_of(p))
        for place, p in enumerate(prompts)
    ]
    with run.screen.stage("hand-over"), space.working():
        engine = run.engine(model)
        threshold = run.config.gates.max_gap or allowed_gap((engine.dtype, dtype))
        score = scorer(run.checkpoint(model), device)
        found = compare(requests, engine, model, run.tokenizer, score, dtype, threshold)
    if found.suspect is not None:
        raise HeldError(
            f"round {r.number} is held: sampler {engine.name} and trainer differ on model {model}, "
            f"suspect: {found.suspect} ({found.seen}); {MEND[found.suspect]}"
        )
    row = HandOver(
        step_key=space.key,
        model_id=model,
        engine=engine.name,
        engine_version=engine.version,
        dtype=engine.dtype,
        trainer_dtype=dtype,
        prompts=len(requests),
        tokens=found.gap.tokens,
        mean_gap=found.gap.mean,
        max_gap=found.gap.most,
        threshold=threshold,
    )
    unseen = [] if found.gap.tokens else [("hand_over_unseen", "the sampler gave no numbers")]
    return Output([(HandOver, [row])], {}, unseen)
