#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Formats every C++ source with clang-format 16, one version so that all get the same result: tools/format.sh
# [--check]. With --check it changes nothing and fails where something would change.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(find include tests examples bench fuzz -name '*.hpp' -o -name '*.cpp' | sort)
if [ "${1:-}" = "--check" ]; then
  "${CLANG_FORMAT:-clang-format-16}" --dry-run --Werror "${files[@]}"
else
  python3 tools/wrap_comments.py "${files[@]}"
  "${CLANG_FORMAT:-clang-format-16}" -i "${files[@]}"
fi
