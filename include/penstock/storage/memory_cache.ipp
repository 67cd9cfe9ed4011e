// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/memory_cache.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/cache/memory_blocks.hpp>

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace penstock::inline v0_1 {

/// The blocks of each process that has the value: after a `fork`, those of the parent may be locked for ever.
struct memory_cache::home {
  struct blocks_of_process {
    blocks_of_process(std::uint64_t limit, const memory_cache_options& options)
        : blocks(limit, options.block, options.evict) {}
    pid_t process = ::getpid();
    detail::blocks::memory_blocks blocks;
    blocks_of_process* before = nullptr;
  };

  home() = default;
  home(const home&) = delete;
  home& operator=(const home&) = delete;
  ~home() {
    // Those of a parent stay: its threads may have waited there.
    for (blocks_of_process* one = newest.load(); one != nullptr && one->process == ::getpid();)
      delete std::exchange(one, one->before);
  }

  std::atomic<blocks_of_process*> newest{nullptr};
};

PENSTOCK_INLINE memory_cache::memory_cache(std::uint64_t limit, memory_cache_options options)
    : limit_(limit), options_(options) {
  constexpr std::uint64_t least = 64_KiB, maximum = 16_MiB;
  if (!std::has_single_bit(options_.block) || options_.block < least || options_.block > maximum)
    throw error(errc::argument,
                {"blocks of a memory_cache have a power of two of bytes from 64 KiB to 16 MiB, not ",
                 options_.block, " bytes"});
  if (options_.max_wait.count() < 0)
    throw error(errc::argument, "memory_cache cannot wait for less than 0 ms");
  constexpr std::chrono::hours year{24 * 365};
  options_.max_wait = std::min(options_.max_wait, std::chrono::milliseconds(year));
  if (detail::blocks::memory_blocks::slots_within(limit_, options_.block) == 0)
    throw error(errc::argument, {"a memory_cache of ", limit_, " bytes has no room for a block of ",
                                 options_.block, " bytes and its index; raise the limit"});
  home_.reset(new home());
}

PENSTOCK_INLINE std::string memory_cache::describe() const {
  return detail::text({"memory_cache(", limit_, " bytes)"});
}

PENSTOCK_INLINE detail::blocks::memory_blocks& memory_cache::blocks() const {
  home::blocks_of_process* known = home_->newest.load(std::memory_order_acquire);
  if (known != nullptr && known->process == ::getpid()) return known->blocks;
  auto* const made = new home::blocks_of_process(limit_, options_);
  made->before = known;
  if (home_->newest.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made->blocks;
  delete made;  // another thread was faster
  return known->blocks;
}

}  // namespace penstock::inline v0_1
