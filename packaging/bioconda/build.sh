#!/bin/bash
# The package has no compiled kernels for GPUs; where there is a GPU, the first search compiles them.
set -euo pipefail
"${PYTHON}" -m pip install . -vv --no-deps --no-build-isolation --no-cache-dir \
    --config-settings cmake.define.SWSEARCH_CUDA_KERNELS=OFF
