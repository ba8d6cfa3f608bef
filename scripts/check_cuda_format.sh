#!/bin/sh
# Fails, and names the places, if a file of C++ or CUDA C++ is not formatted as .clang-format says.
# usage: check_cuda_format.sh CLANG_FORMAT
set -eu
find simd cuda tests/engine/cuda -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.h' |
    xargs "$1" --dry-run --Werror
