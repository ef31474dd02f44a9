"""MarianMT of transformers.js translates strings in Chromium, by ONNX Runtime in WebAssembly, from 8-bit weights."""

import json
import os
from pathlib import Path
from typing import Any

from chromium import first, serve_folder, start
from playwright.sync_api import Page
from protocol import serve, spec

given = spec()
folder = Path(given["folder"])
texts = json.loads((folder / "texts.json").read_text())["texts"]
site = folder / "transformers_js"
os.symlink(Path(given["packages"], "node_modules").resolve(), site / "node_modules")
(site / "index.html").write_text("<!doctype html><title>transformers.js</title>")
address = serve_folder(site)
browser = start()
# The build of ONNX Runtime that transformers.js takes by itself, which it would fetch from elsewhere.
TRANSLATE = """async ([texts, size, longest]) => {
  globalThis.translator ??= await (async () => {
    const {env, pipeline} = await import("/node_modules/@huggingface/transformers/dist/transformers.min.js");
    Object.assign(env, {allowRemoteModels: false, allowLocalModels: true, localModelPath: "/"});
    const runtime = `${location.origin}/node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify`;
    Object.assign(env.backends.onnx.wasm, {wasmPaths: {mjs: `${runtime}.mjs`, wasm: `${runtime}.wasm`}, numThreads: 1});
    return pipeline("translation", "model", {dtype: "q8", device: "wasm"});
  })();
  const found = [];
  for (let i = 0; i < texts.length; i += size) {
    found.push(...(await translator(texts.slice(i, i + size), {num_beams: 1, max_new_tokens: longest})));
  }
  return found.map((one) => one.translation_text);
}"""


def translate(page: Page, wanted: list[str], batch: int) -> list[str]:
    """Return translations, found by greedy search: transformers.js has no other."""
    return page.evaluate(TRANSLATE, [wanted, batch, given["longest"]])


def translate_one(page: Page) -> None:
    """Translate a sentence on a page that loads what it needs."""
    page.goto(address)
    translate(page, texts[len(texts) // 2 :][:1], 1)


page = browser.new_page()
page.goto(address)


def work(batch: int = 1, batches: int = 1, beam: int = 1, is_first: bool = False) -> dict[str, Any]:
    """Translate the batches one after the other, or one sentence on a page that is opened for it."""
    if is_first:
        return first(browser, translate_one)
    return {"translations": translate(page, texts[: batches * batch], batch)}


serve(work)
