"""Import a pretrained model, and export it for greedy search and for a beam of 4."""

import dataclasses
import json
from pathlib import Path

from protocol import spec

from tf_transformer.export import saved_model
from tf_transformer.importers.opening import import_model

given = spec()
folder = Path(given["folder"])
run = import_model(given["model"], folder / "run")
for beam in (1, 4):
    search = {"beam_size": beam, "max_length": given["longest"], "max_extra_length": given["longest"]}
    if given["exactly"]:
        search |= {"min_length": given["exactly"] - 1, "max_length": given["exactly"]}
    for name, way in given["ways"].items():
        decoding = dataclasses.replace(run.config.decoding, **search, **way)
        saved_model.export(run, folder / f"{name} {beam}", decoding)
sentences = Path(given["sentences"]).read_text("utf-8").splitlines()[: given["count"]]
(folder / "texts.json").write_text(json.dumps({"texts": sorted(sentences, key=len)}))
print(json.dumps({}))
