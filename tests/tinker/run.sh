#!/usr/bin/env bash
# The Tinker engine against a real server: SkyRL 0.4, JAX back-end, CPU. Not part of `make test`.
#
#   tests/tinker/run.sh [FOLDER]      environments, model, server log and results go there; build/tinker by default
#
# Needs Python 3.12 for the server (PYTHON312) and 3.11 or later for us (PYTHON), about 8 GB of disk (the server's packages
# bring a CUDA build of torch along, which is not used), and a package index. Takes some ten minutes on two cores, installing aside.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "${1:-$root/build/tinker}"
folder=$(cd "${1:-$root/build/tinker}" && pwd)
port=${PORT:-8811}
server=${SERVER_ENVIRONMENT:-$folder/server}
client=${CLIENT_ENVIRONMENT:-$folder/client}

if [ ! -e "$server/ready" ]; then
    "${PYTHON312:-python3.12}" -m venv "$server"
    "$server/bin/pip" install --quiet uv
    "$server/bin/uv" pip install --quiet --python "$server/bin/python" 'skyrl[jax,tinker]==0.4.0' aiohttp
    touch "$server/ready"
fi
if [ ! -e "$client/ready" ]; then
    "${PYTHON:-python3}" -m venv "$client"
    "$client/bin/pip" install --quiet -c <(grep -v '^tinker=' "$root/requirements.lock") -e "$root[test,lora]" 'tinker==0.25.0'
    touch "$client/ready"
fi

# The packaged policy in float32: the server computes in the format that the model's config names.
export OMP_NUM_THREADS=1 TINKER_TELEMETRY=0
model=$folder/model
"$client/bin/python" - "$model" <<'PYTHON'
import sys
from pathlib import Path
from seed_opd.policy.loading import load_model, load_tokenizer
from seed_opd.training.setup import model_path
load_model(model_path("tiny")).save_pretrained(sys.argv[1])
load_tokenizer(model_path("tiny")).save_pretrained(sys.argv[1])
PYTHON

rm -rf "$folder/server.db"* "$folder/checkpoints"
setsid "$here/serve.sh" "$server" "$model" "$port" "$folder" >"$folder/server.log" 2>&1 &
group=$!
trap 'kill -- -$group 2>/dev/null || true' EXIT
for _ in $(seq 120); do
    kill -0 "$group" 2>/dev/null || { echo "the server ended: see $folder/server.log" >&2; exit 1; }
    curl --silent --fail "http://127.0.0.1:$port/api/v1/healthz" >/dev/null && break
    sleep 1
done

export SEED_OPD_TINKER_URL=http://127.0.0.1:$port SEED_OPD_TINKER_MODEL=$model
PYTHONPATH="$root/tests/policy" "$client/bin/python" -m pytest -v -s -p no:cacheprovider --basetemp "$folder/runs" \
    "$here/check_server.py" "${@:2}"
