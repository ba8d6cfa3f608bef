#!/bin/sh
# Fails, and names the places, if a file of CUDA C++ is not formatted as .clang-format says.
# usage: check_cuda_format.sh CLANG_FORMAT
set -eu
find cuda tests/engine/cuda -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.h' | xargs "$1" --dry-run --Werror
