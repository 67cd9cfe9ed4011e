// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail::files {

/// Whether most of an open file is in memory: at least 15 of 16 pages spread over it are. Does not wait for
/// the disk. False if the file system cannot tell. `draw` selects the pages; pass a different one each time,
/// since the system starts to load the pages asked about.
[[nodiscard]] bool is_in_memory(int opened, std::uint64_t size, std::uint64_t draw) noexcept;

}  // namespace detail::files
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/local/residence.ipp>
#endif
