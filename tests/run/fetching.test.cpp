// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs whose samples are fetched ahead have the sequence, bytes and errors of runs without.

#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/noting_storage.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock::literals;

namespace fetching_test {

std::string noise(std::size_t size, std::uint64_t seed) {
  ps::rng random(seed, 1, 2);
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t eight = random();
    std::memcpy(bytes.data() + i, &eight, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

std::string shard(std::uint64_t number, std::size_t samples) {
  penstock_test::raw_tar tar;
  for (std::size_t i = 0; i < samples; ++i) {
    const std::string key = std::to_string(number) + "-" + std::to_string(i);
    const std::uint64_t seed = 1000 * number + i;
    tar.member(key + ".cls", std::to_string(seed))
        .member(key + ".jpg", noise(200 + seed * 37 % 60'000, seed));
    tar.member(key + ".txt", noise(seed % 50, seed + 1));
  }
  return tar.end().bytes;
}

/// Shards of 60 samples each.
ps::memory_files shards(std::uint64_t n = 4) {
  ps::memory_files files;
  for (std::uint64_t s = 0; s < n; ++s) files.add("s-" + std::to_string(s) + ".tar", shard(s, 60));
  return files;
}

std::string npy(std::size_t rows, std::size_t length, std::uint64_t seed) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(length) + "), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         noise(rows * length, seed);
}

template <class Where>
auto far(const Where& where, ps::simulated_storage_options options = {.latency = 300us, .jitter = 500us}) {
  return ps::simulated_storage(where, std::move(options));
}

/// The bytes of a field, sample by sample.
template <ps::fixed_string Name, class Plan>
std::vector<std::string> samples_of(const Plan& plan) {
  std::vector<std::string> all;
  for (auto&& b : plan.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::string& one = all.emplace_back();
      for (const std::byte x : ps::get<Name>(b)[i]) one += static_cast<char>(x);
    }
  return all;
}

/// A plan extended by some stages.
template <class Plan, class... Stages>
auto with(const Plan& plan, const Stages&... stages) {
  return (plan | ... | stages);
}

template <class Rows>
std::vector<int> values_of_rows(const Rows& plan) {
  std::vector<int> all;
  for (auto&& b : plan.epoch(0))
    for (const auto x : b.values().flat()) all.push_back(static_cast<int>(x));
  return all;
}

/// Files whose background reads end only when cancelled.
struct stuck_storage {
  struct reads {
    std::mutex busy;
    std::vector<std::pair<ps::read_listener, std::uint64_t>> waiting;
    std::atomic<int> cancels{0};

    [[nodiscard]] std::size_t pending() {
      const std::scoped_lock lock(busy);
      return waiting.size();
    }
    [[nodiscard]] int cancelled() const { return cancels; }
    void cancel() {
      std::vector<std::pair<ps::read_listener, std::uint64_t>> all;
      {
        const std::scoped_lock lock(busy);
        all.swap(waiting);
      }
      if (!all.empty()) ++cancels;
      for (const auto& [who, tag] : all)
        who.done(who.self, tag, std::make_exception_ptr(ps::error(ps::errc::stopped, "cancelled")));
    }
  };
  ps::memory_files files;
  std::shared_ptr<reads> stuck = std::make_shared<reads>();

  struct session : ps::memory_files::session {
    static constexpr bool views = false;
    std::shared_ptr<reads> stuck;
    session(ps::memory_files::session files, std::shared_ptr<reads> kept)
        : ps::memory_files::session(std::move(files)), stuck(std::move(kept)) {}
    void read_many(std::span<const ps::read_request> requests, ps::read_listener who) const {
      const std::scoped_lock lock(stuck->busy);
      for (const auto& one : requests) stuck->waiting.emplace_back(who, one.tag);
    }
    void cancel() const noexcept { stuck->cancel(); }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files.connect(), stuck}; }
};

/// The samples in order, with a count of the positions computed.
struct counted_order {
  struct bound {
    std::uint64_t epoch = 0;
    std::atomic<std::uint64_t>* computed = nullptr;
    ps::position operator()(std::uint64_t index) const {
      ++*computed;
      return {epoch, index};
    }
  };
  ps::order_input in;
  std::atomic<std::uint64_t>* computed;

  [[nodiscard]] std::uint64_t size() const { return in.size; }
  [[nodiscard]] ps::order_input output() const { return in; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, computed}; }
  [[nodiscard]] std::optional<ps::position> position_of(ps::position at) const { return at; }
};
struct counted {
  using penstock_part = ps::order_tag;
  static constexpr std::string_view stage_name = "counted";
  std::atomic<std::uint64_t>* computed;

  [[nodiscard]] counted_order make(ps::order_input in) const { return {std::move(in), computed}; }
  [[nodiscard]] std::string describe() const { return "counted"; }
};

}  // namespace fetching_test

using namespace fetching_test;

TEST_CASE("run/fetching: webdataset delivers the same samples with every setting and storage") {
  const auto near = shards();
  const auto plan = [](const auto& where, auto... settings) {
    return with(ps::webdataset(where) | ps::shuffle(ps::seed(5)) | ps::repeat(2), settings...) |
           ps::fields<"jpg", "txt"> | ps::batch(8, ps::ragged);
  };
  const auto expected = samples_of<"jpg">(plan(near, ps::workers(1)));
  REQUIRE(expected.size() == 480);
  const auto storage = far(near);
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(3))) == expected);  // fetches ahead by default
  CHECK(storage.peak_in_flight() > 3);
  const std::uint64_t before = storage.bytes();
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(1), ps::prefetch(64))) == expected);
  INFO("each byte is read once, except headers between members and bytes a worker read earlier");
  CHECK(storage.bytes() - before < 3 * before / 2);
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(2), ps::prefetch(1))) == expected);
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(2), ps::prefetch(400_KiB))) == expected);
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(4), ps::prefetch(1000), ps::memory(64_MiB))) == expected);
  CHECK(samples_of<"jpg">(plan(storage, ps::workers(0), ps::prefetch(16))) == expected);
  CHECK(samples_of<"txt">(plan(storage, ps::workers(2))) == samples_of<"txt">(plan(near, ps::workers(1))));
}

TEST_CASE("run/fetching: missing indexes of shards are made ahead, several at once") {
  const auto near = shards(6);
  const auto known = ps::webdataset(near).manifest();
  const auto with_manifest = [&](const auto& where, auto... settings) {
    return with(ps::webdataset(where, known) | ps::shuffle(ps::seed(5)), settings...) | ps::fields<"txt"> |
           ps::batch(12, ps::ragged);
  };
  const auto expected = samples_of<"txt">(with_manifest(near, ps::workers(1)));
  const auto storage = far(near);
  CHECK(samples_of<"txt">(with_manifest(storage, ps::workers(2), ps::prefetch(32))) == expected);
  const auto alone = far(near);
  CHECK(samples_of<"txt">(with_manifest(alone, ps::workers(0), ps::prefetch(32))) == expected);
  CHECK(alone.peak_in_flight() == 1);  // the consumer's thread has no helpers

  const auto reader = ps::webdataset(far(near), known).connect();
  const std::vector<ps::position> one_of_each{{0, 0}, {0, 60}, {0, 61}, {0, 120}, {0, 300}};
  CHECK_FALSE(reader.is_ready());
  reader.get_ready(one_of_each);
  CHECK(reader.key(120) == "2-0");
  CHECK_FALSE(reader.is_ready());  // two shards are left
  reader.get_ready(std::vector<ps::position>{{0, 180}, {0, 240}});
  CHECK(reader.is_ready());
  // a failure is reported where the index is needed
  auto broken = ps::memory_files().add("s-0.tar", std::string(shard(0, 60).size(), 'x'));
  for (std::uint64_t s = 1; s < 6; ++s) broken.add("s-" + std::to_string(s) + ".tar", shard(s, 60));
  const auto worn = ps::webdataset(broken, known).connect();
  worn.get_ready(one_of_each);
  CHECK_THROWS_AS(worn.key(0), ps::error);
}

TEST_CASE("run/fetching: each position is computed once to fetch, and once to evaluate") {
  const auto storage = far(shards(2));
  std::atomic<std::uint64_t> computed{0};
  const auto plan = ps::webdataset(storage) | counted{&computed} | ps::fields<"txt"> |
                    ps::batch(8, ps::ragged) | ps::workers(1);
  CHECK(samples_of<"txt">(plan).size() == 120);
  CHECK(storage.peak_in_flight() > 2);
  CHECK(computed > 120);
  CHECK(computed <= 240);
}

TEST_CASE("run/fetching: prefetch(0) fetches nothing ahead") {
  const auto storage = far(shards(1));
  const auto plan = ps::webdataset(storage) | ps::shuffle(ps::seed(5)) | ps::fields<"jpg"> |
                    ps::batch(8, ps::ragged) | ps::workers(1);
  (void)samples_of<"jpg">(plan | ps::prefetch(1));
  const auto alone = far(shards(1));
  (void)samples_of<"jpg">(ps::webdataset(alone) | ps::shuffle(ps::seed(5)) | ps::prefetch(0) |
                          ps::fields<"jpg"> | ps::batch(8, ps::ragged) | ps::workers(1));
  CHECK(alone.peak_in_flight() == 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the program instead
TEST_CASE("run/fetching: a failed allocation is one sentence when the run is opened") {
  const auto plan = ps::webdataset(far(shards(1))) |
                    ps::prefetch(ps::byte_count(ps::prefetch_stage::max_bytes)) | ps::fields<"txt"> |
                    ps::batch(8, ps::ragged) | ps::workers(1);
  CHECK_THROWS_WITH(plan.open(), Catch::Contains("does not give 281474976710656 bytes") &&
                                     Catch::Contains("write fewer, as in prefetch(64_MiB)"));
}
#endif

TEST_CASE("run/fetching: local files, read and mapped") {
  const penstock_test::temp_dir dir;
  for (std::uint64_t s = 0; s < 3; ++s)
    std::ofstream(dir / ("s-" + std::to_string(s) + ".tar"), std::ios::binary) << shard(s, 60);
  const std::string pattern = (dir / "s-{0..2}.tar").string();
  const auto plan = [](const auto& where, auto... settings) {
    return with(ps::webdataset(where) | ps::shuffle(ps::seed(5)), settings...) | ps::fields<"jpg", "txt"> |
           ps::batch(8, ps::ragged);
  };
  const auto expected = samples_of<"jpg">(plan(shards(3), ps::workers(1)));
  for (const auto access : {ps::file_access::automatic, ps::file_access::read, ps::file_access::map}) {
    const ps::file where(pattern, {.access = access});
    CHECK(samples_of<"jpg">(plan(where, ps::workers(2), ps::prefetch(32))) == expected);
    CHECK(samples_of<"jpg">(plan(where, ps::workers(1), ps::prefetch(4_MiB))) == expected);
  }
}

TEST_CASE("run/fetching: with filters, buffers and joined sources") {
  static const auto near = shards(2), other = shards(3);  // once for all sections
  const auto check = [](const auto& make, const auto& a, const auto& b) {
    const auto expected = samples_of<"jpg">(make(a, b) | ps::workers(1));
    REQUIRE(expected.size() > 50);
    const ps::simulated_storage_options slow{.latency = 1ms, .jitter = 500us};
    const auto far_a = far(a, slow), far_b = far(b, slow);
    const auto distant = make(far_a, far_b);
    CHECK(samples_of<"jpg">(distant | ps::workers(1)) == expected);
    CHECK(samples_of<"jpg">(distant | ps::workers(3)) == expected);
    INFO("by default, more reads run at once than workers could make");
    CHECK(far_a.peak_in_flight() > 3);
    if (far_b.reads() != 0) CHECK(far_b.peak_in_flight() > 1);  // it has fewer samples
  };
  SECTION("filter") {
    check(
        [](const auto& a, const auto&) {
          return ps::webdataset(a) | ps::shuffle(ps::seed(3)) | ps::fields<"jpg", "txt"> |
                 ps::filter([](const auto& s) { return ps::get<"txt">(s).size() % 3 != 0; }) |
                 ps::batch(8, ps::ragged);
        },
        near, other);
  }
  SECTION("shuffle_buffer") {
    check(
        [](const auto& a, const auto&) {
          return ps::webdataset(a) | ps::shuffle_buffer(20) | ps::fields<"jpg", "txt"> |
                 ps::batch(8, ps::ragged);
        },
        near, other);
  }
  SECTION("mix") {
    check(
        [](const auto& a, const auto& b) {
          return ps::mix(ps::weights{0.7, 0.3},
                         ps::webdataset(a) | ps::shuffle(ps::seed(1)) | ps::fields<"jpg">,
                         ps::webdataset(b) | ps::fields<"jpg">) |
                 ps::batch(8, ps::ragged);
        },
        near, other);
  }
  SECTION("concat") {
    check(
        [](const auto& a, const auto& b) {
          return ps::concat(ps::webdataset(a) | ps::fields<"jpg">, ps::webdataset(b) | ps::fields<"jpg">) |
                 ps::shuffle(ps::seed(2)) | ps::batch(8, ps::ragged);
        },
        near, other);
  }
  SECTION("zip") {
    check(
        [](const auto& a, const auto& b) {
          return ps::zip(ps::webdataset(a) | ps::fields<"jpg">,
                         ps::webdataset(b) | ps::take(120) | ps::fields<"txt">) |
                 ps::shuffle(ps::seed(2)) | ps::batch(8, ps::ragged);
        },
        near, other);
  }
}

TEST_CASE("run/fetching: joined sources fetch if one of them does, and have latency if one has") {
  const auto make = [](const auto& a, const auto& b) {
    const auto one = ps::webdataset(a) | ps::fields<"jpg">;
    const auto two = ps::webdataset(b) | ps::shuffle(ps::seed(1)) | ps::fields<"jpg">;
    return std::tuple(ps::mix(ps::weights{0.5, 0.5}, one, two), ps::concat(one, two),
                      ps::zip(one, ps::webdataset(b) | ps::fields<"txt">), ps::concat(one, one));
  };
  const auto near = shards(2);
  const auto distant = far(near);
  const penstock_test::noting_storage copied{near};
  const auto each = [](const auto& joints, auto look) {
    std::apply([&](const auto&... plans) { (look(plans), ...); }, joints);
  };
  each(make(distant, distant), []<class Source>(const Source&) {
    constexpr ps::reader_traits known = ps::traits_of<typename Source::reader>;
    static_assert(known.takes_fetched && known.latency);
  });
  each(make(copied, copied), []<class Source>(const Source&) {
    constexpr ps::reader_traits known = ps::traits_of<typename Source::reader>;
    static_assert(known.takes_fetched && !known.latency);
  });
  each(make(near, near), []<class Source>(const Source& source) {
    constexpr ps::reader_traits known = ps::traits_of<typename Source::reader>;
    static_assert(!known.takes_fetched && !known.latency);
    static_assert(ps::takes_hints<typename Source::reader>);
    auto run = (source | ps::prefetch(64) | ps::batch(4, ps::ragged) | ps::workers(1)).open();
    REQUIRE(run.next());
    CHECK(run.counters().bytes_held < 8_MiB);  // there is no store, which would take at least that
  });
  // one of two, and joined a second time
  const auto nested = [&](const auto& second) {
    const auto both =
        ps::zip(ps::webdataset(near) | ps::fields<"jpg">, ps::webdataset(second) | ps::fields<"txt">);
    return ps::concat(both, both);
  };
  const auto half = nested(distant);
  const auto none = nested(near);
  static_assert(ps::traits_of<decltype(half)::reader>.latency &&
                !ps::traits_of<decltype(none)::reader>.takes_fetched);
  const auto in_batches = [](const auto& source) {
    return source | ps::shuffle(ps::seed(2)) | ps::batch(4, ps::ragged) | ps::workers(1);
  };
  CHECK(samples_of<"txt">(in_batches(half)) == samples_of<"txt">(in_batches(none)));
  CHECK(distant.peak_in_flight() > 2);
}

TEST_CASE("run/fetching: rows of arrays and windows of tokens") {
  const auto rows = ps::memory_files().add("a.npy", npy(300, 500, 1)).add("b.npy", npy(100, 500, 2));
  const auto of_rows = [](const auto& where) {
    return ps::npy_rows<std::uint8_t, 500>(where) | ps::shuffle(ps::seed(1)) | ps::batch(16) | ps::workers(2);
  };
  CHECK(values_of_rows(of_rows(far(rows))) == values_of_rows(of_rows(rows)));
  const auto storage = far(rows);
  (void)values_of_rows(of_rows(storage));
  CHECK(storage.peak_in_flight() > 2);
  const auto text = ps::memory_files().add("t.bin", noise(40'000, 3));
  const auto windows = [](const auto& where) {
    return ps::raw_tokens<std::uint16_t>(where, ps::token_window<64>{}) | ps::shuffle(ps::seed(1)) |
           ps::batch(16) | ps::workers(2);
  };
  CHECK(values_of_rows(windows(far(text))) == values_of_rows(windows(text)));
}

TEST_CASE(
    "run/fetching: a range that cannot be read is an error at its sample, after all batches before it") {
  const auto rows = ps::memory_files().add("a.npy", npy(300, 500, 1)).add("b.npy", npy(300, 500, 2));
  ps::simulated_storage_options options{.latency = 300us};
  options.faults.push_back({.object = 1, .begin = 60'000, .end = 60'010});
  const auto storage = far(rows, options);
  const auto plan = [&](auto... settings) {
    return with(ps::npy_rows<std::uint8_t, 500>(storage), ps::shuffle(ps::seed(7)), settings...) |
           ps::batch(8);
  };
  const auto outcome = [](const auto& of) {
    std::vector<int> seen;
    std::string failed;
    auto run = of.open();
    try {
      for (auto&& b : run)
        for (const auto x : b.values().flat()) seen.push_back(static_cast<int>(x));
    } catch (const ps::error& e) {
      failed = e.what();
    }
    return std::pair(seen, failed);
  };
  const auto expected = outcome(plan(ps::workers(1), ps::prefetch(0)));
  CHECK_THAT(expected.second, Catch::Contains("b.npy") && Catch::Contains("position"));
  for (unsigned workers = 1; workers < 4; ++workers)
    CHECK((outcome(plan(ps::workers(workers), ps::prefetch(64))) == expected));
}

TEST_CASE("run/fetching: batches of any length, also far longer than the usual ones") {
  const auto rows = ps::memory_files().add("a.npy", npy(3000, 40, 1)).add("b.npy", npy(200, 40, 2));
  // four rows in a batch, but a thousand in two batches of free samples
  const auto cost = [](std::uint64_t i) -> std::uint64_t {
    return (i >= 600 && i < 1600) || (i >= 1800 && i < 2800) ? 0 : 10;
  };
  const auto plan = [&](const auto& where, auto... settings) {
    return with(ps::npy_rows<std::uint8_t, 40>(where), settings...) | ps::batch_by(cost, 40) | ps::workers(2);
  };
  const std::vector<int> expected = values_of_rows(plan(rows));
  const ps::simulated_storage_options quick{.latency = 20us};
  CHECK(values_of_rows(plan(far(rows, quick), ps::prefetch(16))) == expected);
  CHECK(values_of_rows(plan(far(rows, quick), ps::prefetch(700))) == expected);
  CHECK(values_of_rows(plan(rows, ps::shuffle(ps::seed(2)))) ==
        values_of_rows(plan(far(rows, quick), ps::shuffle(ps::seed(2)))));
}

TEST_CASE("run/fetching: a run that ends with a thousand reads in flight does not wait for them") {
  const stuck_storage storage{ps::memory_files().add("a.npy", npy(3000, 10'000, 1))};
  const auto plan = ps::npy_rows<std::uint8_t, 10'000>(storage) | ps::shuffle(ps::seed(3)) |
                    ps::prefetch(1200) | ps::batch(8) | ps::workers(2);
  const auto wait_for_reads = [&] {
    while (storage.stuck->pending() < 1000) std::this_thread::yield();
  };
  SECTION("destroyed") {
    auto run = plan.open();
    wait_for_reads();
  }
  SECTION("stopped from another thread, while the consumer waits") {
    auto run = plan.open();
    std::jthread other([&] {
      wait_for_reads();
      run.request_stop();
    });
    for (auto&& b : run) (void)b;
    CHECK(run.stopped());
  }
  SECTION("an exception in the loop") {
    CHECK_THROWS_AS(
        [&] {
          auto run = plan.open();
          wait_for_reads();
          throw 1;
        }(),
        int);
  }
  SECTION("restarted") {
    auto run = plan.open();
    wait_for_reads();
    std::jthread other([&] {
      while (storage.stuck->cancelled() == 0) std::this_thread::yield();
      wait_for_reads();
      run.request_stop();
    });
    for (auto&& b : run.epoch(3)) (void)b;
  }
  CHECK(storage.stuck->pending() == 0);
}

TEST_CASE("run/fetching: restarts and changing limits do not change a byte") {
  const auto near = shards(3);
  const auto plan = [](const auto& where, auto... settings) {
    return with(ps::webdataset(where) | ps::shuffle(ps::seed(9)), settings...) | ps::fields<"jpg"> |
           ps::batch(4, ps::ragged);
  };
  const auto storage = far(near);
  auto run = plan(storage, ps::workers(3), ps::prefetch(100)).open();
  auto calm = plan(near, ps::workers(1)).open();
  ps::rng moves(1, 2, 3);
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    std::uint64_t left = 1 + moves.below(60);
    auto other = calm.epoch(epoch);
    auto here = run.epoch(epoch);
    auto b = here.begin();
    for (auto a = other.begin(); a != other.end() && left != 0; ++a, ++b, --left) {
      REQUIRE(b != here.end());
      REQUIRE((*a).size() == (*b).size());
      for (std::size_t i = 0; i < (*a).size(); ++i) {
        const auto x = ps::get<"jpg">(*a)[i], y = ps::get<"jpg">(*b)[i];
        CHECK(std::equal(x.begin(), x.end(), y.begin(), y.end()));
      }
      run.adjust({.workers = 1 + static_cast<std::int64_t>(moves.below(3)),
                  .ahead = static_cast<std::int64_t>(moves.below(101))});
    }
  }
}
