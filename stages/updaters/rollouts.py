# SPDX-License-Identifier: Apache-2.0
"""TRL's GRPOTrainer on stored rollouts: batches, their weights, and the ratios that it met."""

from collections.abc import Mapping, Sequence
from typing import Any

from stages.updaters.training import padded

BY_BATCH = ("dapo", "cispo", "vespo")  # divided by the whole batch's tokens


def on_stored_rollouts(config: Any) -> Any:
    """TRL's trainer without its sampling and scoring: a batch is what the collator made."""
    from transformers import Trainer
    from trl import GRPOTrainer

    def no_reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        return [0.0] * len(completions)

    class StoredRollouts(GRPOTrainer):  # type: ignore[misc]
        """Micro-batches are weighted so that they sum to the loss of their batch."""

        def __init__(self, *arguments: Any, data_collator: Any, **options: Any) -> None:
            super().__init__(*arguments, reward_funcs=no_reward, **options)
            self.data_collator = data_collator
            self.beta = config.beta

        def get_train_dataloader(self) -> Any:
            return Trainer.get_train_dataloader(self)

        def _prepare_inputs(self, inputs: Any) -> Any:
            return Trainer._prepare_inputs(self, inputs)

        def get_batch_samples(self, *arguments: Any) -> Any:
            batches, count = super().get_batch_samples(*arguments)
            tokens = [batch["tool_mask"].sum() for batch in batches]
            rows = [len(batch["row"]) for batch in batches]
            for batch, its_tokens, its_rows in zip(batches, tokens, rows, strict=True):
                shares = {"bnpo": its_tokens * len(batches) / sum(tokens)}
                shares |= dict.fromkeys(BY_BATCH, 1.0)
                batch["share"] = shares.get(config.loss, its_rows * len(batches) / sum(rows))
                batch["num_items_in_batch"] = (
                    sum(tokens) * self.args.steps_per_generation / len(batches)
                )
            return batches, count

        def _get_per_token_logps_and_entropies(self, *arguments: Any, **options: Any) -> Any:
            found = super()._get_per_token_logps_and_entropies(*arguments, **options)
            self.logps = found[0].detach()
            return found

        def _compute_loss(self, model: Any, inputs: Any) -> Any:
            loss = super()._compute_loss(model, inputs) * inputs["share"]
            ratios = ratios_of(self.logps, inputs, whole=config.ratio == "sequence")
            if ratios is not None and ratios.numel():
                self._metrics["train"]["ratio/min"].append(ratios.min().item())
                self._metrics["train"]["ratio/max"].append(ratios.max().item())
            return loss

        def log(self, logs: Any, *arguments: Any) -> None:
            metrics = self._metrics["train"]
            metrics.pop("step_time", None)  # equal updates leave equal rows
            for name, most in (("ratio/min", min), ("ratio/max", max)):
                if metrics.get(name):
                    metrics[name] = [most(metrics[name])]
            super().log(logs, *arguments)

    return StoredRollouts


def ratios_of(logps: Any, inputs: Mapping[str, Any], *, whole: bool) -> Any:
    """π/π_old of a micro-batch's trained tokens, or (`whole`) the geometric mean of each rollout.

    None where the batch has no old log-probabilities.
    """
    old = inputs.get("old_per_token_logps")
    if old is None:
        return None
    mask = inputs["completion_mask"] * inputs["tool_mask"]
    gaps, tokens = (logps - old) * mask, mask.sum(-1)
    return (gaps.sum(-1) / tokens)[tokens > 0].exp() if whole else gaps[mask.bool()].exp()


class RolloutCollator:
    """Prompts padded on the left, completions on the right, as TRL's loss takes them."""

    def __init__(self, pad: int) -> None:
        self._pad = pad

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        import torch

        prompts = [row["prompt_ids"] for row in rows]
        width = max(map(len, prompts))
        said = [row["completion_ids"] for row in rows]
        batch = {
            "prompt_ids": torch.tensor([[self._pad] * (width - len(p)) + [*p] for p in prompts]),
            "prompt_mask": torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts]),
            "completion_ids": padded(said, self._pad),
            "completion_mask": padded([[1] * len(ids) for ids in said], 0),
            "tool_mask": padded([[int(flag) for flag in row["loss_mask"]] for row in rows], 0),
            "advantages": torch.tensor([row["advantage"] for row in rows]),
            "row": torch.tensor([row["row"] for row in rows]),
        }
        for name, ours in (
            ("old_per_token_logps", "old_logps"),
            ("ref_per_token_logps", "ref_logps"),
        ):
            if rows[0].get(ours) is not None:
                batch[name] = padded([row[ours] for row in rows], 0.0)
        return batch
