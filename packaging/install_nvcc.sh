#!/bin/sh
# Install nvcc and the headers of CUDA from PyPI into an empty folder (about 290 MB), for the containers in which wheels and
# images are built: they have a host compiler, and no CUDA. All packages are of one release of CUDA; the kernels need the
# driver of that release.
# Usage: install_nvcc.sh FOLDER [PYTHON]; the nvcc is FOLDER/nvidia/cu13/bin/nvcc.
set -eu
"${2:-python3}" -m pip install --quiet --disable-pip-version-check --no-compile --target "$1" \
    'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-profiler-api==13.0.*' \
    'nvidia-cuda-runtime==13.0.*' 'nvidia-nvvm==13.0.*'
"$1/nvidia/cu13/bin/nvcc" --version
