"""What becomes of every field of a TrainingInput: the table behind the notes, the refusals and the reference page.

Source of the fields: discovery document of ml.googleapis.com v1, revision 20251213; of the targets: the message types
of google-cloud-aiplatform (CustomJob, HyperparameterTuningJob, StudySpec).
"""

from __future__ import annotations

from typing import NamedTuple

from trainops.jobspec.notes import Verdict


class FieldRow(NamedTuple):
    """One field.

    :param targets: where it goes in the CustomJob, or in the HyperparameterTuningJob; empty when it is never sent.
    :param verdicts: what a note may say of it; empty when every value is refused.
    :param text: what becomes of it, and why.
    :param refused: when it is refused, and what to do instead; empty when its values are never refused.
    """

    targets: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    text: str
    refused: str = ""


_POOL = "jobSpec.workerPoolSpecs[]"
_MACHINE = f"{_POOL}.machineSpec.machineType"
_GPU = f"{_POOL}.machineSpec.acceleratorType"
_GPUS = f"{_POOL}.machineSpec.acceleratorCount"
_EXECUTOR = f"{_POOL}.pythonPackageSpec.executorImageUri"
_PACKAGE = f"{_POOL}.pythonPackageSpec"
_CONTAINER = f"{_POOL}.containerSpec"
_STUDY = "studySpec.parameters[]"

_TYPE = "A legacy name becomes the Compute Engine machine that it was, with its GPUs; a retired one has a substitute."
_TYPE_REFUSED = (
    "Missing in a pool with replicas, no machine, or beside a fixed tier: name one of the machines below, under "
    "CUSTOM. Retired, under `substitute: refuse`: write the substitute yourself."
)
_CONFIG_REFUSED = "A fixed tier has no such pool: leave it out, or set scaleTier to CUSTOM."


def _type_row(position: int, who: str) -> FieldRow:
    text = f"Machine of the {who}, pool {position}. {_TYPE}"
    return FieldRow((_MACHINE, _GPU), ("mapped", "defaulted", "changed"), text, _TYPE_REFUSED)


def _count_row(position: int, who: str) -> FieldRow:
    return FieldRow(
        (f"{_POOL}.replicaCount",),
        ("mapped",),
        f"Replicas of pool {position}, the {who}; 0 leaves the pool out, and `{{}}` keeps its place.",
        "Below 0, beside a fixed tier (set CUSTOM), or more than 1 TPU (take a larger TPU).",
    )


def _config_row(who: str) -> FieldRow:
    text = f"Accelerators, image, command and disk of the {who}: see ReplicaConfig."
    return FieldRow((_POOL,), ("mapped", "changed"), text, _CONFIG_REFUSED)


FIELDS: dict[str, dict[str, FieldRow]] = {
    "TrainingInput": {
        "scaleTier": FieldRow(
            (_POOL,),
            ("mapped", "defaulted", "changed"),
            "A fixed tier becomes its pools, as listed below; CUSTOM reads types and counts. Absent: CUSTOM when one "
            "of these is given, else BASIC.",
            "Retired parts, under `substitute: refuse`: set CUSTOM and choose the machines.",
        ),
        "masterType": _type_row(0, "master"),
        "masterConfig": FieldRow(
            (_POOL,),
            ("mapped",),
            "Accelerators, image, command and disk of the master: see ReplicaConfig.",
        ),
        "workerType": _type_row(1, "workers"),
        "workerConfig": _config_row("workers"),
        "workerCount": _count_row(1, "workers"),
        "parameterServerType": _type_row(2, "parameter servers"),
        "parameterServerConfig": _config_row("parameter servers"),
        "parameterServerCount": _count_row(2, "parameter servers"),
        "evaluatorType": _type_row(3, "evaluators"),
        "evaluatorConfig": _config_row("evaluators"),
        "evaluatorCount": _count_row(3, "evaluators"),
        "packageUris": FieldRow(
            (f"{_PACKAGE}.packageUris", f"{_CONTAINER}.command"),
            ("mapped", "changed"),
            "Installed in every replica: by Vertex AI on its prebuilt images, on others by the container's command. "
            "Empty beside a container: not sent.",
            "Missing without an image, beside a container without pythonModule, more than 100, or no gs:// URI of a "
            ".tar.gz or .whl: build it with `python -m build` and copy it to a bucket.",
        ),
        "pythonModule": FieldRow(
            (f"{_PACKAGE}.pythonModule", f"{_CONTAINER}.command"),
            ("mapped",),
            "Run in every replica, after the packages are installed.",
            "Empty, or missing without an image: add it to the job. Beside a container without packageUris: give both "
            "or neither.",
        ),
        "args": FieldRow(
            (f"{_PACKAGE}.args", f"{_CONTAINER}.args"),
            ("mapped",),
            "The same for every replica; `--job-dir` is put last.",
            "Beside containerCommand or containerArgs (move them into containerArgs), or more than 100,000 characters "
            "(write them to a file in the bucket, and pass its URI).",
        ),
        "hyperparameters": FieldRow(
            ("studySpec",),
            (),
            "A HyperparameterTuningJob, of which the CustomJob's jobSpec is the trialJobSpec: see HyperparameterSpec.",
            "For a CustomJob, which has no trials; tuning jobs are translated, and not run yet: pass one value of each "
            "in args, one job per trial.",
        ),
        "region": FieldRow(
            (),
            ("mapped",),
            "The region that the job is sent to; not part of the job.",
            "Missing, a zone, or no name: write one like us-central1.",
        ),
        "jobDir": FieldRow(
            ("jobSpec.baseOutputDirectory.outputUriPrefix",),
            ("mapped", "changed"),
            "Also passed as `--job-dir`, unless args hold one. Trials of a tuning job all get the same one, where AI "
            "Platform gave each its own: use AIP_MODEL_DIR there.",
            "No folder of a bucket, or a placeholder (names of buckets have no capitals): write it like "
            "gs://my-bucket/folder.",
        ),
        "runtimeVersion": FieldRow(
            (_EXECUTOR, f"{_CONTAINER}.imageUri"),
            ("mapped", "defaulted", "changed"),
            "Chooses the prebuilt image of its TensorFlow, for CPU, GPU or TPU; the environment's image goes before "
            "it.",
            "No image has it, or masterConfig.imageUri stands beside it: choose a version of the table below, or set "
            "an image.",
        ),
        "pythonVersion": FieldRow(
            (_EXECUTOR, f"{_CONTAINER}.imageUri"),
            ("mapped", "defaulted", "changed"),
            "Chooses among the images of the runtime version; 3.7 where there is one when absent, which runtimes "
            "before 1.15 had not. Not sent with an image.",
            "No image of the runtime version has it: choose one of the table below, or set an image.",
        ),
        "encryptionConfig": FieldRow(("encryptionSpec",), ("mapped",), "See EncryptionConfig."),
        "scheduling": FieldRow(("jobSpec.scheduling",), ("mapped",), "See Scheduling."),
        "network": FieldRow(
            ("jobSpec.network",),
            ("mapped",),
            "Sent as it is.",
            "Not projects/NUMBER/global/networks/NAME: write it so; or it differs from vertex.network: keep one.",
        ),
        "serviceAccount": FieldRow(
            ("jobSpec.serviceAccount",),
            ("mapped", "defaulted"),
            "Sent as it is; absent: the environment's, when it has one.",
            "No email address: write it so; or it differs from vertex.serviceAccount: keep one.",
        ),
        "useChiefInTfConfig": FieldRow(
            (),
            ("mapped", "changed"),
            "Never sent: TF_CONFIG of Vertex AI always says chief. `false` is noted as changed: a program that looks "
            "for master must look for chief.",
        ),
        "enableWebAccess": FieldRow(
            ("jobSpec.enableWebAccess",),
            ("mapped",),
            "Sent as it is.",
            "It differs from vertex.enableWebAccess: keep one.",
        ),
        "vertex": FieldRow(
            ("jobSpec", "labels", "encryptionSpec"),
            ("mapped", "defaulted", "changed"),
            "Not of AI Platform: what only Vertex AI has, listed below.",
            "A value that Vertex AI would refuse: the error says which.",
        ),
        "job": FieldRow(
            ("displayName", "labels"),
            ("mapped", "changed"),
            "Not of AI Platform's TrainingInput: what stood around it in a body of projects.jobs. Labels are sent; "
            "jobId gives way to the display name; the rest is not sent. A label with a name of Trainops' own is kept "
            "as `user-NAME`.",
            "A prediction job: give one with trainingInput. Labels that Google refuses: write them in lowercase.",
        ),
    },
    "ReplicaConfig": {
        "acceleratorConfig": FieldRow(
            (_GPU,),
            ("mapped", "changed"),
            "See AcceleratorConfig. Empty: no accelerator.",
            "In a fixed tier (set CUSTOM), or on a machine that brings others along (leave it out). Retired, under "
            "`substitute: refuse`: write the substitute yourself.",
        ),
        "imageUri": FieldRow(
            (f"{_CONTAINER}.imageUri", _EXECUTOR),
            ("mapped", "changed"),
            "The container; the master's when absent. With packages or a module, one of Vertex AI's prebuilt images is "
            "the executor image, and any other a container that installs them itself. AI Platform's own prebuilt "
            "images become Vertex AI's.",
            "No name of an image (capitals before the tag), or a prebuilt image that cannot use the pool's machines: "
            "name one that can. AI Platform's own prebuilt image, under `substitute: refuse`: write Vertex AI's.",
        ),
        "containerCommand": FieldRow(
            (f"{_CONTAINER}.command",),
            ("mapped", "changed"),
            "Sent as it is; not to Reduction Server, which has its own.",
            "With packages or a module: leave these out.",
        ),
        "containerArgs": FieldRow(
            (f"{_CONTAINER}.args",),
            ("mapped", "changed"),
            "Sent, with `--job-dir` put last; not to Reduction Server, which has its own.",
            "With packages or a module, or more than 100,000 characters: leave these out, or write them to a file.",
        ),
        "diskConfig": FieldRow((f"{_POOL}.diskSpec",), ("mapped",), "See DiskConfig. Empty: 100 GB of pd-ssd."),
        "tpuTfVersion": FieldRow(
            (),
            ("changed",),
            "Not sent: the program runs on the TPU VM, with the TensorFlow of its image.",
            "In a pool without a TPU, or without a custom image: leave it out.",
        ),
    },
    "AcceleratorConfig": {
        "count": FieldRow(
            (_GPUS,),
            ("mapped", "changed"),
            "Accelerators of each machine.",
            "Below 1, missing, or not among the counts of the machine: see the machines below.",
        ),
        "type": FieldRow(
            (_GPU,),
            ("mapped", "changed"),
            "Sent by the same name. Retired ones have a substitute, as listed below; TPU_V2_POD is TPU_V2 with its "
            "count.",
            "No accelerator of Vertex AI, or not for this machine: see the machines below.",
        ),
    },
    "DiskConfig": {
        "bootDiskSizeGb": FieldRow(
            (f"{_POOL}.diskSpec.bootDiskSizeGb",),
            ("mapped",),
            "Sent as it is.",
            "Not 100 to 64000 GB: choose a size between.",
        ),
        "bootDiskType": FieldRow(
            (f"{_POOL}.diskSpec.bootDiskType",),
            ("mapped",),
            "Sent as it is.",
            "Not pd-ssd, pd-standard or hyperdisk-balanced, or the machine does not take it: choose one that it takes.",
        ),
    },
    "Scheduling": {
        "maxRunningTime": FieldRow(
            ("jobSpec.scheduling.timeout",),
            ("mapped", "defaulted"),
            "Sent as it is; absent: 7 days, on Vertex AI as on AI Platform.",
            "0s, or longer than Vertex AI allows, which is 604800s with FLEX_START: choose a shorter time.",
        ),
        "maxWaitTime": FieldRow(
            ("jobSpec.scheduling.maxWaitDuration",),
            ("mapped", "changed"),
            "Sent with FLEX_START; Vertex AI has no such limit for other jobs, and then it is not sent: the GPU queue "
            "limits their wait.",
            "Below 1800s: wait longer, or leave it out.",
        ),
        "priority": FieldRow(
            (),
            ("changed",),
            "Not sent: Vertex AI has no priority; the GPU queue has one.",
            "Not 0 to 1000: choose one between.",
        ),
    },
    "EncryptionConfig": {
        "kmsKeyName": FieldRow(
            ("encryptionSpec.kmsKeyName",),
            ("mapped",),
            "Sent as it is.",
            "Not projects/P/locations/L/keyRings/R/cryptoKeys/K: write it so; or it differs from vertex.kmsKeyName: "
            "keep one.",
        ),
    },
    "HyperparameterSpec": {
        "goal": FieldRow(
            ("studySpec.metrics[].goal",), ("mapped", "defaulted"), "MAXIMIZE when absent or GOAL_TYPE_UNSPECIFIED."
        ),
        "params": FieldRow(
            (_STUDY,),
            ("mapped",),
            "See ParameterSpec. Each trial gets them as --NAME=VALUE, as on AI Platform.",
            "None, or one that stands twice: give each once.",
        ),
        "maxTrials": FieldRow(
            ("maxTrialCount",), ("mapped", "defaulted"), "1 when absent.", "Below 1: give the number of trials."
        ),
        "maxParallelTrials": FieldRow(
            ("parallelTrialCount",),
            ("mapped", "defaulted"),
            "1 when absent; never more than maxTrials.",
            "Below 1: give the number at one time.",
        ),
        "maxFailedTrials": FieldRow(
            ("maxFailedTrialCount",),
            ("mapped",),
            "Sent as it is; 0 is not sent: Vertex AI decides, as AI Platform did.",
            "Below 0: 0 leaves it to Vertex AI.",
        ),
        "hyperparameterMetricTag": FieldRow(
            ("studySpec.metrics[].metricId",),
            ("changed", "defaulted"),
            "training/hptuning/metric when absent. Vertex AI reads it from the package cloudml-hypertune, not from "
            "TensorFlow's summaries.",
            "With spaces: rename it, in the program too.",
        ),
        "resumePreviousJobId": FieldRow(
            (),
            (),
            "Vertex AI cannot go on with an earlier tuning job.",
            "Always: leave it out, and narrow params to the ranges that did well in the earlier job.",
        ),
        "enableTrialEarlyStopping": FieldRow(
            ("studySpec.medianAutomatedStoppingSpec",),
            ("mapped", "changed"),
            "True is the median rule, where AI Platform chose its rule itself; false is not sent.",
        ),
        "algorithm": FieldRow(
            ("studySpec.algorithm",),
            ("mapped", "defaulted"),
            "Absent or ALGORITHM_UNSPECIFIED is not sent: Vertex AI's own, Bayesian as AI Platform's was.",
            "GRID_SEARCH with a DOUBLE parameter: give that as DISCRETE, or take RANDOM_SEARCH.",
        ),
    },
    "ParameterSpec": {
        "parameterName": FieldRow(
            (f"{_STUDY}.parameterId",), ("mapped",), "Sent as it is.", "Missing, or with spaces: name the argument."
        ),
        "type": FieldRow(
            (
                f"{_STUDY}.doubleValueSpec",
                f"{_STUDY}.integerValueSpec",
                f"{_STUDY}.categoricalValueSpec",
                f"{_STUDY}.discreteValueSpec",
            ),
            ("mapped",),
            "Says which of these holds the values.",
            "Missing, or PARAMETER_TYPE_UNSPECIFIED: choose one of the four.",
        ),
        "minValue": FieldRow(
            (f"{_STUDY}.doubleValueSpec.minValue", f"{_STUDY}.integerValueSpec.minValue"),
            ("mapped", "changed"),
            "Of CATEGORICAL and DISCRETE: not sent.",
            "Missing, or no whole number for INTEGER: give one.",
        ),
        "maxValue": FieldRow(
            (f"{_STUDY}.doubleValueSpec.maxValue", f"{_STUDY}.integerValueSpec.maxValue"),
            ("mapped", "changed"),
            "Of CATEGORICAL and DISCRETE: not sent.",
            "Missing, less than minValue, or no whole number for INTEGER: give one.",
        ),
        "categoricalValues": FieldRow(
            (f"{_STUDY}.categoricalValueSpec.values",),
            ("mapped", "changed"),
            "Of other types: not sent.",
            "Missing or empty for CATEGORICAL: list them.",
        ),
        "discreteValues": FieldRow(
            (f"{_STUDY}.discreteValueSpec.values",),
            ("mapped", "changed"),
            "Of other types: not sent.",
            "Missing or empty for DISCRETE, more than 1000, or not increasing: list them in order.",
        ),
        "scaleType": FieldRow(
            (f"{_STUDY}.scaleType",),
            ("mapped", "changed"),
            "NONE is not sent, which means the same; nor is any for CATEGORICAL, which has no scale.",
            "A logarithmic scale of values that are not above 0: raise the least, or write UNIT_LINEAR_SCALE.",
        ),
    },
}
"""Message -> field, in REST spelling -> its row."""
