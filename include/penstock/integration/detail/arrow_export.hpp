// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_abi.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/tensor.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A column before it is exported: the contents of a C schema and a C array.
struct exported_arrow {
  std::string name, format;
  std::uint64_t length = 0, nulls = 0;
  std::vector<const void*> buffers;
  std::vector<exported_arrow> children;
  std::shared_ptr<const void> keep, keep_validity;  ///< what the buffers are in

  void add(std::string_view child_name, exported_arrow child);
  /// The values are copies of these bools, eight in a byte.
  void keep_bits(const std::byte* bools, std::size_t count);
  /// Wraps values into lists of fixed size, one for each dimension behind the first.
  void nest(const extents& shape);
  /// Makes the rows null, in all columns, that hold no sample.
  void mark_valid(std::span<const std::uint8_t> valid);
};

/// Each allocates what the struct refers to, and its `release` frees it.
void export_schema(const exported_arrow& from, arrow_abi::schema* into);
void export_array(exported_arrow from, arrow_abi::array* into);

/// The stream keeps `run`; `next` gives its next batch, and false at the end.
void export_stream(std::shared_ptr<void> run, bool (*next)(void* run, exported_arrow& into),
                   arrow_abi::array_stream* into);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/integration/detail/arrow_export.ipp>
#endif
