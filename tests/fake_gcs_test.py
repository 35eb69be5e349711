"""The fake of Google Cloud Storage, and what TensorFlow's own client makes of it and its faults."""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

from tests.fake_gcs import FakeGcs, Faults, Request
from tests.fake_gcs_server import CUTS

ROOT = pathlib.Path(__file__).parents[1]
KINDS = ("503", "429", *CUTS)
UPLOADS = "/upload/storage/v1/b/bucket/o"

# Both scripts run in processes of their own: TensorFlow's client reads the environment once.
PREAMBLE = """
import json, time
import tensorflow as tf
gfile = tf.io.gfile

def write(path, content, mode="wb"):
    with gfile.GFile(path, mode) as file:
        file.write(content)

def read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read().decode("latin-1")

def outcome(act, *args, **options):
    try:
        return act(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

ROUND_TRIP = (
    PREAMBLE
    + """
def round_trip(bucket):
    found = {}
    root = bucket + "/run"
    gfile.makedirs(root + "/a/b")
    found["isdir"] = [gfile.isdir(path) for path in (root + "/a/b", root, root + "/no", "gs://empty")]
    big = bytes(range(256)) * 3000
    write(root + "/big", big)
    found["big"] = read(root + "/big") == big.decode("latin-1")
    write(root + "/empty", b"")
    found["empty"] = read(root + "/empty")
    write(root + "/text", "one", "w")
    write(root + "/text", " two", "a")
    found["append"] = read(root + "/text")
    stat = gfile.stat(root + "/text")
    found["stat"] = [stat.length, abs(stat.mtime_nsec / 1e9 - time.time()) < 60]
    gfile.copy(root + "/text", root + "/copy")
    found["copy refused"] = outcome(gfile.copy, root + "/text", root + "/copy")
    gfile.copy(root + "/empty", root + "/copy", overwrite=True)
    gfile.rename(root + "/text", root + "/a/text")
    gfile.rename(root + "/copy", root + "/a/text", overwrite=True)
    found["rename"] = [gfile.exists(root + "/text"), read(root + "/a/text")]
    gfile.rename(root + "/a", root + "/c")
    found["listdir"] = gfile.listdir(root)
    found["empty listdir"] = gfile.listdir("gs://empty")
    found["glob"] = [path[len(bucket) + 1:] for path in gfile.glob(root + "/*e*")]
    found["walk"] = [[path[len(bucket) + 1:], *inside] for path, *inside in gfile.walk(root)]
    gfile.remove(root + "/big")
    found["remove"] = gfile.exists(root + "/big")
    while gfile.isdir(root):
        outcome(gfile.rmtree, root)  # A fault in its first request becomes a NotFoundError.
    found["rmtree"] = gfile.exists(root)

    saved = tf.Variable(tf.random.normal([300, 100]))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=saved), bucket + "/ckpt", 1)
    manager.save(), manager.save()
    loaded = tf.Variable(tf.zeros([300, 100]))
    latest = tf.train.latest_checkpoint(bucket + "/ckpt")
    tf.train.Checkpoint(v=loaded).restore(latest).assert_existing_objects_matched()
    same = bool(tf.reduce_all(saved == loaded))
    found["checkpoint"] = [latest[len(bucket) + 1:], same, gfile.listdir(bucket + "/ckpt")]

    with tf.io.TFRecordWriter(bucket + "/records") as writer:
        for number in range(100):
            writer.write(str(number).encode())
    found["records"] = [int(record) for record in tf.data.TFRecordDataset(bucket + "/records")]

    writer = tf.summary.create_file_writer(bucket + "/events")
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", step, step)
            writer.flush()
    writer.close()
    events = tf.data.TFRecordDataset(gfile.glob(bucket + "/events/*"))
    found["events"] = [tf.compat.v1.Event.FromString(event.numpy()).step for event in events]
    return found

print(json.dumps({name: round_trip("gs://" + name) for name in ("calm", "stormy")}))
"""
)
FOUND = {
    "isdir": [True, True, False, True],
    "big": True,
    "empty": "",
    "append": "one two",
    "stat": [7, True],
    "copy refused": "AlreadyExistsError: file already exists",
    "rename": [False, ""],
    "listdir": ["big", "empty", "c/"],
    "empty listdir": [],
    "glob": ["run/empty"],
    "walk": [["run", ["c/"], ["big", "empty"]], ["run/c/", ["b/"], ["text"]], ["run/c/b/", [], []]],
    "remove": False,
    "rmtree": False,
    "checkpoint": [
        "ckpt/ckpt-2",
        True,
        ["checkpoint", "ckpt-2.data-00000-of-00001", "ckpt-2.index"],
    ],
    "records": list(range(100)),
    "events": [0, 0, 1, 2],
}

REFUSALS = (
    PREAMBLE
    + """
import sys

def flush(path):
    file = gfile.GFile(path + "/o", "w")
    file.write("x")
    return file.flush()

def summary(path):
    writer = tf.summary.create_file_writer(path)
    writer.flush()

def upload(path):
    write(path + "/o", b"0123456789" * 10000)
    return read(path + "/o") == "0123456789" * 10000

acts = {
    "read": lambda path: read(path + "/o"),
    "stat": lambda path: gfile.stat(path + "/o").length,
    "isdir": gfile.isdir,
    "glob": lambda path: gfile.glob(path + "/*"),
    "listdir": gfile.listdir,
    "write": lambda path: write(path + "/o", b"x"),
    "flush": flush,
    "upload": upload,
    "append": lambda path: write(path + "/o", b"x", "ab"),
    "mkdir": lambda path: gfile.mkdir(path + "/new"),
    "remove": lambda path: gfile.remove(path + "/o"),
    "rename": lambda path: gfile.rename(path + "/o", path + "/p"),
    "rmtree": gfile.rmtree,
    "save": lambda path: tf.train.Checkpoint(v=tf.Variable(1.0)).write(path + "/ckpt"),
    "summary": summary,
}
print(json.dumps([outcome(acts[act], path) for act, path in json.loads(sys.argv[1])]))
"""
)
DENIED, ABORTED, MISSING = "PermissionDeniedError: ", "AbortedError: ", "NotFoundError: "
OUTCOMES = [  # What is done, where, and what comes of it; retries are 2.
    ("read", "gs://read-only/d", "x"),
    ("stat", "gs://read-only/d", 1),
    *(
        (act, "gs://read-only/d", DENIED)
        for act in (
            "write",
            "flush",
            "append",
            "mkdir",
            "remove",
            "rename",
            "rmtree",
            "save",
            "summary",
        )
    ),
    *(
        (act, "gs://forbidden/d", DENIED)
        for act in ("read", "stat", "glob", "write", "append", "mkdir", "remove", "rename", "save")
    ),
    ("isdir", "gs://forbidden/d", False),
    ("listdir", "gs://forbidden/d", MISSING),
    ("rmtree", "gs://forbidden/d", MISSING),
    *(("read", f"gs://bucket/GET {kind}", ABORTED) for kind in KINDS),
    *(("write", f"gs://bucket/POST {kind}", ABORTED) for kind in ("503", "429", "cut answer")),
    *(
        (act, f"gs://bucket/PUT {kind}", ABORTED)
        for act in ("flush", "save", "summary")
        for kind in ("503", "cut request")
    ),
    *((act, "gs://bucket/GET 503", ABORTED) for act in ("stat", "append", "save")),
    ("isdir", "gs://bucket/GET 503", False),
    ("listdir", "gs://bucket/GET 503", MISSING),
    ("rmtree", "gs://bucket/GET 503", MISSING),
    ("remove", "gs://bucket/DELETE 503", ABORTED),
    ("rename", "gs://bucket/DELETE 503", ABORTED),
    ("rmtree", "gs://bucket/DELETE 503", DENIED + "could not fully delete dir"),
    *(("read", f"gs://bucket/GET {kind} once", "x") for kind in KINDS),
    *(("upload", f"gs://bucket/PUT {kind} once", True) for kind in KINDS),
    *(("upload", f"gs://bucket/POST {kind} once", True) for kind in KINDS),
    *(("remove", f"gs://bucket/DELETE {kind} once", None) for kind in KINDS),
    *(("mkdir", f"gs://bucket/POST {kind} once", None) for kind in KINDS),
    ("rmtree", "gs://bucket/GET 503 once again", MISSING),
]


class Doom(Faults):
    """Faults that befall the requests whose object's name tells so, all or only the first."""

    def draw(self, request):
        name = urllib.parse.unquote(request.path) + "".join(request.query.values())
        doom = re.search(rf"{request.method} ({'|'.join(KINDS)})( once\b[^/]*)?", name)
        if not doom or (doom[2] and self.injected[doom[0]]):
            return None
        self.injected[doom[0]] += 1
        return doom[1]


def run(script, fake, *args, **environment):
    """What a script prints, in a process that meets the fake."""
    quick = {"GCS_READAHEAD_BUFFER_SIZE_BYTES": "1000000"}  # Else 64 MiB for every open file.
    quick |= {"GCS_STAT_CACHE_MAX_AGE": "0"}  # A folder that is gone is not seen for 5 s else.
    environment = os.environ | fake.environment | quick | environment
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def round_trip():
    """What was found by reading what was written, by bucket, and the fake."""
    faults = Faults(0.1, where=lambda request: "stormy" in request.path)
    with FakeGcs({}, buckets=("calm", "stormy", "empty"), faults=faults) as fake:
        return run(ROUND_TRIP, fake), fake


@pytest.fixture(scope="module")
def refusals():
    """The outcomes of `OUTCOMES`, and the fake."""
    objects = {f"{path[5:]}/o": b"x" for _, path, _ in OUTCOMES}
    with FakeGcs(objects, read_only=["read-only"], forbidden=["forbidden"], faults=Doom()) as fake:
        acts = json.dumps([outcome[:2] for outcome in OUTCOMES])
        return run(REFUSALS, fake, acts, GCS_RETRY_CONFIG_MAX_RETRIES="2"), fake


@pytest.mark.parametrize("bucket", ["calm", "stormy"])
@pytest.mark.parametrize("what", FOUND)
def test_what_was_written_is_read(round_trip, bucket, what):
    assert round_trip[0][bucket][what] == FOUND[what]


def test_round_trip_met_faults_of_every_kind(round_trip):
    assert set(round_trip[1].injected) == set(KINDS)


@pytest.mark.parametrize(
    "number", range(len(OUTCOMES)), ids=[f"{act} {path[5:]}" for act, path, _ in OUTCOMES]
)
def test_outcome(refusals, number):
    actual, expected = refusals[0][number], OUTCOMES[number][2]

    if isinstance(expected, str) and isinstance(actual, str):
        assert actual.startswith(expected)
    else:
        assert actual == expected


def test_refused_writes_change_nothing(refusals):
    objects = refusals[1].objects

    assert [key for key in objects if not key.startswith("bucket/")] == [
        "read-only/d/o",
        "forbidden/d/o",
    ]


@pytest.mark.parametrize("share, kinds", [(0.1, ("503",)), (0.5, ("503", "cut")), (1, KINDS)])
def test_faults_follow_from_the_seed(share, kinds):
    request = Request("GET", "/", {}, {})
    drawn = [
        [faults.draw(request) for _ in range(1000)]
        for faults in (Faults(share, 1, kinds), Faults(share, 1, kinds))
    ]
    happened = [kind for kind in drawn[0] if kind]

    assert drawn[0] == drawn[1]
    assert len(happened) == pytest.approx(1000 * share, rel=0.3)
    assert set(happened) == {*kinds, *CUTS} - {"cut"} if "cut" in kinds else set(kinds)


def test_faults_are_where_and_as_many_as_was_asked():
    faults = Faults(1, kinds=("503",), where=lambda request: request.method == "PUT", most=2)
    methods = ["GET", "PUT", "PUT", "PUT"]

    assert [faults.draw(Request(method, "/", {}, {})) for method in methods] == [
        None,
        "503",
        "503",
        None,
    ]
    assert faults.injected == {"503": 2}


def test_an_interrupted_upload_is_stored_when_its_rest_comes():
    fake = FakeGcs({}, buckets=["bucket"])
    query = open_upload(fake)
    first = Request("PUT", UPLOADS, query, {"content-range": "bytes 0-9/10"}, b"01234")

    fake.interrupted(first)
    state = fake.answer(Request("PUT", UPLOADS, query, {"content-range": "bytes */10"}))
    assert (state.status, state.headers["Range"], fake.objects) == (308, "bytes=0-4", {})

    rest = first._replace(headers={"content-range": "bytes 5-9/10"}, body=b"56789")
    assert fake.answer(rest).status == 200
    assert fake.objects == {"bucket/name": b"0123456789"}


def test_generations_grow():
    fake = FakeGcs({"bucket/name": b""})
    stat = Request("GET", "/storage/v1/b/bucket/o/name", {}, {})
    generations = [generation(fake, stat)]
    fake.answer(Request("PUT", UPLOADS, open_upload(fake), {}, b""))
    generations += [generation(fake, stat), generation(fake, stat)]
    fake.objects["bucket/name"] = b"another"
    generations += [generation(fake, stat)]

    assert generations[0] < generations[1] == generations[2] < generations[3]


def open_upload(fake):
    """The query of a new upload session."""
    query = {"uploadType": "resumable", "name": "name"}
    where = fake.answer(Request("POST", UPLOADS, query, {})).headers["Location"]
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(where).query))


def generation(fake, stat):
    return int(json.loads(fake.answer(stat).body)["generation"])
