// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/codec/detail/film_identity.hpp>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace penstock::inline v0_1::detail {

/// What the process has found out of films, for all of its threads: an `Index` for each film, which is made
/// when the film is first met. `Index` has `bytes()`, the memory that it takes.
template <class Index>
class kept_indexes {
 public:
  [[nodiscard]] static kept_indexes& of_process() {
    static kept_indexes all;
    return all;
  }

  /// Null if it is not there.
  [[nodiscard]] shared<const Index> find(const film_identity& film) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(film.hash);
    if (found == all_.end() || found->second.size != film.size) return {};
    found->second.used = ++uses_;
    return found->second.index;
  }
  /// Those that were used longest ago go, until the others take no more than `most` bytes.
  void keep(const film_identity& film, const shared<const Index>& index, std::uint64_t most) {
    if (index->bytes() > most) return;
    const std::lock_guard lock(mutex_);
    auto& place = all_[film.hash];
    if (place.index) bytes_ -= place.index->bytes();
    place = {index, film.size, ++uses_};
    bytes_ += index->bytes();
    while (bytes_ > most) {
      const auto oldest = std::min_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
        return a.second.used < b.second.used;
      });
      bytes_ -= oldest->second.index->bytes();
      all_.erase(oldest);
    }
  }
  [[nodiscard]] std::uint64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct kept {
    shared<const Index> index;
    std::uint64_t size = 0;  // of the film's file
    std::uint64_t used = 0;  // the number of its last use
  };

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, kept> all_;
  std::uint64_t bytes_ = 0, uses_ = 0;
};

}  // namespace penstock::inline v0_1::detail
