"""Rules for what concerns no single worker pool."""

from __future__ import annotations

from tests.localcloud.vertex.rules.changes import GONE, KMS, LABEL_RULE, REQUIRED, Bad, Rule, labels

RULES: tuple[Rule, ...] = (
    Rule(
        "CustomJob.displayName",
        "required; up to 128 UTF-8 characters",
        bad=(
            Bad({"displayName": GONE}, "display_name", REQUIRED),
            Bad({"displayName": ""}, "display_name", REQUIRED),
            Bad({"displayName": "é" * 129}, "display_name", "at most 128 characters"),
        ),
        good=({"displayName": "é" * 128}, {"displayName": "x"}),
    ),
    Rule("CustomJob.jobSpec", "required", bad=(Bad({"jobSpec": GONE}, "job_spec", REQUIRED),), good=({},)),
    Rule(
        "CustomJob.labels",
        "keys and values up to 64 codepoints; lowercase letters, digits, _ and -; international characters allowed "
        "(another resource of the same API also says at most 64 labels)",
        bad=(
            Bad({"labels": {"k" * 65: "v"}}, "labels", LABEL_RULE),
            Bad(labels(k="ж" * 65), "labels", "at most 64 characters"),
            Bad(labels(Key="v"), "labels", 'Label key "Key" is invalid'),
            Bad(labels(k="V"), "labels", 'Label value "V" of key "k" is invalid'),
            Bad(labels(k="a b"), "labels", LABEL_RULE),
            Bad({"labels": {"a.b": "v"}}, "labels", LABEL_RULE),
            Bad({"labels": {"": "v"}}, "labels", LABEL_RULE),
            Bad({"labels": {"1": "v"}}, "labels", LABEL_RULE),
            Bad({"labels": {"_k": "v"}}, "labels", LABEL_RULE),
            Bad(labels(k="😀"), "labels", LABEL_RULE),
            Bad({"labels": {f"k{n}": "v" for n in range(65)}}, "labels", "At most 64 labels are allowed, found 65."),
        ),
        good=(
            {"labels": {"k" * 64: "ж" * 64}},
            {"labels": {"équipe": "модель-1_日本"}},
            labels(k1="", k2="1", k3="-_"),
            {"labels": {f"k{n}": "v" for n in range(64)}},
            {"labels": GONE},
        ),
    ),
    Rule(
        "CustomJob.error",
        "google.rpc.Status; set only when FAILED or CANCELLED; code 1 (CANCELLED) after a cancel",
        elsewhere=(
            "test_processes.py::test_cancel_sends_sigterm_and_sigkill_after_the_grace",
            "test_processes.py::test_failed_code_fails_the_job_with_its_last_lines",
            "test_processes.py::test_a_job_goes_through_its_states_and_succeeds",
        ),
    ),
    Rule(
        "CustomJob.endTime",
        "set on SUCCEEDED, FAILED or CANCELLED",
        elsewhere=("test_processes.py::test_a_job_goes_through_its_states_and_succeeds",),
    ),
    Rule(
        "CustomJob.startTime",
        "first time RUNNING",
        elsewhere=(
            "test_processes.py::test_a_job_goes_through_its_states_and_succeeds",
            "test_faults.py::test_a_stockout_fails_the_job_after_its_restarts",
        ),
    ),
    Rule(
        "CustomJob.webAccessUris",
        "keys workerpoolN-M; only with enableWebAccess",
        elsewhere=("test_validation.py::test_the_stand_in_gives_no_web_access",),
    ),
    Rule(
        "network",
        "projects/{number}/global/networks/{name}; needs VPC peering; reservedIpRanges only with it",
        bad=(
            Bad({"jobSpec.network": "default"}, "job_spec.network", "projects/{project number}/global/networks"),
            Bad({"jobSpec.network": "projects/p/global/networks/n"}, "job_spec.network", "is not of the form"),
            Bad({"jobSpec.network": "projects/12/global/networks/"}, "job_spec.network", "is not of the form"),
            Bad(
                {"jobSpec.reservedIpRanges": ["range"]}, "job_spec.reserved_ip_ranges", "only supported with `network`"
            ),
        ),
        good=(
            {"jobSpec.network": "projects/12/global/networks/myVPC"},
            {"jobSpec.network": "projects/12/global/networks/n", "jobSpec.reservedIpRanges": ["range"]},
            {"jobSpec.reservedIpRanges": []},
        ),
    ),
    Rule(
        "serviceAccount",
        "caller needs iam.serviceAccounts.actAs; default Custom Code Service Agent",
        bad=(
            Bad({"jobSpec.serviceAccount": "trainer"}, "job_spec.service_account", "not the email address"),
            Bad({"jobSpec.serviceAccount": "a@b@c"}, "job_spec.service_account", "not the email address"),
            Bad({"jobSpec.serviceAccount": "projects/-/a@b"}, "job_spec.service_account", "not the email address"),
        ),
        good=({"jobSpec.serviceAccount": "trainer@my-project.iam.gserviceaccount.com"}, {"jobSpec.serviceAccount": ""}),
    ),
    Rule(
        "baseOutputDirectory.outputUriPrefix",
        "required inside it; a trailing / is added",
        bad=(
            Bad({"jobSpec.baseOutputDirectory": {}}, "job_spec.base_output_directory.output_uri_prefix", REQUIRED),
            *(
                Bad(
                    {"jobSpec.baseOutputDirectory": {"outputUriPrefix": prefix}},
                    "job_spec.base_output_directory.output_uri_prefix",
                    "is not a Cloud Storage URI",
                )
                for prefix in ("my-bucket/x", "gs://", "gs:///x", "s3://my-bucket")
            ),
        ),
        good=tuple(
            {"jobSpec.baseOutputDirectory": {"outputUriPrefix": prefix}} for prefix in ("gs://my-bucket", "gs://b/x/")
        ),
        elsewhere=("test_defaults.py::test_the_output_folder_ends_with_a_slash",),
    ),
    Rule(
        "CustomJob.encryptionSpec",
        "kmsKeyName required: projects/P/locations/L/keyRings/R/cryptoKeys/K",
        bad=(
            Bad({"encryptionSpec": {}}, "encryption_spec.kms_key_name", REQUIRED),
            Bad({"encryptionSpec": {"kmsKeyName": "k"}}, "encryption_spec.kms_key_name", "is not of the form"),
        ),
        good=({"encryptionSpec": {"kmsKeyName": KMS}},),
    ),
)
