#!/bin/bash
# Ray: after one local ray.init(), drivers cannot join the clusters that this user starts.
#
# Run on 2026-11-29, Python 3.11, Linux x86-64:
#   ray 2.60.0
#   a new user: joined
#   after a local ray.init(): ConnectionError: Failed to connect to Ray cluster at ADDRESS
#   with RAY_AUTH_MODE=token: joined
# Expected: `ray start --head`, then ray.init(address=...) on the same machine and by the same user, joins the cluster.
# Seen: so it does, until a program runs ray.init() without a cluster. This writes ~/.ray/auth_token. From then on
# `ray start --head` makes a cluster that asks for the token, and drivers do not send it. After 20 s the error advises
# to run `ray stop`, because the earlier instance had crashed; the reason is in the log alone.
# Affects who tries a program on a laptop first, and then on a cluster. `export RAY_AUTH_MODE=token` on all machines, and
# the same token file, or RAY_AUTH_MODE=disabled for `ray start` and for the driver, helps.
set -eu
folder=$(mktemp -d)
export HOME="$folder"
unset RAY_AUTH_MODE RAY_ADDRESS
ray="$folder/venv/bin/ray"
trap '"$ray" stop --force > /dev/null 2>&1; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-compile ray==2.60.0 2> /dev/null
cat > "$folder/local.py" <<'PYTHON'
import ray

ray.init(num_cpus=1, include_dashboard=False, object_store_memory=10**8, log_to_driver=False)
ray.shutdown()
PYTHON
cat > "$folder/join.py" <<'PYTHON'
import re

import ray

try:
    ray.init(address="127.0.0.1:6399", log_to_driver=False)
    print("joined")
except ConnectionError as error:
    print("ConnectionError:", re.sub(r"[\d.]+:\d+", "ADDRESS", str(error)))
PYTHON
joins() {
  "$ray" start --head --port=6399 --num-cpus=1 --include-dashboard=false --object-store-memory=100000000 > /dev/null 2>&1
  "$folder/venv/bin/python" "$folder/join.py" 2> /dev/null
  "$ray" stop --force > /dev/null 2>&1
}
echo "ray 2.60.0"
before=$(joins) && echo "a new user: $before"
"$folder/venv/bin/python" "$folder/local.py" > /dev/null 2>&1
after=$(joins) && echo "after a local ray.init(): $after"
told=$(RAY_AUTH_MODE=token joins) && echo "with RAY_AUTH_MODE=token: $told"
[ "$before $told" = "joined joined" ] && [ "$after" != joined ]
