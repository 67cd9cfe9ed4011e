// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include "support/catch.hpp"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// What all processes of a test see of a `staged_store`.
struct staged_counts {
  static constexpr std::size_t maximum = 64;
  std::atomic<std::uint64_t> fetched[maximum];  ///< bytes that were asked for, of each object
  std::atomic<std::uint64_t> reads, failures, stamp{5};
  /// The read with this number, from 1 on, is something special; see `staged_store`.
  std::atomic<std::uint64_t> special_read;

  [[nodiscard]] static staged_counts& make() {
    void* const where =
        ::mmap(nullptr, sizeof(staged_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(where != MAP_FAILED);
    return *new (where) staged_counts{};
  }
  [[nodiscard]] std::uint64_t all() const {
    std::uint64_t sum = 0;
    for (const auto& one : fetched) sum += one;
    return sum;
  }
  void forget() {
    for (auto& one : fetched) one = 0;
    reads = 0;
  }
};

/// Objects of made-up bytes, which depend on their stamp and which processes count together.
struct staged_store {
  staged_counts* counts;
  std::vector<std::uint64_t> sizes;
  std::vector<std::string> list;
  std::chrono::microseconds takes{0};
  /// What the special read does: called before its bytes are made.
  void (*special)(const staged_store& here) = nullptr;
  std::string note{};  ///< for `special`

  staged_store(staged_counts& shared, std::vector<std::uint64_t> given)
      : counts(&shared), sizes(std::move(given)) {
    for (std::size_t i = 0; i < sizes.size(); ++i) list.push_back("far/object-" + std::to_string(i) + ".bin");
  }

  [[nodiscard]] static std::byte byte_at(std::uint64_t object, std::uint64_t stamp, std::uint64_t offset) {
    return static_cast<std::byte>(((offset + (object << 40)) * 0x9e3779b97f4a7c15u + stamp) >> 56 ^ stamp);
  }

  struct session {
    const staged_store* store;
    [[nodiscard]] std::uint64_t size(penstock::object_id id) const { return store->sizes[id]; }
    [[nodiscard]] penstock::object_version version(penstock::object_id id) const {
      return {size(id), store->counts->stamp};
    }
    void read(penstock::object_id id, std::uint64_t offset, penstock::mutable_bytes into) const {
      staged_counts& all = *store->counts;
      all.fetched[id] += into.size();
      if (++all.reads == all.special_read && store->special != nullptr) store->special(*store);
      if (store->takes.count() != 0) std::this_thread::sleep_for(store->takes);
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = byte_at(id, all.stamp, offset + i);
    }
    void will_need(penstock::object_id, std::uint64_t, std::uint64_t) const noexcept {}
  };
  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {this}; }

  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : sizes) sum += one;
    return sum;
  }
  /// How many of these files, in order, do not have the objects' bytes.
  [[nodiscard]] std::size_t wrong(std::span<const std::string> paths) const {
    std::size_t count = paths.size() == sizes.size() ? 0 : 1000;
    for (std::size_t k = 0; k < paths.size() && k < sizes.size(); ++k) {
      std::ifstream file(paths[k], std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      bool right = text.size() == sizes[k];
      for (std::size_t i = 0; right && i < text.size(); ++i)
        right = static_cast<std::byte>(text[i]) == byte_at(k, counts->stamp, i);
      if (!right) ++count;
    }
    return count;
  }
};

}  // namespace penstock_test
