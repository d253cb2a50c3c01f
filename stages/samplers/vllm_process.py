# SPDX-License-Identifier: Apache-2.0
"""One vLLM process as its parent sees it: `vllm_child.py` behind two pipes.

The child leads a process group of its own, so Ctrl-C reaches the run alone. It reads its messages
from a pipe that closes with the run, however the run went, and then kills its group; when the
child itself is gone, the group is killed from here. What it prints goes into a log file.
"""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from stages.errors import ConfigError, LoopError, SamplerError
from stages.samplers import vllm_child

Message = dict[str, Any]
DEFAULTS = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
ALWAYS = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
LOG_LINES = 4


class Process:
    """A started child. Answers of slots go to the queue it is given, as (process, message).

    None in the place of the message says that the child is gone.
    """

    def __init__(
        self,
        python: Path,
        devices: str | None,
        answers: "queue.SimpleQueue[tuple[Process, Message | None]]",
    ) -> None:
        self._python, self._answers = python, answers
        self._control: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._folder = tempfile.TemporaryDirectory(prefix="starloop-vllm-")
        self.folder = Path(self._folder.name)
        env = {**DEFAULTS, **os.environ, **ALWAYS}
        env.pop("PYTHONPATH", None)
        if devices is not None:
            env["CUDA_VISIBLE_DEVICES"] = devices
        requests, self._to_child = os.pipe()
        from_child, replies = os.pipe()
        try:
            with (self.folder / "log").open("wb") as log:
                command = [str(python), "-P", vllm_child.__file__, str(requests), str(replies)]
                self._child = subprocess.Popen(
                    command,
                    pass_fds=(requests, replies),
                    start_new_session=True,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=env,
                )
        except OSError as error:
            os.close(self._to_child)
            os.close(from_child)
            self._folder.cleanup()
            raise ConfigError(
                f"sampler.python: {python} does not start ({error.strerror}): run `make vllm`, or "
                "set it to the python of an environment with vLLM"
            ) from error
        finally:
            os.close(requests)
            os.close(replies)
        self.pid = self._child.pid
        self._threads = [
            threading.Thread(target=self._listen, args=(from_child,), daemon=True),
            threading.Thread(target=self._bury, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def send(self, **message: Any) -> None:
        """Hand a message to the child; SamplerError where it is gone."""
        data = memoryview(f"{json.dumps(message)}\n".encode())
        try:
            while data:
                data = data[os.write(self._to_child, data) :]
        except OSError as error:
            raise self.gone() from error

    def reply(self, timeout_s: float | None = None) -> Message:
        """The next message that is not about a slot; what it failed with as an error."""
        try:
            message = self._control.get(timeout=timeout_s)
        except queue.Empty:
            raise SamplerError(
                "sampler.start_timeout_s: vLLM was not ready in time; raise it, or see what it was "
                f"doing: {self._last_lines()}"
            ) from None
        if message is None:
            raise self.gone()
        if "failed" in message:
            raise self._failure(message["failed"], message["message"])
        return message

    def gone(self) -> SamplerError:
        """The error for a child that ended by itself or was killed."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        return SamplerError(
            f"vLLM (process {self.pid}) ended with status {self._child.poll()}: run again to go on "
            f"with the slots that are left; its last lines: {self._last_lines()}"
        )

    def close(self) -> None:
        """End the child, kindly for ten seconds, and all it started."""
        if self._to_child < 0:
            return
        with suppress(SamplerError):
            self.send(close=True)
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(10)
        self._kill()
        self._child.wait()
        os.close(self._to_child)
        self._to_child = -1
        for thread in self._threads:
            thread.join(10)
        self._folder.cleanup()

    def kill(self) -> None:
        """End the child at once."""
        self._kill()
        self.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _listen(self, pipe: int) -> None:
        with os.fdopen(pipe, encoding="utf-8") as lines, suppress(ValueError):
            for line in lines:
                message = json.loads(line)
                if "id" in message:
                    self._answers.put((self, message))
                else:
                    self._control.put(message)
        self._control.put(None)
        self._answers.put((self, None))

    def _bury(self) -> None:
        """Kill what is left of the group when the child is gone; then its pipe ends too."""
        self._child.wait()
        self._kill()

    def _failure(self, kind: str, said: str) -> LoopError:
        if kind == "environment":
            return ConfigError(
                f"sampler.python: {self._python} cannot import vLLM ({said}): run `make vllm`, or "
                "set it to the python of an environment with vLLM"
            )
        if kind == "config":
            return ConfigError(f"sampler.engine_args: vLLM refuses them or the policy: {said}")
        if kind == "render":
            return ConfigError(
                f"policy: its chat template fails on a chat ({said}): mend chat_template.jinja or "
                "sampler.chat_template_kwargs"
            )
        return SamplerError(f"vLLM did not start: {said}; its last lines: {self._last_lines()}")

    def _last_lines(self) -> str:
        with suppress(OSError):
            lines = (self.folder / "log").read_text(errors="replace").splitlines()
            shown = [line.strip() for line in lines if line.strip()][-LOG_LINES:]
            return " | ".join(shown) or "none"
        return "none"
