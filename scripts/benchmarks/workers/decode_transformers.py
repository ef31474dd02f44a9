"""MarianMT of transformers translates strings with PyTorch; needs torch, transformers and sentencepiece."""

import json
from pathlib import Path

import torch
from protocol import serve, spec
from transformers import MarianMTModel, MarianTokenizer

given = spec()
torch.set_num_threads(given["threads"])
texts = json.loads((Path(given["folder"]) / "texts.json").read_text())["texts"]
tokenizer = MarianTokenizer.from_pretrained(given["model"])
model = MarianMTModel.from_pretrained(given["model"], torch_dtype=torch.float32).eval()
exactly = given["exactly"]
length = {"min_new_tokens": exactly, "max_new_tokens": exactly} if exactly else {"max_new_tokens": given["longest"]}


@torch.inference_mode()
def work(batch: int, batches: int, beam: int) -> None:
    """Translate the batches one after the other."""
    for i in range(0, batches * batch, batch):
        inputs = tokenizer(texts[i : i + batch], return_tensors="pt", padding=True)
        ids = model.generate(**inputs, **length, num_beams=beam, length_penalty=1.0, early_stopping=False)
        tokenizer.batch_decode(ids, skip_special_tokens=True)


serve(work)
