"""What machines cost on Compute Engine in us-central1, and what Vertex AI training adds to it.

Sources, all public:

- machines and disks, 2026-07-30: pricing.yml of https://github.com/Cyclenerd/google-cloud-pricing-cost-calculator at
  commit fd66b26, made from the Cloud Billing catalog. Machines that come with GPUs are priced with them, and with the
  local SSD that belongs to them, which Vertex AI may not bill (less than 1%).
- T4, V100 and TPUs, no date given (2025 or later): catalogs/v8/gcp/vms.csv of
  https://github.com/skypilot-org/skypilot-catalog at commit 8427bbff.
- what Vertex AI adds: its page's n1-standard-4 (0.21849885, read 2026-10-07) and the H100, A3 and SSD SKUs of 2025-08
  are 1.15 times the price on Compute Engine, which is taken for all others, too; a Spot machine costs the Spot price
  and a fee of 15% of the on-demand one.
  https://cloud.google.com/products/gemini-enterprise-agent-platform/pricing
"""

from __future__ import annotations

from decimal import Decimal

CURRENCY = "USD"
REGION = "us-central1"
"""Region of every price here."""

DATE = "2026-07-30"
"""Day of the machine and disk prices."""

SOURCE = "Cloud Billing catalog, through Cyclenerd/google-cloud-pricing-cost-calculator at fd66b26"

MANAGEMENT_FEE = Decimal("0.15")
"""Part of the on-demand price that Vertex AI takes on top of the Compute Engine price, Spot or not."""

HOURS_PER_MONTH = 730
"""Hours of the month in disk prices: 0.17 * 1.15 / 730 is the SSD SKU of Vertex AI, 0.0002678 per GB-hour."""

MACHINE_PRICES: dict[str, tuple[str, str]] = {
    "n1-standard-4": ("0.189999", "0.06701"),
    "n1-standard-8": ("0.379998", "0.13402"),
    "n1-standard-16": ("0.759996", "0.26804"),
    "n1-standard-32": ("1.519992", "0.53608"),
    "n1-standard-64": ("3.039984", "1.07216"),
    "n1-standard-96": ("4.559976", "1.60824"),
    "n1-highmem-2": ("0.118303", "0.041722"),
    "n1-highmem-4": ("0.236606", "0.083444"),
    "n1-highmem-8": ("0.473212", "0.166888"),
    "n1-highmem-16": ("0.946424", "0.333776"),
    "n1-highmem-32": ("1.892848", "0.667552"),
    "n1-highmem-64": ("3.785696", "1.335104"),
    "n1-highmem-96": ("5.678544", "2.002656"),
    "n1-highcpu-16": ("0.566789", "0.199914"),
    "n1-highcpu-32": ("1.133578", "0.399827"),
    "n1-highcpu-64": ("2.267155", "0.799654"),
    "n1-highcpu-96": ("3.400733", "1.199482"),
    "n2-standard-4": ("0.194236", "0.09212"),
    "n2-standard-8": ("0.388472", "0.18424"),
    "n2-standard-16": ("0.776944", "0.36848"),
    "n2-standard-32": ("1.553888", "0.73696"),
    "n2-standard-48": ("2.330832", "1.10544"),
    "n2-standard-64": ("3.107776", "1.47392"),
    "n2-standard-80": ("3.88472", "1.8424"),
    "n2-highmem-2": ("0.131014", "0.06214"),
    "n2-highmem-4": ("0.262028", "0.12428"),
    "n2-highmem-8": ("0.524056", "0.24856"),
    "n2-highmem-16": ("1.048112", "0.49712"),
    "n2-highmem-32": ("2.096224", "0.99424"),
    "n2-highmem-48": ("3.144336", "1.49136"),
    "n2-highmem-64": ("4.192448", "1.98848"),
    "n2-highmem-80": ("5.24056", "2.4856"),
    "n2-highcpu-16": ("0.573568", "0.272"),
    "n2-highcpu-32": ("1.147136", "0.544"),
    "n2-highcpu-48": ("1.720704", "0.816"),
    "n2-highcpu-64": ("2.294272", "1.088"),
    "n2-highcpu-80": ("2.86784", "1.36"),
    "n4-standard-2": ("0.0907", "0.044784"),
    "n4-standard-4": ("0.1814", "0.089568"),
    "n4-standard-8": ("0.3628", "0.179136"),
    "n4-standard-16": ("0.7256", "0.358272"),
    "n4-standard-32": ("1.4512", "0.716544"),
    "n4-standard-48": ("2.1768", "1.074816"),
    "n4-standard-64": ("2.9024", "1.433088"),
    "n4-standard-80": ("3.628", "1.79136"),
    "n4-highmem-2": ("0.11902", "0.058768"),
    "n4-highmem-4": ("0.23804", "0.117536"),
    "n4-highmem-8": ("0.47608", "0.235072"),
    "n4-highmem-16": ("0.95216", "0.470144"),
    "n4-highmem-32": ("1.90432", "0.940288"),
    "n4-highmem-48": ("2.85648", "1.410432"),
    "n4-highmem-64": ("3.80864", "1.880576"),
    "n4-highmem-80": ("4.7608", "2.35072"),
    "n4-highcpu-2": ("0.07654", "0.037792"),
    "n4-highcpu-4": ("0.15308", "0.075584"),
    "n4-highcpu-8": ("0.30616", "0.151168"),
    "n4-highcpu-16": ("0.61232", "0.302336"),
    "n4-highcpu-32": ("1.22464", "0.604672"),
    "n4-highcpu-48": ("1.83696", "0.907008"),
    "n4-highcpu-64": ("2.44928", "1.209344"),
    "n4-highcpu-80": ("3.0616", "1.51168"),
    "e2-standard-4": ("0.134023", "0.080424"),
    "e2-standard-8": ("0.268046", "0.160848"),
    "e2-standard-16": ("0.536091", "0.321696"),
    "e2-standard-32": ("1.072183", "0.643392"),
    "e2-highmem-2": ("0.0904", "0.054244"),
    "e2-highmem-4": ("0.180799", "0.108488"),
    "e2-highmem-8": ("0.361599", "0.216976"),
    "e2-highmem-16": ("0.723197", "0.433952"),
    "e2-highcpu-16": ("0.395762", "0.237504"),
    "e2-highcpu-32": ("0.791524", "0.475008"),
    "c2-standard-4": ("0.208808", "0.09968"),
    "c2-standard-8": ("0.417616", "0.19936"),
    "c2-standard-16": ("0.835232", "0.39872"),
    "c2-standard-30": ("1.56606", "0.7476"),
    "c2-standard-60": ("3.13212", "1.4952"),
    "m1-ultramem-40": ("6.2931", "1.101773"),
    "m1-ultramem-80": ("12.5862", "2.203546"),
    "m1-ultramem-160": ("25.1724", "4.407092"),
    "m1-megamem-96": ("10.65216", "1.864845"),
    "a2-highgpu-1g": ("3.673385", "1.92802"),
    "a2-highgpu-2g": ("7.34677", "3.85604"),
    "a2-highgpu-4g": ("14.69354", "7.71208"),
    "a2-highgpu-8g": ("29.38708", "15.42416"),
    "a2-megagpu-16g": ("55.739504", "29.25568"),
    "a2-ultragpu-1g": ("5.068798", "2.759546"),
    "a2-ultragpu-2g": ("10.137596", "5.519093"),
    "a2-ultragpu-4g": ("20.275192", "11.038185"),
    "a2-ultragpu-8g": ("40.550383", "22.07637"),
    "a3-highgpu-1g": ("11.06125", "6.326193"),
    "a3-highgpu-2g": ("22.1225", "12.652385"),
    "a3-highgpu-4g": ("44.245", "25.30477"),
    "a3-highgpu-8g": ("88.49", "50.609541"),
    "g2-standard-12": ("1.000416", "0.562408"),
    "g2-standard-16": ("1.147208", "0.644944"),
    "g2-standard-24": ("2.000833", "1.124816"),
    "g2-standard-32": ("1.734376", "0.975088"),
    "g2-standard-4": ("0.706832", "0.397336"),
    "g2-standard-48": ("4.001665", "2.249632"),
    "g2-standard-8": ("0.853624", "0.479872"),
    "g2-standard-96": ("8.00333", "4.499264"),
    "g4-standard-192": ("17.99972", "7.19928"),
    "g4-standard-384": ("35.99944", "14.39856"),
    "g4-standard-48": ("4.49993", "1.79982"),
    "g4-standard-96": ("8.99986", "3.59964"),
}
"""Machine type -> USD per hour on Compute Engine, on demand and Spot, with the GPUs that always belong to it."""

UNPRICED_MACHINES = frozenset({
    "a3-megagpu-8g",
    "a3-ultragpu-8g",
    "a4-highgpu-8g",
    "a4x-highgpu-4g",
    "ct5lp-hightpu-1t",
    "ct5lp-hightpu-4t",
    "ct5lp-hightpu-8t",
    "ct6e-standard-1t",
    "ct6e-standard-4t",
    "ct6e-standard-8t",
    "tpu7x-standard-4t",
})  # fmt: skip
"""Machine types that the sources give no price of."""

GPU_PRICES: dict[str, tuple[str, str]] = {
    "NVIDIA_TESLA_T4": ("0.35", "0.175"),
    "NVIDIA_TESLA_V100": ("2.48", "1.1458"),
}
"""GPU type that is attached to N1 machines -> USD per hour of one on Compute Engine, on demand and Spot."""

UNPRICED_GPUS = frozenset({"NVIDIA_TESLA_P4", "NVIDIA_TESLA_P100"})
"""Attached GPU types without a price: of the P4 no source has one, and jobs get no P100 any more."""

TPU_PRICES: dict[tuple[str, int], tuple[str, str]] = {
    ("TPU_V2", 8): ("4.5", "1.35"),
    ("TPU_V3", 8): ("8.0", "2.04"),
}
"""TPU type and number of cores of a cloud-tpu machine -> USD per hour on Compute Engine; of no Pod."""

DISK_PRICES: dict[str, str] = {"pd-standard": "0.04", "pd-ssd": "0.17"}
"""Boot disk type -> USD per GB and month on Compute Engine; Spot machines pay the same."""

UNPRICED_DISKS = frozenset({"hyperdisk-balanced"})
"""Boot disk types that the sources give no price of."""

DEFAULT_DISK_GB = 100
"""Size of a boot disk whose pool does not say it. Source: DiskSpec of Vertex AI."""

DOUBTS: dict[str, str] = {
    "a3-highgpu": "Google's price page of 2026-10-07 lists the H100 without the 15% of Vertex AI, its SKUs of 2025-08 "
    "with it, which is counted here: on demand, the bill may be up to 13% lower",
}
"""Start of a machine type -> what is uncertain about its price."""

UNDATED = "the prices of T4, V100, TPU_V2 and TPU_V3 are from a second list, of no stated day (2025 or later)"
"""What to say of the prices in GPU_PRICES and TPU_PRICES."""
