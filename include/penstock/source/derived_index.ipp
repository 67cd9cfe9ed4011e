// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/derived_index.hpp>

#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string_view spelled(value_kind kind) noexcept {
  switch (kind) {
    case value_kind::whole:
      return "std::int64_t";
    case value_kind::natural:
      return "std::uint64_t";
    case value_kind::floating:
      return "double";
    case value_kind::text:
      return "std::string";
    case value_kind::none:
      break;
  }
  return "nothing";
}

PENSTOCK_INLINE void check_kind(const values_file& file, value_kind wanted) {
  const value_kind kind = file.header().kind;
  if (kind == wanted) return;
  throw error(errc::format, {"the derived index has values of ", spelled(kind), " and not of ",
                             spelled(wanted), "; write derived_index<", spelled(kind), ">"})
      .in_file(file.path())
      .at_offset(16);
}

PENSTOCK_INLINE shared<const values_file> opened_values(const std::string& path) {
  auto opened = values_file::open(path);
  if (!opened.file) throw opened.why;
  return std::move(opened.file);
}

}  // namespace penstock::inline v0_1::detail
