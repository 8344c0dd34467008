"""What models write after prompts, without chance: the most likely token each time. Runs where torch is.

Usage: continue_prompts.py FOLDER... < PROMPTS. FOLDER is a Hugging Face folder, PROMPTS a JSON list of texts. Prints a
JSON list for each folder, of the first line that it writes after each prompt.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

TOKENS = 32


def continued(folder: Path, prompts: list[str]) -> list[str]:
    """Return the first line that the model of a folder writes after each prompt."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    lines = []
    for prompt in prompts:
        given = tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            tokens = model.generate(**given, max_new_tokens=TOKENS, do_sample=False)
        new = tokens[0, given["input_ids"].shape[1] :]
        lines.append(tokenizer.decode(new, skip_special_tokens=True).split("\n")[0].strip())
    return lines


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps([continued(Path(folder), asked) for folder in sys.argv[1:]]))
