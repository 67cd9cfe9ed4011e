#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Formats every C++ source with clang-format 16, a fixed version so that results do not vary: tools/format.sh
# [--check]. With --check it changes nothing and fails if a file would change.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(find include tests examples bench fuzz -name '*.[hi]pp' -o -name '*.cpp' | sort)
if [ "${1:-}" = "--check" ]; then
  # --dry-run --Werror also counts replacements of a line by the same line, at the end of inline namespaces.
  status=0
  for file in "${files[@]}"; do
    if ! "${CLANG_FORMAT:-clang-format-16}" "$file" | cmp --silent - "$file"; then
      echo "format: $file would change"
      status=1
    fi
  done
  exit "$status"
else
  python3 tools/wrap_comments.py "${files[@]}"
  "${CLANG_FORMAT:-clang-format-16}" -i "${files[@]}"
fi
