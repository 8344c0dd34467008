"""The trained model as a Hugging Face folder, and a sample of what it writes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from trainer.errors import UserError
from trainer.files import Files, join
from trainer.job import Job

SAMPLE_TOKENS = 64


def export(files: Files, job: Job, model: torch.nn.Module) -> str:
    """Write the model and its tokenizer; return the model's continuation of the sample prompt."""
    assert isinstance(model, PreTrainedModel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if not files.download_folder(join(job.tokens, "tokenizer"), folder):
            raise UserError(f"{join(job.tokens, 'tokenizer')}: empty; delete the folder of tokens and tokenize again")
        # Progress bars overwrite their line, which makes noise in a log.
        quieten: Any = disable_progress_bar
        quieten()
        model.save_pretrained(folder)
        text = _sample(model, folder, job)
        files.upload_folder(folder, job.model_folder)
    return text


@torch.no_grad()
def _sample(model: Any, folder: Path, job: Job) -> str:
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer(job.config.sample_prompt or tokenizer.eos_token, return_tensors="pt")
    prompt = {name: prompt[name][:, -job.config.model.context // 2 :].to(model.device) for name in prompt}
    room = job.config.model.context - prompt["input_ids"].shape[1]
    model.eval()
    torch.manual_seed(job.config.seed)
    tokens = model.generate(
        **prompt, max_new_tokens=min(SAMPLE_TOKENS, room), do_sample=True, temperature=0.8, top_k=50
    )
    return str(tokenizer.decode(tokens[0], skip_special_tokens=True))
