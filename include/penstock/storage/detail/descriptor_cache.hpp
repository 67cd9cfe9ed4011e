// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/paths.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::files {

/// A bounded number of open descriptors for any number of files; the least recently used (by the clock rule)
/// are closed.
///
/// One word per file holds the descriptor and the number of reads in flight, so that a read of an open file
/// takes two uncontended atomic operations and no lock. More files than the limit are open only while that
/// many threads read at once.
template <class = void>
class basic_descriptor_cache {
  static constexpr std::uint64_t number_mask = 0x7fffffffu;
  static constexpr std::uint64_t open_bit = std::uint64_t{1} << 31;
  static constexpr std::uint64_t recent_bit = std::uint64_t{1} << 32;
  static constexpr std::uint64_t one_use = std::uint64_t{1} << 33;

 public:
  /// A descriptor that is not closed while this lives.
  class lease {
   public:
    lease(std::atomic<std::uint64_t>& word, int number) noexcept : word_(word), number_(number) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { word_.fetch_sub(one_use, std::memory_order_release); }
    [[nodiscard]] int get() const noexcept { return number_; }

   private:
    std::atomic<std::uint64_t>& word_;
    int number_;
  };

  basic_descriptor_cache(std::span<const std::string> paths, std::size_t limit)
      : paths_(paths),
        limit_(limit == 0 ? default_limit() : limit),
        words_(std::make_unique<std::atomic<std::uint64_t>[]>(paths.size())),
        seen_(std::make_unique<object_signature[]>(paths.size())) {}
  basic_descriptor_cache(const basic_descriptor_cache&) = delete;
  basic_descriptor_cache& operator=(const basic_descriptor_cache&) = delete;
  ~basic_descriptor_cache() {
    for (const object_id id : open_) ::close(number_of(words_[id].load(std::memory_order_relaxed)));
  }

  [[nodiscard]] lease use(object_id id) {
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

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::size_t open_now() {
    const std::scoped_lock lock(mutex_);
    return open_.size();
  }

 private:
  static int number_of(std::uint64_t word) noexcept { return static_cast<int>(word & number_mask); }

  static std::size_t default_limit() noexcept {
    rlimit allowed{};
    if (::getrlimit(RLIMIT_NOFILE, &allowed) != 0 || allowed.rlim_cur == RLIM_INFINITY) return 512;
    return std::clamp<std::size_t>(static_cast<std::size_t>(allowed.rlim_cur / 2), 1, 512);
  }

  // The caller holds a use of the file's word: nobody else can close what is published here.
  int open_slowly(object_id id) {
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
    const object_signature now = signature_of(opened.get(), path);

    const std::scoped_lock lock(mutex_);
    const std::uint64_t word = words_[id].load(std::memory_order_acquire);
    if ((word & open_bit) != 0) return number_of(word);  // another thread was faster
    if (seen_[id] != object_signature{} && seen_[id] != now) {
      throw error(errc::io, {"the file was changed while it was in use: it had ", seen_[id].size,
                             " bytes and has ", now.size, " now; open the dataset again"})
          .in_file(path);
    }
    seen_[id] = now;
    open_.push_back(id);
    const int number = opened.release();
    words_[id].fetch_or(open_bit | recent_bit | static_cast<std::uint64_t>(number),
                        std::memory_order_acq_rel);
    close_until(limit_);
    return number;
  }

  // The clock rule: a file used since the hand last passed gets another round. Two rounds find all that can
  // be closed.
  void close_until(std::size_t wanted) {
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

  std::span<const std::string> paths_;
  std::size_t limit_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::unique_ptr<object_signature[]> seen_;
  std::mutex mutex_;
  std::vector<object_id> open_;
  std::size_t hand_ = 0;
};
using descriptor_cache = basic_descriptor_cache<>;

}  // namespace detail::files
}  // namespace penstock::inline v0_1
