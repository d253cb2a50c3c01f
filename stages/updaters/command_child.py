# SPDX-License-Identifier: Apache-2.0
"""The process that runs a command for its parent, and ends it when the parent is gone.

`python command_child.py PIPE COMMAND…`, at the head of a process group of its own. When the pipe
closes, the group is asked to end (SIGTERM) and killed after GRACE_S. The status is the command's;
128 + n where signal n ended it. It has none of our packages, so that it starts at once.
"""

import os
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 10.0


def main(pipe: int, command: list[str]) -> int:
    """Run the command to its end, or to the pipe's."""
    signal.signal(signal.SIGTERM, lambda *_: None)  # meant for the command, which gets it too
    child = subprocess.Popen(command)
    threading.Thread(target=_watch, args=(pipe,), daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status


def _watch(pipe: int) -> None:
    os.read(pipe, 1)
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
