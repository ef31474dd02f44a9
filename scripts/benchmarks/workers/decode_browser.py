"""Our export for browsers translates strings in Chromium."""

import functools
import http.server
import json
import shutil
import threading
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from protocol import serve, spec

from tf_transformer.config import DecodingConfig
from tf_transformer.export import web
from tf_transformer.runs.directory import RunDirectory

given = spec()
folder = Path(given["folder"])
if not (export := folder / "web").exists():
    web.export(RunDirectory(given["run_dir"]), export, DecodingConfig(**given["search"]), quantize="int8")
texts = json.loads((folder / "texts.json").read_text())["texts"]


class Handler(http.server.SimpleHTTPRequestHandler):
    """A plain web server that says nothing."""

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=export))
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/"
chromium = sync_playwright().start().chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
TRANSLATE = """async ([texts, size, beam]) => {
  const {Translator} = await import("/translator.js");
  globalThis.translator ??= await Translator.load("/");
  translator.batch = size;
  const found = await translator.translate(texts, {beam_size: beam});
  return found.map(({translations}) => translations[0].text);
}"""


def first(text: str) -> dict[str, float]:
    """Return the seconds from the address to a translation: of a browser that has no file, and of one that has all."""
    context, took = chromium.new_context(), []
    for _ in range(3):  # the service worker keeps what is asked for after the first time
        page, start = context.new_page(), time.perf_counter()
        page.goto(address)
        page.fill("#text", text)
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('#translation')?.textContent.trim()")
        took.append(time.perf_counter() - start)
        page.evaluate("navigator.serviceWorker.ready.then(() => {})")
        page.close()
    context.close()
    return {"empty": took[0], "kept": took[2]}


page = chromium.new_page()
page.goto(f"{address}README.md")


def work(batch: int = 1, batches: int = 1, beam: int = 1, is_first: bool = False) -> dict[str, float] | None:
    """Translate the batches one after the other, or one sentence on a page that is opened for it."""
    if is_first:
        return first(texts[len(texts) // 2])
    page.evaluate(TRANSLATE, [texts[: batches * batch], batch, beam])
    return None


serve(work)
