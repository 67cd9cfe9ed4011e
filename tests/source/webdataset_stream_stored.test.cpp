// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward reading over storages: the same samples as over files, read ahead within bounds.

#include <penstock/source/webdataset_stream.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/deadline.hpp"
#include "support/engine_test.hpp"
#include "support/forward_listing.hpp"
#include "support/held_storage.hpp"
#include "support/raw_tar.hpp"
#include "support/resume_test.hpp"
#include "support/stored.hpp"
#include "support/tar_cases.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace stored_stream_test {

namespace ps = penstock;
using namespace engine_test;
using penstock_test::forward_listing;
using penstock_test::raw_tar;
using penstock_test::web_error_of;
using std::chrono::microseconds;
using lines_type = std::vector<std::string>;

/// An unpacker for bytes between a gzip magic and an end mark, which are as they are.
struct unwrap {
  static constexpr std::string_view unpacker_format = "gzip";
  struct stream {
    void begin() { seen = 0; }
    ps::unpack_step step(ps::bytes_view in, ps::mutable_bytes out, bool) {
      if (in.empty()) return {0, 0, true};
      if (seen < 2) return ++seen, ps::unpack_step{1, 0, false};
      const std::size_t n = std::min<std::size_t>({in.size(), out.size(), 1000});
      std::copy(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n), out.begin());
      return {n, n, false};
    }
    int seen = 0;
  };
};

ps::simulated_storage<ps::memory_files> far_of(const ps::memory_files& files) {
  return ps::simulated_storage(files, {.latency = microseconds(20), .jitter = microseconds(300)});
}

/// Shards of several pieces each, with members of many sizes, some on the borders of pieces, and an empty
/// one.
ps::memory_files large_shards() {
  constexpr std::size_t piece = ps::detail::forward_pieces::piece;
  ps::memory_files files;
  int number = 0;
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{piece - 1024, 1, piece, piece - 513, 300'000, 3 * piece + 7, 0},
        std::vector<std::size_t>{}, std::vector<std::size_t>{100, piece - 2048, piece - 512},
        std::vector<std::size_t>(40, 100'000)}) {
    raw_tar tar;
    for (const std::size_t size : sizes) {
      std::string bytes(size, '\0');
      for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + (i >> 9) + sizes.size());
      tar.member(std::to_string(number) + ".bin", bytes).member(std::to_string(number) + ".cls", "1");
      ++number;
    }
    files.add(std::to_string(files.names().size()) + ".tar", tar.end().bytes);
  }
  return files;
}
/// Says the sizes of its first objects, and lets others wait; knows who asked.
struct size_gate {
  void let(std::size_t objects) {
    {
      const std::scoped_lock held(lock);
      open = objects;
    }
    changed.notify_all();
  }
  void ask(ps::object_id id) {
    std::unique_lock held(lock);
    ++asked[id];
    (std::this_thread::get_id() == here ? by_reader : by_others).insert(id);
    changed.wait(held, [&] { return id < open || ended; });
    if (ended) throw ps::error(ps::errc::stopped, "the question was cancelled");
  }
  [[nodiscard]] std::set<ps::object_id> asked_here() {
    const std::scoped_lock held(lock);
    return by_reader;
  }
  [[nodiscard]] std::set<ps::object_id> asked_elsewhere() {
    const std::scoped_lock held(lock);
    return by_others;
  }
  [[nodiscard]] std::map<ps::object_id, int> times() {
    const std::scoped_lock held(lock);
    return asked;
  }

  std::mutex lock;
  std::condition_variable changed;
  std::size_t open = 0;
  bool ended = false;
  std::thread::id here = std::this_thread::get_id();
  std::map<ps::object_id, int> asked;
  std::set<ps::object_id> by_reader, by_others;
};
struct shy_storage {
  ps::memory_files files;
  std::shared_ptr<size_gate> gate = std::make_shared<size_gate>();

  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {.latency = true};
    std::shared_ptr<size_gate> gate;
    session(ps::memory_files::session good, std::shared_ptr<size_gate> kept)
        : ps::memory_files::session(std::move(good)), gate(std::move(kept)) {}
    [[nodiscard]] std::uint64_t size(ps::object_id id) const {
      gate->ask(id);
      return ps::memory_files::session::size(id);
    }
    void read_many(std::span<const ps::read_request> requests, ps::read_listener who) const {
      for (const auto& one : requests) {
        read(one.object, one.offset, one.into);
        who.done(who.self, one.tag, nullptr);
      }
    }
    void cancel() const noexcept {}
    void end_reads() const noexcept {
      {
        const std::scoped_lock held(gate->lock);
        gate->ended = true;
      }
      gate->changed.notify_all();
    }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files.connect(), gate}; }
};

lines_type over_files(const ps::memory_files& files) {
  const penstock_test::temp_dir dir;
  auto session = files.connect();
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < files.names().size(); ++i) {
    paths.push_back((dir / files.names()[i]).string());
    const auto bytes = ps::text_of(
        session.view(static_cast<ps::object_id>(i), 0, session.size(static_cast<ps::object_id>(i))));
    std::ofstream(paths.back(), std::ios::binary) << bytes;
  }
  const auto lines = forward_listing(ps::webdataset_stream(paths));
  CHECK(forward_listing(ps::webdataset_stream(ps::file(paths))) == lines);
  return lines;
}

/// Shards of 0, 11, 1, 17 and 0 samples, numbered consecutively; 29 in all.
ps::memory_files numbered_shards() {
  ps::memory_files files;
  int value = 0;
  for (const int count : {0, 11, 1, 17, 0}) {
    raw_tar tar;
    for (int i = 0; i < count; ++i, ++value)
      tar.member(std::to_string(value) + ".cls", std::to_string(value));
    files.add(std::to_string(files.names().size()) + ".tar", tar.end().bytes);
  }
  return files;
}
const auto read_number = ps::decode<ps::field<"cls", ps::integer>> |
                         ps::map([](const auto& s) { return static_cast<std::uint64_t>(ps::get<"cls">(s)); });

}  // namespace stored_stream_test

using namespace stored_stream_test;

TEST_CASE("source/webdataset_stream_stored: every dialect and rule, as over files") {
  for (const auto& one : penstock_test::good_tar_cases()) {
    INFO(one.name);
    const auto plain = ps::memory_files().add("t.tar", one.bytes);
    CHECK(forward_listing(ps::webdataset_stream(plain)) == one.lines);
    CHECK(forward_listing(ps::webdataset_stream(far_of(plain))) == one.lines);
    const auto packed = ps::memory_files().add("t.tar.gz", "\x1f\x8b" + one.bytes);
    CHECK(forward_listing(ps::webdataset_stream<unwrap>(far_of(packed))) == one.lines);
    penstock_test::put_in_each_store({{"t.tar", one.bytes}}, [&](const std::string& kind, const auto& where) {
      INFO(kind);
      CHECK(forward_listing(ps::webdataset_stream(where)) == one.lines);
    });
  }
}

TEST_CASE("source/webdataset_stream_stored: errors and their places, as over files") {
  for (const auto& one : penstock_test::bad_tar_cases()) {
    INFO(one.name);
    const auto files = ps::memory_files().add("t.tar", one.bytes);
    const auto check = [&](const ps::error& e) {
      CHECK((e.code() == (one.error.starts_with("the limit is") ? ps::errc::limit : ps::errc::format)));
      CHECK(e.file() == "t.tar");
      CHECK_THAT(e.what(), penstock_test::contains(one.error));
      CHECK(e.offset() == one.offset);
      CHECK(e.key() == one.key);
    };
    check(web_error_of([&] { (void)forward_listing(ps::webdataset_stream(files, {.limit = 1u << 20})); }));
    check(web_error_of(
        [&] { (void)forward_listing(ps::webdataset_stream(far_of(files), {.limit = 1u << 20})); }));
  }
  CHECK_THROWS_WITH(
      forward_listing(ps::webdataset_stream(ps::memory_files().add("t.tar", "\x1f\x8b\x08zzz"))),
      penstock_test::contains("webdataset_stream<unpack_gzip>(...)"));
  CHECK_THROWS_WITH(ps::webdataset_stream(ps::memory_files()), penstock_test::contains("at least one shard"));
}

TEST_CASE("source/webdataset_stream_stored: members on the borders of pieces, whatever is read ahead") {
  const ps::memory_files files = large_shards();
  const lines_type lines = over_files(files);
  REQUIRE(lines.size() == 50);
  CHECK(forward_listing(ps::webdataset_stream(files)) == lines);
  for (const std::uint64_t ahead : {std::uint64_t{0}, std::uint64_t{3} << 20, std::uint64_t{64} << 20}) {
    const auto far = far_of(files);
    const auto data = ps::webdataset_stream(far, {.read_ahead = ahead});
    CHECK(forward_listing(data) == lines);
    CHECK(far.peak_in_flight() <= std::max<std::uint64_t>(2, ahead >> 20));
    CHECK(far.bytes() <= 1u << 24);
  }
  // twice, from the middle, and backwards
  const auto data = ps::webdataset_stream(far_of(files));
  auto reader = data.connect();
  decltype(data)::element sample;
  for (const std::uint64_t shard : {3u, 0u, 2u, 1u, 0u}) {
    reader.seek(0, {shard, 0});
    const auto rest = penstock_test::rest_of(reader, sample);
    const std::size_t before = shard == 0 ? 0 : shard < 3 ? 7 : 10;
    CHECK(rest == lines_type(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end()));
  }
  reader.rewind(0);
  CHECK(reader.next(sample));
  reader.rewind(1);
  CHECK(penstock_test::rest_of(reader, sample) == lines);
}

TEST_CASE("source/webdataset_stream_stored: a window of requests goes ahead, into the next shard") {
  const penstock_test::deadline guard("window");
  const ps::memory_files files = large_shards();
  const penstock_test::held_storage held(files);
  const auto data = ps::webdataset_stream(held, {.read_ahead = 4u << 20});
  auto reader = data.connect();
  CHECK(held.reads->count() == 0);
  lines_type lines;
  std::thread other([&] {
    decltype(data)::element sample;
    lines = penstock_test::rest_of(reader, sample);
  });
  penstock_test::eventually([&] { return held.reads->count() == 4; });
  CHECK(held.reads->offsets() == std::vector<std::uint64_t>{0, 1u << 20, 2u << 20, 3u << 20});
  // the last first: nothing is asked for before the first one was used
  for (const std::size_t last : {3u, 2u, 1u}) held.reads->end(last);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(held.reads->begun() == 4);
  held.reads->end(0);
  penstock_test::eventually([&] { return held.reads->begun() >= 6; });
  std::atomic<bool> over{false};
  std::thread server([&] {
    while (!over) {
      if (held.reads->count() != 0)
        held.reads->end(held.reads->count() - 1);
      else
        std::this_thread::yield();
    }
  });
  other.join();
  over = true;
  server.join();
  CHECK(lines == over_files(files));
}

TEST_CASE(
    "source/webdataset_stream_stored: the next shard's size is asked for ahead, and nothing waits for it") {
  const penstock_test::deadline guard("sizes");
  ps::memory_files files;
  for (int shard = 0; shard < 6; ++shard) {
    raw_tar tar;
    for (int i = 0; i < 3; ++i) tar.member(std::to_string(shard * 3 + i) + ".bin", std::string(700'000, 'x'));
    files.add(std::to_string(shard) + ".tar", tar.end().bytes);
  }
  const lines_type lines = over_files(files);
  const shy_storage shy{files};
  const auto data = ps::webdataset_stream(shy);
  auto reader = data.connect();
  decltype(data)::element sample;
  lines_type seen;
  const auto read = [&](std::size_t samples) {
    for (std::size_t i = 0; i < samples && reader.next(sample); ++i)
      seen.push_back(penstock_test::line_of(sample));
  };
  shy.gate->open = 1;  // that of the first shard alone
  read(3);             // all of it, although the next size is not known
  CHECK(seen.size() == 3);
  penstock_test::eventually([&] { return shy.gate->asked_elsewhere() == std::set<ps::object_id>{1}; });
  shy.gate->let(5);
  penstock_test::eventually([&] { return shy.gate->asked_elsewhere().contains(4); });
  read(9);  // from the second to the fourth
  CHECK(shy.gate->asked_here() == std::set<ps::object_id>{0});
  shy.gate->let(6);
  read(100);
  CHECK(seen == lines);
  for (const auto& [id, times] : shy.gate->times()) CHECK(times <= 2);

  SECTION("a reader that ends does not wait for an answer") {
    const shy_storage silent{files};
    silent.gate->open = 1;
    auto other = ps::webdataset_stream(silent).connect();
    CHECK(other.next(sample));
    penstock_test::eventually([&] { return silent.gate->asked_elsewhere().contains(1); });
  }
}

TEST_CASE("source/webdataset_stream_stored: a piece that fails is an error when its turn comes") {
  const penstock_test::deadline guard("failure");
  const ps::memory_files files = large_shards();
  const lines_type lines = over_files(files);
  const std::uint64_t far_away = 5u << 20;
  const ps::simulated_storage far(
      files, {.latency = microseconds(0), .faults = {{.object = 0, .begin = far_away, .times = 1}}});
  const auto data = ps::webdataset_stream(far);
  auto reader = data.connect();
  decltype(data)::element sample;
  for (int i = 0; i < 4; ++i) {
    REQUIRE(reader.next(sample));
    CHECK(penstock_test::line_of(sample) == lines[static_cast<std::size_t>(i)]);
  }
  const auto failed = web_error_of([&] {
    while (reader.next(sample)) {
    }
  });
  CHECK(failed.code() == ps::errc::io);
  CHECK(failed.file() == "0.tar");
  CHECK(failed.offset().value() >= 3u << 20);
  CHECK_FALSE(reader.next(sample));
  reader.rewind(0);  // it has passed
  CHECK(penstock_test::rest_of(reader, sample) == lines);

  const ps::simulated_storage often(files, {.latency = microseconds(0), .failing = 0.3});
  CHECK(forward_listing(ps::webdataset_stream(
            ps::retrying(often, {.initial_backoff = std::chrono::milliseconds(1), .budget = 0}))) == lines);

  const auto missing = files.sidecars(ps::sidecar{".gone"});
  const auto e = web_error_of([&] { (void)forward_listing(ps::webdataset_stream(far_of(missing))); });
  CHECK(e.file() == "0.tar.gone");
}

TEST_CASE("source/webdataset_stream_stored: after every batch the rest matches an uninterrupted run") {
  const penstock_test::deadline guard("resume");
  const ps::memory_files files = numbered_shards();
  const auto near = ps::webdataset_stream(files);
  const auto far = ps::webdataset_stream(far_of(files));
  static_assert(ps::resumable<decltype(far | read_number | ps::batch(4))>);
  check_all_stops(far | read_number | ps::map(noisy) | ps::batch(4));
  check_all_stops(near | read_number | ps::batch(1));
  check_all_stops(far | ps::take(7) | ps::repeat(3) | ps::skip(2) | read_number | ps::batch(4));

  // a state of a run over files serves here, and the other way round
  const penstock_test::temp_dir dir;
  std::vector<std::string> paths;
  auto session = files.connect();
  for (ps::object_id i = 0; i < 5; ++i) {
    paths.push_back((dir / files.names()[i]).string());
    std::ofstream(paths.back(), std::ios::binary) << ps::text_of(session.view(i, 0, session.size(i)));
  }
  auto run = (ps::webdataset_stream(paths) | read_number | ps::batch(5) | ps::workers(1)).open();
  for (int i = 0; i < 3; ++i) CHECK(run.next());
  const auto resumed =
      engine_test::values_of(*(far | read_number | ps::batch(5) | ps::workers(1)).open(run.state()).next());
  CHECK(resumed == engine_test::values_of(*run.next()));
  CHECK(far.fingerprint() == ps::webdataset_stream(paths).fingerprint());
}

TEST_CASE("source/webdataset_stream_stored: the run counts its requests, and ends them when it stops") {
  const penstock_test::deadline guard("stop");
  const ps::memory_files files = numbered_shards();
  {
    const ps::simulated_storage far(files, {.latency = microseconds(10)});
    auto run = (ps::webdataset_stream(far) | ps::take(20) | ps::shuffle_buffer(4) | read_number |
                ps::batch(5) | ps::workers(2))
                   .open();
    while (run.next()) {
    }
    CHECK(run.counters().storage.requests >= 4);
  }
  const auto stuck = ps::simulated_storage(files, {.latency = std::chrono::hours(1)});
  const auto plan = ps::webdataset_stream(stuck) | read_number | ps::batch(5) | ps::workers(2);
  {
    auto run = plan.open();
    penstock_test::eventually([&] { return stuck.in_flight() != 0; });
  }
  CHECK(stuck.in_flight() == 0);
  auto run = plan.open();
  std::thread stopper([&] {
    penstock_test::eventually([&] { return stuck.in_flight() != 0; });
    run.request_stop();
  });
  const auto next = run.next();
  CHECK_FALSE(next);
  stopper.join();
}

TEST_CASE("source/webdataset_stream_stored: no allocation per sample in the steady state") {
  raw_tar tar;
  for (int i = 0; i < 300; ++i) tar.member(std::to_string(1000 + i) + ".bin", std::string(50'000, 'x'));
  const auto data = ps::webdataset_stream(ps::memory_files().add("t.tar", tar.end().bytes));
  auto reader = data.connect();
  decltype(data)::element sample;
  bool all = true;
  for (int i = 0; i < 100; ++i) all = reader.next(sample) && all;
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 100; i < 300; ++i) all = reader.next(sample) && all;
        }) == 0);
  CHECK(all);
}

TEST_CASE("source/webdataset_stream_stored: a token may stop a run while it opens and while it ends") {
  const penstock_test::deadline guard("tokens");
  const auto far = far_of(numbered_shards());
  for (const unsigned workers : {0u, 2u}) {
    const auto loader = ps::webdataset_stream(far) | read_number | ps::batch(2) | ps::workers(workers);
    std::stop_source before;
    before.request_stop();
    auto stopped = loader.open(before.get_token());
    CHECK(stopped.stopped());
    CHECK(stopped.next().ended());
    for (int round = 0; round < 300; ++round) {
      std::stop_source source;
      std::atomic<bool> open{false};
      std::thread other([&] {
        while (!open && round % 2 == 0) {
        }
        for (std::atomic<int> moment{0}; moment < round * 20;) ++moment;
        source.request_stop();
      });
      {
        const auto run = loader.open(source.get_token());
        open = true;
      }
      other.join();
    }
  }
}
