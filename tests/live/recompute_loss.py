"""Recompute a promoted model's evaluation loss from its files and the held-out tokens alone; torch is needed.

Usage: recompute_loss.py FOLDER, with FOLDER/model and FOLDER/tokens. Prints one line of JSON.
"""

import json
import sys
from pathlib import Path

import numpy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

LONGEST = 512
folder = Path(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(folder / "model")
model.train(False)
tokenizer = AutoTokenizer.from_pretrained(folder / "model")
manifest = json.loads((folder / "tokens" / "manifest.json").read_text())
shards = [
    numpy.fromfile(folder / "tokens" / shard["name"], manifest["dtype"]) for shard in manifest["heldout"]["shards"]
]
tokens = torch.from_numpy(numpy.concatenate(shards).astype(numpy.int64))
context = model.config.max_position_embeddings
windows = min((len(tokens) - 1) // context, LONGEST)
total = 0.0
with torch.no_grad():
    for start in range(0, windows * context, context):
        window = tokens[start : start + context + 1]
        logits = model(window[None, :-1]).logits[0].float()
        total += torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum").item()
    prompt = tokenizer("Page", return_tensors="pt")
    text = tokenizer.decode(model.generate(**prompt, max_new_tokens=8, do_sample=False)[0])
print(json.dumps({"loss": total / (windows * context), "text": text}))
