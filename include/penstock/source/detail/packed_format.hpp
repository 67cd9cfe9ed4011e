// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// What reads a format of packed shards. Its names are empty where nothing does.
struct packed_format {
  std::string_view format, component, unpacker;
};

[[nodiscard]] packed_format packed_format_of(std::string_view format) noexcept;

/// One sentence for a file that is packed in a way that the caller was not told of: what to write to read
/// it. `before` and `after` stand around the unpacker's name.
[[nodiscard]] std::string packed_advice(std::string_view format, std::string_view before,
                                        std::string_view after);

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/packed_format.ipp>
#endif
