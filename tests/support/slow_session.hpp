// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/options.hpp>
#include <penstock/run/engine/read_ahead/fetcher.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock_test {

using range_pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

inline std::string letters(std::size_t n) {
  std::string text(n, ' ');
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

/// A session with latency, whose reads wait until they are let through.
struct slow_session {
  static constexpr penstock::session_traits traits = {.latency = true};
  std::string text;
  std::size_t allows = 0;
  penstock::storage_counters counted{};
  struct waiting {
    penstock::read_request what;
    penstock::read_listener who;
  };
  std::mutex busy;
  std::vector<waiting> begun;  // in order
  std::size_t ended = 0;

  [[nodiscard]] std::uint64_t size(penstock::object_id) const { return text.size(); }
  [[nodiscard]] static penstock::object_version version(penstock::object_id) { return {}; }
  void read(penstock::object_id, std::uint64_t offset, penstock::mutable_bytes into) const {
    std::memcpy(into.data(), text.data() + offset, into.size());
  }
  static void will_need(penstock::object_id, std::uint64_t, std::uint64_t) {}
  [[nodiscard]] penstock::session_report report() const {
    return {.counters = counted, .counted = true, .max_in_flight = allows};
  }
  void read_many(std::span<const penstock::read_request> requests, penstock::read_listener who) {
    const std::scoped_lock lock(busy);
    for (const auto& one : requests) begun.push_back({one, who});
  }
  void cancel() noexcept {
    while (in_flight() != 0) end_next(true);
  }
  [[nodiscard]] std::size_t in_flight() {
    const std::scoped_lock lock(busy);
    return begun.size() - ended;
  }
  /// Ends the read that began first.
  void end_next(bool fails = false) {
    waiting one;
    {
      const std::scoped_lock lock(busy);
      one = begun[ended++];
    }
    if (!fails) read(0, one.what.offset, one.what.into);
    one.who.done(one.who.self, one.what.tag,
                 fails ? std::make_exception_ptr(penstock::error(penstock::errc::io, "broken")) : nullptr);
  }
  [[nodiscard]] range_pairs ranges() {
    const std::scoped_lock lock(busy);
    range_pairs all;
    for (const waiting& one : begun)
      all.emplace_back(one.what.offset, one.what.offset + one.what.into.size());
    return all;
  }
};
static_assert(penstock::background_session<slow_session> &&
              penstock::session_traits_of<slow_session>().latency);

/// A fetcher over such a session.
struct slow_fetching {
  slow_session session;
  penstock::range_list list;
  penstock::fetcher it;

  explicit slow_fetching(const penstock::request_options& requests = {}, std::uint64_t bytes = 8 << 20,
                         const penstock::live_limits* live = nullptr)
      : it(bytes, 256, requests, live) {
    session.text = letters(2'000'000);
  }
  ~slow_fetching() { session.allows = 0; }
  void want(std::uint64_t row, std::uint64_t offset, std::uint64_t size) {
    list.stand_at(row);
    list(session, 0, offset, size);
  }
  std::string take(std::uint64_t row, std::uint64_t offset, std::uint64_t size) {
    penstock::fetched_sample mine;
    mine.use(&it.store());
    mine.stand_at(row);
    const penstock::fetched_sample::scope held(mine);
    return std::string(penstock::text_of(mine.find(&session, 0, offset, size)));
  }
};

}  // namespace penstock_test
