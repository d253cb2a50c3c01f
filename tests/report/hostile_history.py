# SPDX-License-Identifier: Apache-2.0
"""The small history with texts that attack whoever shows them, and a config that reports read."""

from dataclasses import replace
from pathlib import Path

import small_history
from small_history import mint, named

from configs.files import FOLDER
from configs.load import load
from stages import rows
from store.db import Store

TAG = "</script><img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07"
BIDI = "\u202eright to left\u202c \u2066isolate\u2069 \u200fmark"
NUL = "before\x00after"
LONG = "w" * 500_000 + TAG + "é" * 500_000
TEXTS = {
    "tag": f"{TAG} {{{{ 7 * 7 }}}} ${{1}} <!-- <script> ]]> & &lt; ' \" `",
    "ansi": ANSI,
    "bidi": BIDI,
    "nul": NUL,
    "long": LONG,
    "lines": "first\n\n  third\r\nfourth\u2028fifth",
    "empty": "",
}
DOMAIN = f"d{TAG}"


def stored(path: Path) -> Store:
    """A new store with it."""
    store = Store(path)
    store.create()
    config = load(FOLDER / "tiny" / "try.yaml").model_dump_json(by_alias=True)
    with store.transaction() as tx:
        small_history.write(tx, config)
        problem = rows.Problem(
            named("P9"), "sums", "train", f"q {TAG} {BIDI}", f"a {TAG}", domain=DOMAIN
        )
        tx.insert(rows.Problem, [problem])
        (row,) = tx.rows(rows.Trajectory, "trajectories_by_id", [named("a1")])
        (verdict,) = tx.rows(rows.Verdict, "step_verdicts", run_id=mint("r", "one"),
                             **{"round": 1, "refresh": 0, "step": "verify"})[:1]  # fmt: skip
        run = {"run_id": mint("r", "one"), "run": "one", "round": 2, "refresh": 0}
        flags = {"reused": False, "first": True}
        for label, text in TEXTS.items():
            id_, verdict_id = mint("t", "hostile", label), mint("j", "hostile", label)
            content = mint("c", "hostile", label)
            tx.insert(rows.Trajectory, [
                replace(row, trajectory_id=id_, completion=text, problem_id=named("P9"),
                        content_id=content),
            ])  # fmt: skip
            tx.insert(rows.Verdict, [
                replace(verdict, verdict_id=verdict_id, trajectory_id=id_, status="wrong",
                        reason=TAG if label == "tag" else "mismatch"),
            ])  # fmt: skip
            tx.insert(rows.StepOutput, [
                rows.StepOutput(**run, step="generate", kind="trajectory", id=id_, **flags),
                rows.StepOutput(**run, step="verify", kind="verdict", id=verdict_id, **flags),
            ])  # fmt: skip
        tx.insert(rows.Metric, [
            rows.Metric(named(f"E{number}"), "pass_at_1", f"domain={domain}", None, 0.5, 0.4, 0.6,
                        0.5, 1, 2)
            for number in range(3)
            for domain in (DOMAIN, "plain")
        ])  # fmt: skip
    store.snapshot()
    return store
