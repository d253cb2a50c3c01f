# SPDX-License-Identifier: Apache-2.0
"""The error tree. Every message names the field or row, the value, what is allowed and the fix.

LoopError
├── ConfigError      a config, a command line or an option is not usable          exit 2
├── TaskDataError    a task's problems or references are not usable                exit 1
├── SamplerError     an engine failed or returned something else than was asked    exit 1
├── VerifierError    a verifier failed on our side (never on model text)           exit 1
├── UpdaterError     a training step failed or left no usable checkpoint           exit 1
├── StoreError       the store refuses a row, a file or a query                    exit 1
│   └── SlotConflict another run filled a slot first, with other content           exit 1
├── ServerGoneError  Prefect's server cannot be reached                             exit 1
├── HeldError        a gate holds the round until a person looks                   exit 3
├── LockedError      another process works on this run or holds the store          exit 4
└── Interrupted      a person stopped it (Ctrl-C)                                  exit 130
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID


class LoopError(Exception):
    """Root of all errors that starloop raises on purpose; `exit_code` is the process's."""

    exit_code = 1


class ConfigError(LoopError):
    """A config file, a `key=value` or a command-line option cannot be used."""

    exit_code = 2


class TaskDataError(LoopError):
    """A task cannot give the problems it was asked for."""


class SamplerError(LoopError):
    """A sampler failed, or its replies do not match what was asked."""


class VerifierError(LoopError):
    """A verifier could not run. What a completion did is a verdict, never this error."""


class UpdaterError(LoopError):
    """An update failed or left no complete checkpoint."""


class StoreError(LoopError):
    """The store refuses a file, a row or a query."""


class SlotConflict(StoreError):
    """Another commit filled this slot first, with other content; `trajectory_id` names it."""

    def __init__(self, message: str, trajectory_id: "UUID") -> None:
        super().__init__(message)
        self.trajectory_id = trajectory_id


class ServerGoneError(LoopError):
    """Prefect's server cannot be reached, and its client would wait for it at the end."""


class HeldError(LoopError):
    """A gate stopped the run; it goes on when the cause is mended."""

    exit_code = 3


class LockedError(LoopError):
    """Another process holds the run or the store."""

    exit_code = 4


class Interrupted(LoopError):
    """Ctrl-C: what was committed stays, the same command goes on."""

    exit_code = 130
