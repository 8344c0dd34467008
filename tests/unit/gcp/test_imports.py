import subprocess
import sys

HEAVY = ["google.cloud.storage", "google.cloud.aiplatform", "google.auth", "requests", "pandas", "torch", "airflow"]


def test_importing_the_clients_imports_none_of_googles_libraries() -> None:
    code = (
        "import sys, trainops.gcp.storage, trainops.gcp.vertex, trainops.gcp.logs, trainops.gcp.project;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
