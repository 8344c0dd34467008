"""The README.md of a model version: what it is, what it was made of, how good it is; the same for the same version."""

from __future__ import annotations

from trainops.config.plan import RunPlan
from trainops.steps.lineage import Lineage
from trainops.steps.outcome import ChampionEvaluation, Generation, Outcome


def model_card(plan: RunPlan, outcome: Outcome, version: str) -> str:
    """Return the card as Markdown, with the front matter that Hugging Face reads."""
    result, lineage = outcome.result, outcome.lineage
    model = plan.promotion.model
    sections = [
        f"---\nlibrary_name: transformers\npipeline_tag: text-generation\nmodel_name: {model}\n---",
        f"# {model}, version {version}",
        f"Trained by the experiment `{plan.experiment}` on data of {plan.data_date}. Owner: {plan.owner}.",
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'model = AutoModelForCausalLM.from_pretrained(".")\n'
        'tokenizer = AutoTokenizer.from_pretrained(".")\n```',
        "## Figures\n\n"
        + _table({
            "Evaluation loss (nats per token)": f"{result.eval_loss:.4f}",
            "Evaluation loss before training": _figure(result.eval_loss_before),
            "Unigram entropy of the held-out text": f"{result.unigram_entropy:.4f}",
            "Held-out tokens evaluated": f"{result.eval_tokens}",
            "Bytes of text per token": _figure(outcome.bytes_per_token),
            "Parameters": f"{result.parameters}",
            "Steps": f"{result.step}",
            "Tokens trained on": f"{result.tokens}",
            "Tokens per second": f"{result.tokens_per_second:.0f}",
            "Training time (seconds)": f"{result.train_seconds:.0f}",
            "Replicas": f"{result.replicas}",
            **_champion(result.champion),
            **_generation(result.generation),
        }),
        "## Data\n\n"
        + _table({
            "Dataset": plan.dataset.name,
            "Description": plan.dataset.description,
            "Data date": f"{plan.data_date}",
            "Content hash": lineage.dataset_sha16 or "not recorded",
            "Tokens": lineage.tokens or "not recorded",
        }),
        "## Configuration\n\n```json\n" + plan.trainer.model_dump_json(indent=2) + "\n```",
        "## Lineage\n\n"
        + _table({
            "Run": outcome.run_key,
            "Generation": f"{outcome.generation}",
            "Plan": lineage.plan,
            "Went on from": _base(lineage),
            "Trainer": ", ".join(lineage.packages) or "not recorded",
            "Image": lineage.image or "not recorded",
            "Jobs": ", ".join(lineage.jobs) or "not recorded",
            "Attempts": f"{lineage.attempts}" if lineage.attempts else "not recorded",
        }),
        "## Sample\n\n" + _quoted(result.sample),
    ]
    return "\n\n".join(sections) + "\n"


def _base(lineage: Lineage) -> str:
    if lineage.base_model is None:
        return "nothing: random weights"
    asked = lineage.base_model_asked
    return f"{lineage.base_model}, then {asked}" if asked else lineage.base_model


def _champion(found: ChampionEvaluation | None) -> dict[str, str]:
    """Rows about the model that this one had to beat; none of older results, whose card stays as it was."""
    if found is None:
        return {}
    if found.error or found.eval_loss is None:
        return {f"Champion {found.version} on the same held-out text": f"not evaluated: {found.error}"}
    if found.loss_per_byte is not None:
        against = f"{_figure(found.loss_per_byte)}, this one {_figure(found.own_loss_per_byte)}"
        return {f"Champion {found.version} on the same held-out text (nats per byte)": against}
    return {f"Champion {found.version} on the same held-out text (nats per token)": _figure(found.eval_loss)}


def _generation(found: Generation | None) -> dict[str, str]:
    if found is None:
        return {}
    wrote = f"{found.tokens} tokens, {found.characters} characters"
    return {"Loaded from its files, it generated": found.error or wrote}


def _table(rows: dict[str, str]) -> str:
    lines = [f"| {name} | {_cell(value)} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")


def _quoted(text: str) -> str:
    # Indented, not fenced: a model may well generate a fence.
    return "\n".join(f"    {line}" for line in text.splitlines()) or "None."


def _figure(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.4f}"
