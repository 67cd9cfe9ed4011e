// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/disk_cache.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/detail/block_index.hpp>

#include <algorithm>
#include <bit>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE disk_cache::disk_cache(std::string folder, std::uint64_t limit, disk_cache_options options)
    : folder_(std::move(folder)), limit_(limit), options_(options) {
  constexpr std::uint64_t least = 128_KiB, maximum = 16_MiB;
  if (folder_.empty()) throw error(errc::argument, "disk_cache needs the path of a folder");
  if (!std::has_single_bit(options_.block) || options_.block < least || options_.block > maximum)
    throw error(errc::argument,
                {"blocks of a disk_cache have a power of two of bytes from 128 KiB to 16 MiB, not ",
                 options_.block, " bytes"});
  if (options_.max_wait.count() < 0) throw error(errc::argument, "disk_cache cannot wait for less than 0 ms");
  if (options_.ahead > 64)
    throw error(errc::argument,
                {"a disk_cache fetches at most 64 blocks at once ahead, not ", options_.ahead});
  constexpr std::chrono::hours year{24 * 365};
  options_.max_wait = std::min(options_.max_wait, std::chrono::milliseconds(year));
  if (detail::blocks::block_index::slots_within(limit_, options_.block, detail::blocks::piece_size) == 0)
    throw error(errc::argument, {"a disk_cache of ", limit_, " bytes has no room for a block of ",
                                 options_.block, " bytes and its index; raise the limit"});
}

PENSTOCK_INLINE std::string disk_cache::describe() const {
  return detail::text({"disk_cache(", folder_, ", ", limit_, " bytes)"});
}

}  // namespace penstock::inline v0_1
