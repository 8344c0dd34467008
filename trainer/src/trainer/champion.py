"""The champion: the promoted model that this training has to beat, evaluated on the same held-out text.

Losses per token compare models of one tokenizer. Another tokenizer cuts other tokens, so its champion gets the text
itself, decoded from the held-out tokens, and both losses are told per byte of it.
"""

from __future__ import annotations

import math
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer.console import say
from trainer.data import HeldOutWindows
from trainer.errors import UserError
from trainer.evaluation import FULL_WINDOWS, evaluate
from trainer.failures import reason_of
from trainer.files import Files, join
from trainer.job import Job
from trainer.pretrained import difference, read_model, room_of
from trainer.replicas import Replicas
from trainer.shards import Tokens, read_mask, read_tokens
from trainer.vocabulary import download_model, load_tokenizer

KEY = "champion"
"""Key of the plan that names it."""


@dataclass(frozen=True)
class _Text:
    """The held-out text that the candidate was evaluated on, in tokens of the champion's."""

    tokens: Tokens
    own: int
    """As many of the candidate's tokens is it."""
    size: int
    """As many bytes is it."""


def evaluate_champion(
    files: Files, job: Job, device: torch.device, eval_loss: float, precision: AbstractContextManager[Any]
) -> dict[str, Any] | None:
    """Evaluate the champion as the trained model was; None when there is none, or its own loss is of these tokens.

    What keeps it from being evaluated ends no training: it is told under `error`.

    :param eval_loss: the trained model's, in nats per token.
    :param precision: what the trained model was evaluated in.
    """
    champion = job.champion
    if champion is None or (champion.heldout or "").rstrip("/") == job.tokens:
        return None
    found: dict[str, Any] = {"version": champion.version, "uri": champion.uri, "tokens": job.tokens}
    found |= dict.fromkeys(("eval_loss", "eval_tokens", "loss_per_byte", "own_loss_per_byte", "error"))
    try:
        with precision:
            found |= _evaluated(files, job, device, eval_loss, champion.uri)
    except Exception as error:
        # Its folder is another training's, and may hold whatever transformers cannot read or this GPU cannot hold.
        found["error"] = reason_of(error)
        say(f"warning: the champion {champion.version} was not evaluated: {found['error']}")
    else:
        say(f"the champion {champion.version} has evaluation loss {found['eval_loss']:.3f} on the same held-out text")
    return found


def _evaluated(files: Files, job: Job, device: torch.device, eval_loss: float, uri: str) -> dict[str, Any]:
    heldout = read_tokens(files, job.tokens, job.manifest, "heldout")
    mask = read_mask(files, job.tokens, job.manifest, "heldout")
    ours, theirs = load_tokenizer(files, join(job.tokens, "tokenizer"), "--tokens"), load_tokenizer(files, uri, KEY)
    if not difference(ours, theirs):
        windows = HeldOutWindows(heldout, job.config.model.context, mask)
        loss, tokens = _loss(files, job, device, uri, windows, FULL_WINDOWS)
        return {"eval_loss": loss, "eval_tokens": tokens}
    if mask is not None:
        raise UserError(
            f"the tokenizer of {uri} is another, and the text of pairs cannot be cut anew from their tokens"
        )
    text = _recut(heldout, job, ours, theirs)
    windows = HeldOutWindows(text.tokens, job.config.model.context)
    loss, tokens = _loss(files, job, device, uri, windows, windows.count)
    return {
        "eval_loss": loss,
        "eval_tokens": tokens,
        "loss_per_byte": loss * (len(text.tokens) - 1) / text.size,
        "own_loss_per_byte": eval_loss * text.own / text.size,
    }


def _recut(heldout: Tokens, job: Job, ours: Any, theirs: Any) -> _Text:
    """Cut the text of the windows that the trained model was evaluated on with the champion's tokenizer."""
    context = job.config.model.context
    own = min(HeldOutWindows(heldout, context).count, FULL_WINDOWS) * context
    span = heldout[: own + 1].astype(np.int64)
    documents = np.split(span, np.flatnonzero(span == job.manifest["end_of_text"]) + 1)
    # Without its end-of-text token, which only the last document, cut off by the last window, may lack.
    texts = [
        ours.decode(part[part != job.manifest["end_of_text"]].tolist(), clean_up_tokenization_spaces=False)
        for part in documents
    ]
    encoded = theirs.backend_tokenizer.encode_batch(texts, add_special_tokens=False)
    cut: list[int] = []
    for place, encoding in enumerate(encoded):
        cut += encoding.ids + ([theirs.eos_token_id] if place < len(encoded) - 1 else [])
    return _Text(np.array(cut, dtype=np.uint32), own, sum(len(text.encode()) for text in texts))


def _loss(
    files: Files, job: Job, device: torch.device, uri: str, windows: HeldOutWindows, count: int
) -> tuple[float, int]:
    with tempfile.TemporaryDirectory() as temporary:
        download_model(files, uri, Path(temporary), KEY, needed="config.json")
        model = read_model(temporary, uri, KEY)
    context, most = job.config.model.context, room_of(model)
    if most is not None and context > most:
        raise UserError(f"{uri} takes at most {most} tokens, and the held-out windows have {context}")
    # Alone: the other replicas end while this one exports the model, and a collective evaluation would need them.
    alone = Replicas(0, 1, device)
    loss, tokens = evaluate(model.to(device), windows, alone, count=count, batch_size=job.config.batch_size)
    if not math.isfinite(loss):
        raise UserError(f"the evaluation loss of {uri} is {loss}")
    return loss, tokens
