"""Our export for browsers translates strings in Chromium."""

import json
from pathlib import Path
from typing import Any

from chromium import first, serve_folder, start
from playwright.sync_api import Page
from protocol import serve, spec

from tf_transformer.config import DecodingConfig
from tf_transformer.export import web
from tf_transformer.runs.directory import RunDirectory

given = spec()
folder = Path(given["folder"])
if not (export := folder / "web").exists():
    web.export(RunDirectory(given["run_dir"]), export, DecodingConfig(**given["search"]), quantize="int8")
texts = json.loads((folder / "texts.json").read_text())["texts"]
address = serve_folder(export)
browser = start()
TRANSLATE = """async ([texts, size, beam]) => {
  const {Translator} = await import("/translator.js");
  globalThis.translator ??= await Translator.load("/");
  translator.batch = size;
  const found = await translator.translate(texts, {beam_size: beam});
  return found.map(({translations}) => translations[0].text);
}"""


def translate_one(page: Page) -> None:
    """Translate a sentence as a reader of the page does."""
    page.goto(address)
    page.fill("#text", texts[len(texts) // 2])
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#translation')?.textContent.trim()")


page = browser.new_page()
page.goto(f"{address}README.md")


def work(batch: int = 1, batches: int = 1, beam: int = 1, is_first: bool = False) -> dict[str, Any]:
    """Translate the batches one after the other, or one sentence on a page that is opened for it."""
    if is_first:
        return first(browser, translate_one)
    return {"translations": page.evaluate(TRANSLATE, [texts[: batches * batch], batch, beam])}


serve(work)
