# SPDX-License-Identifier: Apache-2.0
"""The process environment a run needs, set before Prefect or a model library is imported.

Prefect keeps its database beside the store and starts its own server for as long as the run
lasts. Nothing reports home, nothing is looked up on a hub (a `hub` policy downloads its commit in
a child process of its own, unless the user set HF_HUB_OFFLINE), and children never import from the
folder they were started in.
"""

import os
import warnings
from pathlib import Path

from stages.errors import ConfigError
from stages.policies.hub import OFFLINE, OFFLINE_BY_DEFAULT

_ALWAYS = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PYTHONSAFEPATH": "1",
}
_DEFAULTS = {
    OFFLINE: "1",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}


def settle(store: Path) -> None:
    """Set the variables; those in `_DEFAULTS` only where the user has not."""
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--store: {store} cannot be made ({error.strerror}): name a file in a folder that can "
            "be written, with --store or STARLOOP_STORE"
        ) from error
    os.environ.update(_ALWAYS)
    if OFFLINE not in os.environ:
        os.environ[OFFLINE_BY_DEFAULT] = "1"
    for name, value in {**_DEFAULTS, "PREFECT_HOME": str(store.parent / ".prefect")}.items():
        os.environ.setdefault(name, value)


def quiet_libraries() -> None:
    """Keep the model libraries' own bars and warnings off the screen."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore", module=r"(transformers|trl|torch|accelerate)\.")
