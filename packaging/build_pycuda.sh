#!/bin/sh
# Build a wheel of PyCUDA, which PyPI has as sources alone, where there is no driver: with the headers that
# install_nvcc.sh has installed. PyCUDA is built without cuRAND and OpenGL, which swsearch does not use.
# Usage: build_pycuda.sh CUDA WHEELS [PYTHON], where CUDA is the folder of install_nvcc.sh.
set -eu
cuda=$(realpath "$1/nvidia/cu13")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$2"
# The library of the driver comes with the machine that runs the program; the linker needs only its name.
${CXX:-g++} -shared -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so" -x c++ /dev/null
# PyCUDA reads its options from a file in the home folder.
printf 'CUDA_ENABLE_CURAND = False\nCUDA_ENABLE_GL = False\n' > "$work/.aksetup-defaults.py"
HOME=$work CUDA_ROOT=$cuda PATH="$cuda/bin:$PATH" LIBRARY_PATH=$work LDFLAGS="-L$work -Wl,--no-as-needed" \
    "${3:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-cache-dir --no-deps --wheel-dir "$2" 'pycuda>=2026.1'
