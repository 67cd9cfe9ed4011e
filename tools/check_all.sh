#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every check of the sources; all of them, even after one has found something.
set -uo pipefail
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
status=0
for check in check_headers check_rooms check_umbrellas check_tests check_length check_reference header_examples check_style \
  check_components check_version check_page_headers check_readme check_grafana; do
  python3 "$check.py" || status=1
done
python3 draw_house.py --check || status=1
./house_figures.sh --check || status=1
exit "$status"
