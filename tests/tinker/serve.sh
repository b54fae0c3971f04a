#!/usr/bin/env bash
# SkyRL's Tinker server with its JAX back-end on the CPU: serve.sh ENVIRONMENT MODEL PORT FOLDER
#
# Few slots for adapters: on a CPU each token pays for all of them. The server starts its engine by `uv run` with the options that it was started with itself, so it must be started that way;
# with --no-project uv takes the environment that is active.
set -euo pipefail
environment=$1 model=$2 port=$3 folder=$4

export VIRTUAL_ENV=$environment PATH="$environment/bin:$PATH"
export JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
cd "$folder"
exec uv run --no-project --offline -m skyrl.tinker.api \
    --base-model "$model" --backend jax --host 127.0.0.1 --port "$port" \
    --database-url "sqlite:///$folder/server.db" --checkpoints-base "$folder/checkpoints" \
    --session-timeout-sec 60 --session-cleanup-interval-sec 10 \
    --backend-config '{"max_lora_adapters": 6, "max_lora_rank": 8, "train_micro_batch_size": 8, "sample_max_num_sequences": 8}'
