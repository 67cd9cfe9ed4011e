// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/sample_cache_node.hpp>

#include <penstock/core/error.hpp>

#include <new>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void sample_cache_table::table::put(std::uint64_t number, std::uint64_t hash,
                                                    const void* object) noexcept {
  const std::size_t last = entries.size() - 1;
  std::size_t i = (hash / parts) & last;
  while (entries[i].object.load(std::memory_order_relaxed) != nullptr) i = (i + 1) & last;
  entries[i].number = number;
  entries[i].object.store(object, std::memory_order_release);
}

PENSTOCK_INLINE bool sample_cache_table::take_room(std::uint64_t bytes) noexcept {
  std::uint64_t held = bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || held > limit_ - bytes) {
      const std::uint64_t samples = samples_.load(std::memory_order_relaxed);
      if (samples != 0 && (held >= limit_ || limit_ - held < held / samples))
        full_.store(true, std::memory_order_relaxed);
      return false;
    }
  } while (!bytes_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return true;
}

PENSTOCK_INLINE bool sample_cache_table::make_place(part& to) {
  const std::size_t now = to.all.empty() ? 0 : to.all.back()->entries.size();
  if ((to.used + 1) * 4 <= now * 3) return true;
  const std::size_t places = now == 0 ? smallest : now * 2;
  if (!take_room(places * sizeof(entry))) return false;
  std::unique_ptr<table> larger;
  try {
    to.all.reserve(to.all.size() + 1);
    larger = std::make_unique<table>(places);
  } catch (const std::bad_alloc&) {
    bytes_.fetch_sub(places * sizeof(entry), std::memory_order_relaxed);
    throw out_of_memory(places * sizeof(entry), "the table of keep_in_memory", "give it a lower limit");
  }
  if (now != 0)
    for (const entry& one : to.all.back()->entries)
      if (const void* const object = one.object.load(std::memory_order_relaxed); object != nullptr)
        larger->put(one.number, mix64(one.number), object);
  to.all.push_back(std::move(larger));
  to.now.store(to.all.back().get(), std::memory_order_release);
  return true;
}

PENSTOCK_INLINE const void* sample_cache_table::add(std::uint64_t number, void* object, std::uint64_t bytes) {
  const std::uint64_t hash = mix64(number);
  part& to = parts_[hash % parts];
  const std::lock_guard lock(to.adding);
  if (!to.all.empty())
    if (const void* const there = to.all.back()->find(number, hash); there != nullptr) return there;
  if (!make_place(to) || !take_room(bytes)) return nullptr;
  to.all.back()->put(number, hash, object);
  ++to.used;
  samples_.fetch_add(1, std::memory_order_relaxed);
  return object;
}

PENSTOCK_INLINE kept_counters sample_cache_table::counters() const {
  kept_counters all;
  all.samples = samples_.load(std::memory_order_relaxed);
  all.bytes = bytes_.load(std::memory_order_relaxed);
  for (const part& one : parts_) {
    all.hits += one.hits.load(std::memory_order_relaxed);
    all.uncached += one.uncached.load(std::memory_order_relaxed);
  }
  return all;
}

PENSTOCK_INLINE sample_cache_table::~sample_cache_table() {
  for (part& one : parts_) {
    if (one.all.empty()) continue;
    for (const entry& each : one.all.back()->entries)
      if (const void* const object = each.object.load(std::memory_order_relaxed); object != nullptr)
        destroy_(const_cast<void*>(object));
  }
}

}  // namespace penstock::inline v0_1::detail
