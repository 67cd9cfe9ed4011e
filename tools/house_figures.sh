#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# How large and how uniform the library is: house_figures.sh [--check | --write]
#
# Prints figures of include/penstock. --check fails if one is higher than in tools/house_figures.txt, which --write
# makes anew: a figure may fall, and stays there.
set -euo pipefail
cd "$(dirname "$0")/.."
house=include/penstock
known=tools/house_figures.txt

# lines_of <grep options and pattern>: how many lines of the headers match
lines_of() { { grep -rhE --include='*.[hi]pp' "$@" || true; } | wc -l; }
# An identifier that has another word in the field; see the first row of CHANGELOG.md.
old_words='most_[a-z]+|at_once|first_wait|longest_wait|longest_asked|object_signature|hedge_line|delay_line|patience'
old_words+='|foresight|foresee|needed_last|hand_out|keeper|decider|expander|say_where|at_position|sibling|beton_[a-z]+'

# Every header that a file includes, itself left out.
included_by() {
  local left=("$1") file name
  declare -A seen=()
  while [ "${#left[@]}" -gt 0 ]; do
    file=${left[-1]}
    unset 'left[-1]'
    while read -r name; do
      if [ -z "${seen[$name]:-}" ]; then
        seen[$name]=1
        left+=("include/$name")
      fi
    done < <(sed -nE 's/^#include <(penstock\/[^>]+)>.*/\1/p' "$file")
  done
  printf 'include/%s\n' "${!seen[@]}"
}

figures() {
  mapfile -t files < <(find "$house" -name '*.hpp' -o -name '*.ipp' -o -name '*.cuh')
  echo "lines $(cat "${files[@]}" | wc -l)"
  echo "files $(printf '%s\n' "${files[@]}" | wc -l)"
  echo "files_under_40_lines $(wc -l "${files[@]}" | awk '$2 != "total" && $1 < 40' | wc -l)"
  echo "concepts_of_storage $(lines_of '^concept ' "$house/storage")"
  echo "hooks_forwarded_by_hand $(lines_of 'requires .*_session<' "$house/storage")"
  echo "optional_members_of_a_reader $(lines_of '^concept ' "$house/evaluation/reader_calls.hpp")"
  echo "files_that_name_tar_from_outside $(grep -rlE --include='*.[hi]pp' '\btar::' "$house" | grep -vc 'source/tar/')"
  echo "room_exceptions $(grep -cv '^#' tools/room_exceptions.txt)"
  echo "room_exceptions_into_a_detail $(awk '!/^#/ && $2 ~ /detail\//' tools/room_exceptions.txt | wc -l)"
  echo "lines_of_the_evaluator $(wc -l <"$house/run/engine/workers/evaluator.hpp")"
  mapfile -t narrow < <(included_by bench/compile_time/full_expression_narrow.cpp)
  echo "files_that_a_program_includes ${#narrow[@]}"
  echo "lines_that_a_program_includes $(cat "${narrow[@]}" | wc -l)"
  echo "words_that_the_field_does_not_use $(lines_of "\\b($old_words)\\b" "$house")"
}

case "${1:-}" in
  --check)
    figures | awk -v known="$known" '
      BEGIN { while ((getline line <known) > 0) { split(line, part, " "); limit[part[1]] = part[2] } }
      !($1 in limit) { print "house_figures: " known " has no " $1 "; tools/house_figures.sh --write"; bad = 1; next }
      $2 > limit[$1] + 0 { print "house_figures: " $1 " rose from " limit[$1] " to " $2; bad = 1 }
      END { print "house_figures: " NR " figures looked at" (bad ? "" : ", nothing found"); exit bad }' ;;
  --write) figures >"$known" ;;
  "") figures | awk '{ gsub("_", " ", $1); printf "%8d  %s\n", $2, $1 }' ;;
  *) echo "usage: tools/house_figures.sh [--check | --write]" >&2; exit 2 ;;
esac
