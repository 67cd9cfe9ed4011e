#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Writes everything that is generated from the headers, their comments and tables: run it after a header was added,
# moved or given another comment, or a component another row, and commit what it changed.
set -euo pipefail
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
python3 check_headers.py --write     # the header lists of include/penstock/CMakeLists.txt
python3 check_umbrellas.py --write   # <room>.hpp, penstock.hpp and all.hpp
python3 check_page_headers.py --write
python3 check_reference.py --write   # docs/reference/
python3 amalgamate.py                # single_include/, of which git keeps penstock.hpp
python3 draw_house.py                # docs/house.svg
python3 check_components.py --write  # what vcpkg, Conan and docs/building.md know of components
