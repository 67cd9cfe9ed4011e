#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# build_seqpacker.sh FOLDER: builds seqpacker.rs with the crate that is in seqpacker's sources on PyPI, and prints the path of the
# program. Needs cargo (edition 2024). The crates that it uses are Debian's if they are installed (librust-rand-dev,
# librust-rayon-dev, librust-serde-dev, librust-serde-json-dev, librust-smallvec-dev, librust-thiserror-dev), otherwise those of
# crates.io.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$1
version=0.1.3
program=$folder/crate/target/release/seqpacker_rows
if [ ! -x "$program" ]; then
  mkdir -p "$folder/no_build" "$folder/crate/.cargo"
  # pip asks the build backend for metadata before it stores the sources; this one does not build them.
  cat > "$folder/no_build/maturin.py" << 'PYTHON'
import pathlib


def prepare_metadata_for_build_wheel(folder, settings=None):
    name = "seqpacker-0.dist-info"
    pathlib.Path(folder, name).mkdir()
    pathlib.Path(folder, name, "METADATA").write_text("Metadata-Version: 2.1\nName: seqpacker\nVersion: VERSION\n")
    return name
PYTHON
  sed -i "s/VERSION/$version/" "$folder/no_build/maturin.py"
  python3 -m venv "$folder/venv" > /dev/null
  cp "$folder/no_build/maturin.py" "$("$folder/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')"
  "$folder/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --no-build-isolation --no-binary :all: \
    "seqpacker==$version" -d "$folder" >&2
  tar -xf "$folder/seqpacker-$version.tar.gz" -C "$folder"
  cp -r "$folder/seqpacker-$version/crates/seqpacker/src" "$folder/crate"
  cp "$here/seqpacker.rs" "$folder/crate/src/rows.rs"
  debian=/usr/share/cargo/registry
  thiserror=2
  if compgen -G "$debian/rayon-1*" > /dev/null; then
    compgen -G "$debian/thiserror-2*" > /dev/null || thiserror=1
    printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "%s"\n' "$debian" \
      > "$folder/crate/.cargo/config.toml"
  fi
  # The profile is the one of seqpacker's workspace.
  cat > "$folder/crate/Cargo.toml" << TOML
[package]
name = "seqpacker"
version = "$version"
edition = "2024"
[[bin]]
name = "seqpacker_rows"
path = "src/rows.rs"
[dependencies]
rand = "0.8"
rayon = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
smallvec = "1"
thiserror = "$thiserror"
[profile.release]
codegen-units = 1
lto = "fat"
opt-level = 3
panic = "abort"
strip = true
[workspace]
TOML
  (cd "$folder/crate" && cargo build --quiet --release -j1 >&2)
fi
echo "$program"
