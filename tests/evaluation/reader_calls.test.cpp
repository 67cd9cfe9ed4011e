// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/evaluation/reader_calls.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "support/catch.hpp"

namespace ps = penstock;

namespace reader_calls_test {

struct silent {};
struct by_index {
  mutable std::uint64_t hinted = 0;
  [[nodiscard]] std::string key(std::uint64_t index) const { return "index " + std::to_string(index); }
  void will_need(std::uint64_t index) const { hinted = index; }
};
struct filed {
  [[nodiscard]] std::string url(std::uint64_t index) const { return "file " + std::to_string(index); }
};
struct by_position {
  struct scout {
    std::uint64_t hints = 0;
  };
  [[nodiscard]] std::string key(ps::position p) const {
    return std::to_string(p.epoch) + ":" + std::to_string(p.index);
  }
  void will_need(ps::position p, scout& s) const { s.hints += p.epoch + p.index; }
};

TEST_CASE("evaluation/reader_calls: a key by position, by index, or the index itself") {
  CHECK(ps::key_of(silent{}, {3, 14}) == "14");
  CHECK(ps::key_of(by_index{}, {3, 14}) == "index 14");
  CHECK(ps::key_of(by_position{}, {3, 14}) == "3:14");
}

TEST_CASE("evaluation/reader_calls: the file of a sample, if the reader knows it") {
  static_assert(!ps::has_keys<filed> && ps::has_keys<by_index> && ps::has_keys<by_position>,
                "who has keys is told by its calls");
  CHECK(ps::url_of(filed{}, {1, 3}) == "file 3");
  CHECK(ps::url_of(silent{}, {1, 3}).empty());
}

struct looking_ahead {
  struct worker {
    std::uint64_t last = 0;
  };
  void look_ahead(std::span<const ps::position> next, worker& w) const { w.last = next.back().index; }
  void prefetch_ahead(std::size_t, const worker&, std::uint64_t) const {}
};

TEST_CASE("evaluation/reader_calls: who looks ahead is told by its calls") {
  static_assert(ps::looks_ahead<looking_ahead>, "a reader with both calls looks ahead");
  static_assert(!ps::looks_ahead<by_index>, "a reader without them does not");
}

struct both {
  [[nodiscard]] static std::string key(std::uint64_t) { return "a number"; }
  [[nodiscard]] static std::string key(ps::position p) { return "epoch " + std::to_string(p.epoch); }
};
struct opening {
  mutable std::size_t opened = 0;
  [[nodiscard]] bool is_ready() const { return opened != 0; }
  void get_ready(std::span<const ps::position> samples) const { opened += samples.size(); }
  [[nodiscard]] static std::uint64_t bytes_per_sample() { return 12; }
};

TEST_CASE("evaluation/reader_calls: a reader that takes numbers and positions gets the position") {
  CHECK(ps::key_of(both{}, {3, 14}) == "epoch 3");
}

TEST_CASE("evaluation/reader_calls: what a reader lacks has a default") {
  const ps::position two[2] = {{0, 1}, {0, 2}};
  ps::get_ready(silent{}, two);
  CHECK(ps::bytes_per_sample_of(silent{}) == 0);
  const opening reader;
  ps::get_ready(reader, two);
  ps::get_ready(reader, two);  // it is
  CHECK(reader.opened == 2);
  CHECK(ps::bytes_per_sample_of(reader) == 12);
}

template <bool Points>
struct fetching {
  struct worker {
    const ps::fetched_sample* fetched = nullptr;
  };
  static constexpr ps::reader_traits traits = {.latency = true, .takes_fetched = Points};
  template <class Sink>
  void ranges(std::uint64_t, Sink&&) const {}
};
struct boasting {
  struct worker {};
  static constexpr ps::reader_traits traits = {.latency = true, .in_memory = true};
};

struct looking {
  struct worker {};
  void look_ahead(std::span<const ps::position>, worker&) const {}
  void prefetch_ahead(std::size_t, worker&, std::uint64_t) const {}
};
struct prefetching {
  struct worker {};
  void prefetch(ps::position) const {}
};
struct contiguous {
  struct worker {};
  static constexpr ps::reader_traits traits = {.shows_contiguous = true};
};

TEST_CASE("evaluation/reader_calls: a reader's traits hold where it has the calls for them") {
  constexpr ps::reader_traits none = ps::reader_traits_of<silent>, far = ps::reader_traits_of<fetching<true>>,
                              hinting = ps::reader_traits_of<fetching<false>>,
                              near = ps::reader_traits_of<boasting>;
  static_assert(!none.latency && !none.takes_fetched && !none.plans_reads && !none.in_memory,
                "nothing is known of a reader that has no calls and says nothing");
  static_assert(far.latency && far.takes_fetched && far.plans_reads, "ranges, and a worker who takes them");
  static_assert(!hinting.latency && !hinting.takes_fetched && ps::tells_ranges<fetching<false>>,
                "its ranges are only hints");
  static_assert(near.in_memory && !near.latency, "nothing is fetched for a reader without ranges");
  static_assert(ps::reader_traits_of<looking>.in_memory && ps::reader_traits_of<prefetching>.in_memory &&
                    ps::reader_traits_of<contiguous>.in_memory,
                "memory that is looked up ahead, prefetched or shown is what samples lie in");
}

TEST_CASE("evaluation/reader_calls: a hint with a scout, with an index, or none") {
  static_assert(!ps::takes_hints<silent> && ps::takes_hints<by_index> && ps::takes_hints<by_position>,
                "who wants hints is told by its calls");
  static_assert(std::is_empty_v<ps::scout_of<by_index>>, "a reader that needs no scout keeps nothing");
  ps::scout_of<silent> nothing;
  ps::hint(silent{}, {3, 14}, nothing);
  const by_index reader;
  ps::scout_of<by_index> none;
  ps::hint(reader, {3, 14}, none);
  CHECK(reader.hinted == 14);
  ps::scout_of<by_position> kept;
  ps::hint(by_position{}, {3, 14}, kept);
  ps::hint(by_position{}, {1, 2}, kept);
  CHECK(kept.hints == 20);
}

}  // namespace reader_calls_test
