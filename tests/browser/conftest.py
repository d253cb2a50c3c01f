# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium without a network, and reports of a real and of a hostile store as files.

The tests are skipped where Chromium, its driver or selenium is missing.
"""

import base64
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / name) for name in ("flows", "store", "report")]

import hostile_history  # noqa: E402
import running  # noqa: E402

from store.db import Store  # noqa: E402

PATIENCE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOWHERE = "--proxy-server=127.0.0.1:9"  # any request that leaves the page fails there


class Browser:
    """What the tests do with a page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def show(
        self, file: Path, width: int = 1440, scheme: str = "light", script: bool = True
    ) -> None:
        """Open a report in a window of a width, and wait until all is drawn."""
        phone = width < 500
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone}
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        self.command("Emulation.setScriptExecutionDisabled", {"value": not script})
        self.scheme(scheme)
        self.log("browser"), self.log("performance")
        self.driver.get(file.as_uri())
        if script:
            self.wait()

    def scheme(self, name: str) -> None:
        """What the user prefers: dark or light."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.command("Emulation.setEmulatedMedia", {"features": [feature]})

    def wait(self) -> None:
        """Until every chart is drawn."""
        until = time.monotonic() + PATIENCE_S
        while self.run("return document.documentElement.dataset.drawn") != "yes":
            assert time.monotonic() < until, self.log("browser")
            time.sleep(0.05)

    def run(self, script: str, *values: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(script, *values)

    def command(self, name: str, values: dict[str, Any]) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, values)

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since the log was last read."""
        found: list[dict[str, Any]] = self.driver.get_log(kind)
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for since it was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, file: Path) -> None:
        """The whole page as a PNG."""
        size = self.command("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000)}
        values = {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
        drawn = self.command("Page.captureScreenshot", values)["data"]
        file.write_bytes(base64.b64decode(drawn))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = next((found for name in NAMES if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium with its chromedriver on the PATH")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", NOWHERE):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield Browser(started)
    started.quit()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A report of runs of a store, as a file."""
    from report.gathered import gather
    from report.html import page
    from report.pages import pages

    folder = tmp_path_factory.mktemp("pages")

    def write(store: Store, *names: str) -> Path:
        file = folder / f"{'-'.join(names)}.html"
        file.write_text(page(gather(store, names, pages(store, names)), "(now)"), encoding="utf-8")
        return file

    return write


@pytest.fixture(scope="session")
def of_a_run(tmp_path_factory: pytest.TempPathFactory, written: Callable[..., Path]) -> Path:
    """The report of the finished run."""
    return written(Store(running.finished_store(tmp_path_factory)), "try")


@pytest.fixture(scope="session")
def of_hostile_runs(tmp_path_factory: pytest.TempPathFactory, written: Callable[..., Path]) -> Path:
    """The report of two runs whose texts attack it."""
    folder = tmp_path_factory.mktemp("hostile")
    return written(hostile_history.stored(folder / "store.duckdb"), "one", "two")


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: STARLOOP_TEST_ARTEFACTS, else a temporary folder."""
    given = os.environ.get("STARLOOP_TEST_ARTEFACTS")
    folder = Path(given) if given else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
