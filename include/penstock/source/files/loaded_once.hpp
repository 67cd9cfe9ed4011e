// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/position.hpp>
#include <penstock/source/files/parallel.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace penstock::inline v0_1::detail {

/// What a run loads for each shard when it is first needed, and keeps.
template <class T>
class loaded_once {
 public:
  /// Of these shards, `filled` have samples, and will be loaded some day.
  loaded_once(std::size_t shards, std::size_t filled) : missing_(filled), count_(shards), loaded_(shards) {}
  loaded_once(const loaded_once&) = delete;
  loaded_once& operator=(const loaded_once&) = delete;
  ~loaded_once() {
    for (std::size_t i = 0; i < count_; ++i) delete loaded_[i].load(std::memory_order_relaxed);
  }

  /// Null if it is not loaded. Takes no lock.
  [[nodiscard]] const T* find(std::size_t shard) const noexcept {
    return loaded_[shard].load(std::memory_order_acquire);
  }
  /// Loads it if it is not loaded; `load()` returns the result of `new`. Others wait meanwhile.
  template <class Load>
  [[nodiscard]] const T& get(std::size_t shard, Load&& load) {
    const std::scoped_lock lock(mutexes_[shard % mutexes_.size()]);
    if (const T* other = find(shard)) return *other;
    const T* const fresh = load();
    loaded_[shard].store(fresh, std::memory_order_release);
    missing_.fetch_sub(1, std::memory_order_relaxed);
    return *fresh;
  }
  /// Whether all that have samples are loaded.
  [[nodiscard]] bool complete() const noexcept { return missing_.load(std::memory_order_relaxed) == 0; }

  /// Calls `load(shard)` for the shards of these samples that are not loaded, several at once. A failure is
  /// ignored here and reported when the shard is needed.
  template <class ShardOf, class Load>
  void get_ready(std::span<const position> samples, ShardOf&& shard_of, Load&& load) const {
    constexpr std::size_t max_in_flight = 8;
    std::vector<std::size_t> absent;
    for (const position sample : samples)
      if (const std::size_t shard = shard_of(sample.index);
          find(shard) == nullptr && std::find(absent.begin(), absent.end(), shard) == absent.end())
        absent.push_back(shard);
    if (absent.empty()) return;
    for_each_in_parallel(absent.size(), std::min(absent.size(), max_in_flight), [&](std::size_t i) {
      try {
        load(absent[i]);
      } catch (...) {
      }
    });
  }

 private:
  std::atomic<std::size_t> missing_;
  std::size_t count_;
  fixed_array<std::atomic<const T*>> loaded_;
  std::array<std::mutex, 64> mutexes_;
};

}  // namespace penstock::inline v0_1::detail
