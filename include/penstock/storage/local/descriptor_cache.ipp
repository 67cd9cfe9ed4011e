// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/local/descriptor_cache.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/local/paths.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace penstock::inline v0_1::detail::files {

PENSTOCK_INLINE descriptor_cache::descriptor_cache(std::span<const std::string> paths, std::size_t limit)
    : paths_(paths),
      limit_(limit == 0 ? default_limit() : limit),
      words_(paths.size()),
      seen_(paths.size()) {}
PENSTOCK_INLINE descriptor_cache::~descriptor_cache() {
  for (const object_id id : open_) ::close(number_of(words_[id].load(std::memory_order_relaxed)));
}

PENSTOCK_INLINE descriptor_cache::lease descriptor_cache::use(object_id id) {
  if (id >= paths_.size()) throw error(errc::argument, {"there is no object ", id});
  std::atomic<std::uint64_t>& word = words_[id];
  const std::uint64_t before = word.fetch_add(one_use, std::memory_order_acquire);
  if ((before & open_bit) != 0) [[likely]] {
    if ((before & recent_bit) == 0) word.fetch_or(recent_bit, std::memory_order_relaxed);
    return {word, number_of(before)};
  }
  try {
    return {word, open_slowly(id)};
  } catch (...) {
    word.fetch_sub(one_use, std::memory_order_relaxed);
    throw;
  }
}

PENSTOCK_INLINE std::size_t descriptor_cache::open_now() {
  const std::scoped_lock lock(mutex_);
  return open_.size();
}

PENSTOCK_INLINE std::size_t descriptor_cache::default_limit() noexcept {
  rlimit allowed{};
  if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return 512;
  return std::clamp<std::size_t>(detail::to_size(allowed.rlim_cur / 2), 1, 512);
}

PENSTOCK_INLINE int descriptor_cache::open_slowly(object_id id) {
  const std::string& path = paths_[id];
  descriptor opened(open_quietly(path));
  if (opened.get() < 0 && (errno == EMFILE || errno == ENFILE)) {
    const int why = errno;
    {
      const std::scoped_lock lock(mutex_);
      close_until(open_.size() / 2);
    }
    opened = descriptor(open_quietly(path));
    if (opened.get() < 0 && (errno == EMFILE || errno == ENFILE)) throw failure("open", path, why);
  }
  if (opened.get() < 0) throw failure("open", path, errno);
  const object_version now = version_of(opened.get(), path);

  const std::scoped_lock lock(mutex_);
  const std::uint64_t word = words_[id].load(std::memory_order_acquire);
  if ((word & open_bit) != 0) return number_of(word);  // another thread was faster
  if (seen_[id] != object_version{} && seen_[id] != now) {
    throw error(errc::io, {"the file was changed while it was in use: it had ", seen_[id].size,
                           " bytes and has ", now.size, " now; open the dataset again"})
        .in_file(path)
        .recurring();
  }
  seen_[id] = now;
  open_.push_back(id);
  const int number = opened.release();
  words_[id].fetch_or(open_bit | recent_bit | static_cast<std::uint64_t>(number), std::memory_order_acq_rel);
  close_until(limit_);
  return number;
}

PENSTOCK_INLINE void descriptor_cache::close_until(std::size_t wanted) {
  for (std::size_t looked = 0; open_.size() > wanted && looked < 2 * open_.size() + 2; ++looked) {
    if (hand_ >= open_.size()) hand_ = 0;
    std::atomic<std::uint64_t>& word = words_[open_[hand_]];
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (seen >= one_use) {
      ++hand_;
    } else if ((seen & recent_bit) != 0) {
      word.fetch_and(~recent_bit, std::memory_order_relaxed);
      ++hand_;
    } else if (word.compare_exchange_strong(seen, 0, std::memory_order_acq_rel)) {
      ::close(number_of(seen));
      open_[hand_] = open_.back();
      open_.pop_back();
    }
  }
}

}  // namespace penstock::inline v0_1::detail::files
