#!/bin/sh
# Build the wheel of Python 3.11 for ARM64 on another Debian machine, and try it under an emulator: with Debian's
# g++-aarch64-linux-gnu and qemu-user, Debian's Python for ARM64 (not installed, only unpacked in FOLDER), and the packages
# of PyPI. A trial, not the wheel of a release: that one is built in the container of manylinux.
# Usage: try_arm64.sh SDIST DATA FOLDER [PYTHON], with an empty FOLDER and Python 3.11.
set -eu
sdist=$(realpath "$1")
data=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
mkdir -p "$3/apt/lists/partial" "$3/cache/archives/partial" "$3/debs" "$3/root" "$3/bin"
folder=$(realpath "$3")
python=${4:-python3.11}

# Debian's Python for ARM64. apt has a state of its own, so this needs no permission and changes nothing on this machine.
cat > "$folder/apt.conf" <<END
Dir::State "$folder/apt";
Dir::State::status "/dev/null";
Dir::Cache "$folder/cache";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
END
export APT_CONFIG="$folder/apt.conf"
apt-get update -qq
(cd "$folder/debs" && apt-get download -qq libbz2-1.0 libc6 libcrypt1 libexpat1 libffi8 libgcc-s1 liblzma5 libpython3.11-dev \
    libpython3.11-minimal libpython3.11-stdlib libsqlite3-0 libssl3 libstdc++6 libuuid1 python3.11-minimal zlib1g)
for package in "$folder"/debs/*.deb; do
    dpkg -x "$package" "$folder/root"
done
# The headers of Python alone: the compiler has its own of the C library.
mkdir -p "$folder/headers/aarch64-linux-gnu"
cp -r "$folder/root/usr/include/python3.11" "$folder/headers/"
cp -r "$folder/root/usr/include/aarch64-linux-gnu/python3.11" "$folder/headers/aarch64-linux-gnu/"

export CFLAGS="-isystem $folder/headers" CXXFLAGS="-isystem $folder/headers"
export CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared"
export CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DPython_INCLUDE_DIR=$folder/headers/python3.11
    -DSWSEARCH_CUDA_KERNELS=OFF"
export _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-311-aarch64-linux-gnu.so
# dnaio, which reads sequences, has no wheel for ARM64 on PyPI.
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder" "$sdist" 'dnaio>=1.2'
unset CFLAGS CXXFLAGS CC LDSHARED CMAKE_ARGS _PYTHON_HOST_PLATFORM SETUPTOOLS_EXT_SUFFIX
"$python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --no-compile --target "$folder/site" \
    --only-binary :all: --python-version 3.11 --platform linux_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 "$folder"/*.whl

cat > "$folder/bin/swsearch" <<END
#!/bin/sh
exec qemu-aarch64 -L "$folder/root" -E PYTHONPATH="$folder/site" "$folder/root/usr/bin/python3.11" -m swsearch "\$@"
END
chmod +x "$folder/bin/swsearch"
PATH="$folder/bin:$PATH" sh "$here/try_install.sh" "$data"
