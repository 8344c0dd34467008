"""The trained model as a Hugging Face folder, loaded again from there, and a sample of what it writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from trainer.console import say
from trainer.errors import UserError
from trainer.failures import reason_of
from trainer.files import Files, join
from trainer.job import Job

SAMPLE_TOKENS = 64

DRAWS = 4
"""Samples that are drawn at most: a good model, too, may end a text at once when it is unlucky."""


def export(files: Files, job: Job, model: torch.nn.Module) -> dict[str, Any]:
    """Write the model and its tokenizer; return `generation`, what the model wrote once loaded from its files."""
    assert isinstance(model, PreTrainedModel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not files.download_folder(join(job.tokens, "tokenizer"), folder):
            raise UserError(f"{join(job.tokens, 'tokenizer')}: empty; delete the folder of tokens and tokenize again")
        # Progress bars overwrite their line, which makes noise in a log.
        quieten: Any = disable_progress_bar
        quieten()
        model.save_pretrained(folder)
        generation = _generation(folder, job)
        files.upload_folder(folder, job.model_folder)
    return generation


def _generation(folder: Path, job: Job) -> dict[str, Any]:
    """What the exported model generates; a fault of it is told, since a finished training is worth keeping."""
    found: dict[str, Any] = {"loaded": False, "tokens": 0, "characters": 0, "finite": None, "error": None, "sample": ""}
    try:
        model, tokenizer = _loaded(folder)
        found["loaded"] = True
        for draw in range(DRAWS):
            found |= _sample(model, tokenizer, job, job.config.seed + draw)
            if found["characters"] or not found["finite"]:
                break
    except Exception as error:
        # transformers and the code of each family raise what they like.
        found["error"] = reason_of(error)
        say(f"warning: the exported model does not {'generate' if found['loaded'] else 'load'}: {found['error']}")
    return found


def _loaded(folder: Path) -> tuple[Any, Any]:
    """The model and its tokenizer out of the folder, on the CPU: the GPU's memory is still the training's."""
    auto: Any = AutoModelForCausalLM
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model, loading = auto.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    if lacking := sorted(loading["missing_keys"]):
        raise UserError(f"its weights lack {len(lacking)} of the model's, {lacking[0]} among them")
    return model, tokenizer


@torch.no_grad()
def _sample(model: Any, tokenizer: Any, job: Job, seed: int) -> dict[str, Any]:
    """Continue the sample prompt: the text, and how much of it is the model's own."""
    prompt = tokenizer(job.config.sample_prompt or tokenizer.eos_token, return_tensors="pt")
    prompt = {name: prompt[name][:, -job.config.model.context // 2 :] for name in prompt}
    given = prompt["input_ids"].shape[1]
    model.eval()
    # Before drawing: from what is not finite nothing can be drawn.
    if not bool(torch.isfinite(model(input_ids=prompt["input_ids"]).logits).all()):
        return {"finite": False, "error": "its first prediction is not finite"}
    torch.manual_seed(seed)
    written = model.generate(
        **prompt,
        max_new_tokens=min(SAMPLE_TOKENS, job.config.model.context - given),
        do_sample=True,
        temperature=0.8,
        top_k=50,
        output_logits=True,
        return_dict_in_generate=True,
    )
    tokens = written.sequences[0]
    own = str(tokenizer.decode(tokens[given:], skip_special_tokens=True))
    return {
        "tokens": len(tokens) - given,
        "characters": len(own.strip()),
        "finite": all(bool(torch.isfinite(logits).all()) for logits in written.logits),
        "sample": str(tokenizer.decode(tokens, skip_special_tokens=True)),
    }
