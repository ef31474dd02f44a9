"""A folder behind a plain web server, and Chromium to open it."""

import functools
import http.server
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright


class Handler(http.server.SimpleHTTPRequestHandler):
    """A web server that says nothing."""

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


def serve_folder(folder: Path) -> str:
    """Serve a folder from a thread, and return its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def start() -> Browser:
    """Start Chromium without a window."""
    chromium = sync_playwright().start().chromium
    return chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])


def first(browser: Browser, translate: Callable[[Page], object]) -> dict[str, float]:
    """Return the seconds that a new page takes to translate: in a browser that has no file, and in one that has all."""
    context, took = browser.new_context(), []
    for _ in range(3):  # a service worker keeps what is asked for after the first time
        page, begin = context.new_page(), time.perf_counter()
        translate(page)
        took.append(time.perf_counter() - begin)
        page.evaluate(
            "navigator.serviceWorker.getRegistration().then((found) => found && navigator.serviceWorker.ready)"
        )
        page.close()
    context.close()
    return {"empty": took[0], "kept": took[2]}
