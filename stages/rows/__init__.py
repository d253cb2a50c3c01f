# SPDX-License-Identifier: Apache-2.0
"""All row types: Problem → Prompt → Trajectory → Verdict → Decision → TrainingRow → Update → …

Each class is one table of the store: same name in snake case, same columns (a test compares).
`@keyed` names the columns of its `KEY`. Rows are frozen and join by id, never by position.
"""

from stages.rows.judged import (
    Decision,
    Source,
    Status,
    Verdict,
    VerdictComponent,
    Verifier,
)
from stages.rows.measured import (
    Evaluation,
    Metric,
    Monitor,
    StepOutput,
)
from stages.rows.sampled import (
    SELF_MADE,
    Finish,
    Model,
    Origin,
    Problem,
    ProblemDecision,
    Prompt,
    PromptSet,
    Purpose,
    Sampling,
    Trajectory,
    TrajectoryLogprob,
    TrajectoryParent,
)
from stages.rows.trained import (
    HandOver,
    ModelParent,
    Relation,
    TrainingMetric,
    TrainingRow,
    TrainingRowTrajectory,
    TrainingSet,
    TrainingUpdate,
    TrainingVisit,
)

__all__ = [
    "SELF_MADE",
    "Decision",
    "Evaluation",
    "Finish",
    "HandOver",
    "Metric",
    "Model",
    "ModelParent",
    "Monitor",
    "Origin",
    "Problem",
    "ProblemDecision",
    "Prompt",
    "PromptSet",
    "Purpose",
    "Relation",
    "Sampling",
    "Source",
    "Status",
    "StepOutput",
    "TrainingMetric",
    "TrainingRow",
    "TrainingRowTrajectory",
    "TrainingSet",
    "TrainingUpdate",
    "TrainingVisit",
    "Trajectory",
    "TrajectoryLogprob",
    "TrajectoryParent",
    "Verdict",
    "VerdictComponent",
    "Verifier",
]
