"""Staging of datasets: `stage` does it; `source` says what a kind of place must do."""

from trainops.steps.staging.documents import form_of
from trainops.steps.staging.find import find_files
from trainops.steps.staging.source import SourceFile
from trainops.steps.staging.stage import Progress, Staged, stage_dataset

__all__ = ["Progress", "SourceFile", "Staged", "find_files", "form_of", "stage_dataset"]
