# SPDX-License-Identifier: Apache-2.0
"""An asynchronous job behind an ordinary iterator."""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def drive(job: Callable[[Callable[[T], None]], Awaitable[None]]) -> Iterator[T]:
    """Yield what an asynchronous job puts, as it puts it; the job runs in a thread of its own.

    The thread is gone when the iterator ends, is closed, or is left by an error or by Ctrl-C.
    """
    items: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
    failed: list[BaseException] = []
    loop = asyncio.new_event_loop()

    async def work() -> None:
        await job(lambda item: items.put((item,)))

    task = loop.create_task(work())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except BaseException as error:  # told to the reader of the items
            failed.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            items.put(None)

    thread = Thread(target=run, name="starloop-http", daemon=True)
    thread.start()
    try:
        while (item := items.get()) is not None:
            yield item[0]
    finally:
        with suppress(RuntimeError):  # the loop is closed: nothing is left to cancel
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
    if failed:
        raise failed[0]
