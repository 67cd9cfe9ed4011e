// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/windows.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/core/random.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/engine_test.hpp"
#include "support/faults.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace windows_test {

using codec_test::caught;
using penstock_test::contains;

/// A table with a column of episodes, a number, and an array for each row.
struct table {
  std::vector<std::uint64_t> lengths;  // of episodes, also empty ones
  std::vector<std::int64_t> episode;
  std::vector<double> y;
  std::vector<std::array<float, 3>> x;
  std::vector<std::uint64_t> begin, end;  // by row: its episode

  explicit table(std::vector<std::uint64_t> given) : lengths(std::move(given)) {
    for (std::size_t e = 0; e < lengths.size(); ++e) {
      const std::uint64_t first = episode.size();
      for (std::uint64_t i = 0; i < lengths[e]; ++i) {
        const auto row = static_cast<float>(episode.size());
        x.push_back({row, row + 0.25f, row + 0.5f});
        y.push_back(1000 + row);
        episode.push_back(static_cast<std::int64_t>(e * 7 % 97) - 3);  // in no order
        begin.push_back(first);
        end.push_back(first + lengths[e]);
      }
    }
  }
  [[nodiscard]] auto rows() const {
    return ps::zip<"episode", "x", "y">(ps::from(episode), ps::from(x), ps::from(y));
  }
};
table random_table(std::uint64_t seed, std::uint64_t count, std::uint64_t longest) {
  std::uint64_t state = seed;
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t e = 0; e < count; ++e) lengths.push_back(1 + (state = ps::mix64(state + 1)) % longest);
  return table(std::move(lengths));
}

/// A window, as the test makes it and as a batch has it.
struct window {
  std::int64_t episode = 0, step = 0;
  std::vector<float> x;
  std::vector<double> y;
  std::vector<bool> pad;
  friend bool operator==(const window&, const window&) = default;
};
/// LeRobotDataset._get_query_indices, of lerobot 0.4.4, row by row.
window window_at(const table& t, std::uint64_t row, const std::vector<std::int64_t>& offsets) {
  window w{t.episode[row], static_cast<std::int64_t>(row - t.begin[row]), {}, {}, {}};
  for (const std::int64_t delta : offsets) {
    const auto start = static_cast<std::int64_t>(t.begin[row]), end = static_cast<std::int64_t>(t.end[row]),
               at = static_cast<std::int64_t>(row) + delta;
    const auto index = static_cast<std::size_t>(std::max(start, std::min(end - 1, at)));
    w.pad.push_back(at < start || at >= end);
    w.x.insert(w.x.end(), t.x[index].begin(), t.x[index].end());
    w.y.push_back(t.y[index]);
  }
  return w;
}
std::vector<window> windows_of(const table& t, const std::vector<std::int64_t>& offsets, std::uint64_t stride,
                               bool pad) {
  std::vector<window> all;
  const std::int64_t before = std::max<std::int64_t>(0, -*std::ranges::min_element(offsets));
  for (std::uint64_t row = 0; row < t.episode.size(); ++row) {
    const auto step = static_cast<std::int64_t>(row - t.begin[row]) - (pad ? 0 : before);
    if (step < 0 || step % static_cast<std::int64_t>(stride) != 0) continue;
    window made = window_at(t, row, offsets);
    if (pad || !std::ranges::count(made.pad, true)) all.push_back(std::move(made));
  }
  return all;
}
template <class Batch>
void add_batch(std::vector<window>& all, const Batch& b) {
  const auto x = ps::get<"x">(b);
  const auto y = ps::get<"y">(b);
  const auto pad = ps::get<"is_pad">(b);
  for (std::size_t i = 0; i < b.valid_size(); ++i) {
    window w{ps::get<"episode">(b)[i], ps::get<"step">(b)[i], {}, {}, {}};
    REQUIRE(x.shape()[2] == 3);
    for (const float one : x[i].flat()) w.x.push_back(one);
    for (const double one : y[i].flat()) w.y.push_back(one);
    for (const bool one : pad[i].flat()) w.pad.push_back(one);
    all.push_back(std::move(w));
  }
}
template <class Plan>
std::vector<window> read(const Plan& plan) {
  std::vector<window> all;
  for (auto&& b : plan) add_batch(all, b);
  return all;
}
/// A sample as one number, for the oracles of orders.
inline constexpr auto digest = [](const auto& sample) {
  std::uint64_t h = static_cast<std::uint64_t>(ps::get<"step">(sample));
  for (const double one : ps::get<"y">(sample).flat()) h = h * 31 + static_cast<std::uint64_t>(one);
  for (const bool one : ps::get<"is_pad">(sample).flat()) h = h * 2 + (one ? 1 : 0);
  return h;
};

template <class T>
std::string written(const std::filesystem::path& path, const ps::extents& shape, std::span<const T> values) {
  const auto bytes = ps::npy_bytes<T>(shape, values);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}
template <class F>
std::string sentence(F&& f) {
  const auto thrown = caught(std::forward<F>(f));
  return thrown.line;
}

}  // namespace windows_test

using namespace windows_test;

TEST_CASE("source/windows: rows before and after each row, clamped to its episode") {
  const std::vector<std::vector<std::int64_t>> lists = {
      {0},  {-1, 0, 1},        {-3},
      {5},  {-2, -2, 0, 7, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
      {60}, {-60, 60},         {std::int64_t{1} << 62, -(std::int64_t{1} << 62)}};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const table t = random_table(seed, 1 + seed * 3, seed % 2 == 0 ? 50 : 5);
    for (const auto& offsets : lists)
      for (const std::uint64_t stride : {1u, 2u, 7u, 1000u}) {
        CAPTURE(seed, offsets, stride);
        const auto source = ps::windows<"episode">(t.rows(), {.stride = stride, .at = offsets});
        const auto expected = windows_of(t, offsets, stride, true);
        REQUIRE(source.size() == expected.size());
        REQUIRE(read(source | ps::batch(7) | ps::workers(0)) == expected);
        const auto inside = windows_of(t, offsets, stride, false);
        const auto make = [&] {
          return ps::windows<"episode">(t.rows(), {.stride = stride, .at = offsets, .pad = false});
        };
        if (inside.empty())
          CHECK_THAT(sentence([&] { static_cast<void>(make()); }), contains("no episode has the"));
        else
          REQUIRE(read(make() | ps::batch(5) | ps::workers(2)) == inside);
      }
  }
}

TEST_CASE("source/windows: consecutive rows that never cross an episode") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const table t = random_table(seed + 100, 20, 50);
    for (const std::uint64_t length : {1u, 2u, 16u, 45u})
      for (const std::uint64_t stride : {1u, 3u, 16u, 64u}) {
        CAPTURE(seed, length, stride);
        std::vector<std::int64_t> offsets;
        for (std::uint64_t i = 0; i < length; ++i) offsets.push_back(static_cast<std::int64_t>(i));
        const auto source = ps::windows<"episode">(t.rows(), {.length = length, .stride = stride});
        REQUIRE(read(source | ps::batch(7) | ps::workers(0)) == windows_of(t, offsets, stride, false));
      }
  }
}

TEST_CASE("source/windows: one row, one episode, and none") {
  const table one({1});
  CHECK(read(ps::windows<"episode">(one.rows(), {.at = {-1, 0, 2}}) | ps::batch(4)) ==
        windows_of(one, {-1, 0, 2}, 1, true));
  CHECK(ps::windows<"episode">(one.rows(), {.length = 1}).size() == 1);
  const table none({});
  const auto empty = ps::windows<"episode">(none.rows(), {.at = {0, 1}});
  CHECK(empty.size() == 0);
  for (auto&& b : empty | ps::batch(4) | ps::allow_empty) FAIL("a batch of " << b.size());

  // without a name all rows are one episode; numpy: sliding_window_view(arange(7), 3)[::2]
  const auto numbers = ps::from({0, 1, 2, 3, 4, 5, 6});
  std::vector<std::vector<int>> seen;
  for (auto&& b : ps::windows(numbers, {.length = 3, .stride = 2}) | ps::batch(1))
    seen.emplace_back(b.values().flat().begin(), b.values().flat().end());
  CHECK(seen == std::vector<std::vector<int>>{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}});
}

TEST_CASE("source/windows: columns with offsets of their own, as delta_timestamps") {
  const table t = random_table(3, 9, 30);
  const std::vector<std::int64_t> past{-3, 0}, chunk{0, 1, 2, 3, 4};
  // at 30 rows per second, -0.1 s are 3 rows
  const auto source = ps::windows<"episode">(t.rows(), {.rate = 30}, ps::column_at<"x">{-0.1, 0.0},
                                             ps::column_at<"y">(ps::row_offsets::from_to(0, 4)));
  std::uint64_t row = 0;
  for (auto&& b : source | ps::batch(8)) {
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(ps::get<"episode">(b)[0])>, std::int64_t>);
    for (std::size_t i = 0; i < b.size(); ++i, ++row) {
      const window x = window_at(t, row, past), y = window_at(t, row, chunk);
      CHECK(ps::get<"episode">(b)[i] == t.episode[row]);
      CHECK(ps::get<"step">(b)[i] == x.step);
      CHECK(std::ranges::equal(ps::get<"x">(b)[i].flat(), x.x));
      CHECK(std::ranges::equal(ps::get<"x_is_pad">(b)[i].flat(), x.pad));
      CHECK(std::ranges::equal(ps::get<"y">(b)[i].flat(), y.y));
      CHECK(std::ranges::equal(ps::get<"y_is_pad">(b)[i].flat(), y.pad));
    }
  }
  CHECK(row == t.episode.size());
  CHECK(source.fingerprint() != ps::windows<"episode">(t.rows(), {.rate = 30}, ps::column_at<"y">{-0.1, 0.0},
                                                       ps::column_at<"x">(ps::row_offsets::from_to(0, 4)))
                                    .fingerprint());

  // a column without offsets keeps the value of the row, of any type
  std::vector<std::string> task;
  for (std::size_t i = 0; i < t.episode.size(); ++i) task.push_back("task " + std::to_string(i));
  const auto texts = ps::zip<"task", "y", "step">(ps::from(task), ps::from(t.y), ps::from(t.begin));
  std::size_t at = 0;
  for (auto&& s : ps::windows(texts, {}, ps::column_at<"y">{0, 1})) {
    static_assert(std::remove_cvref_t<decltype(s)>::size == 4);  // the table has a "step" of its own
    CHECK(ps::get<"task">(s) == task[at]);
    CHECK(ps::get<"step">(s) == t.begin[at]);
    CHECK(ps::get<"y">(s).values()[0] == t.y[at++]);
  }
  CHECK(at == task.size());
}

TEST_CASE("source/windows: the values of lerobot 0.4.4") {
  // _get_query_indices for episodes of 3, 1 and 4 rows and delta_timestamps of [-0.1, 0.0, 0.1, 0.2] at 10
  // fps
  const std::vector<std::vector<int>> indices = {{0, 0, 1, 2}, {0, 1, 2, 2}, {1, 2, 2, 2}, {3, 3, 3, 3},
                                                 {4, 4, 5, 6}, {4, 5, 6, 7}, {5, 6, 7, 7}, {6, 7, 7, 7}};
  const std::vector<std::vector<bool>> padding = {{true, false, false, false}, {false, false, false, true},
                                                  {false, false, true, true},  {true, false, true, true},
                                                  {true, false, false, false}, {false, false, false, false},
                                                  {false, false, false, true}, {false, false, true, true}};
  const auto rows =
      ps::zip<"index", "episode">(ps::from({0, 1, 2, 3, 4, 5, 6, 7}), ps::from({0, 0, 0, 1, 2, 2, 2, 2}));
  std::size_t i = 0;
  for (auto&& s : ps::windows<"episode">(rows, {.at = {-0.1, 0.0, 0.1, 0.2}, .rate = 10}) | ps::workers(0)) {
    CHECK(std::ranges::equal(ps::get<"index">(s).values(), indices[i]));
    CHECK(std::ranges::equal(ps::get<"is_pad">(s).values(), padding[i++]));
  }
  CHECK(i == 8);
}

TEST_CASE("source/windows: times that are not even") {
  const std::vector<double> time{0, 0.1, 0.25, 0.3, 0.35, 7, 7.1};
  const std::vector<int> index{0, 1, 2, 3, 4, 5, 6};
  const std::vector<std::string> name{"a", "a", "a", "a", "a", "b", "b"};
  const auto rows = ps::zip<"index", "name", "t">(ps::from(index), ps::from(name), ps::from(time));
  const auto source = ps::windows<"name", "t">(rows, {.at = {-0.1, 0.0, 0.06, 0.2}, .tolerance = 0.065});
  std::vector<std::vector<int>> seen;
  std::vector<std::vector<bool>> pads;
  for (auto&& s : source | ps::workers(0)) {
    seen.emplace_back(ps::get<"index">(s).values().begin(), ps::get<"index">(s).values().end());
    pads.emplace_back(ps::get<"is_pad">(s).values().begin(), ps::get<"is_pad">(s).values().end());
  }
  CHECK(
      seen ==
      std::vector<std::vector<int>>{
          {0, 0, 1, 2}, {0, 1, 1, 3}, {1, 2, 3, 4}, {2, 3, 4, 4}, {2, 4, 4, 4}, {5, 5, 6, 6}, {5, 6, 6, 6}});
  CHECK(pads == std::vector<std::vector<bool>>{{true, false, false, false},
                                               {false, false, false, false},
                                               {false, false, false, true},
                                               {false, false, false, true},
                                               {false, false, false, true},
                                               {true, false, false, true},
                                               {false, false, false, true}});
  const auto exact = ps::windows<"name", "t">(rows, {.at = {0.0, 0.1}});
  const std::string why = sentence([&] {
    for (auto&& s : exact | ps::workers(0)) static_cast<void>(s);
  });
  CHECK_THAT(
      why, contains("there is no row at 0.2 s, which is 0.1 s from row 1 (`.at`); the nearest, row 2, is at "
                    "0.25 s: write other offsets, or a larger .tolerance than 1e-04"));
  // the row of a state's times is read once; a list does as well
  const auto known = ps::episodes_of(ps::from(name), time);
  CHECK(known.times().size() == 7);
  CHECK(ps::windows(rows | ps::fields<"index">, known, {.at = {0.0, 0.05}, .tolerance = 0.1}).size() == 7);
  CHECK(ps::episodes_of(ps::from(name), ps::from(time)).fingerprint() == known.fingerprint());
  CHECK_THAT(sentence([&] {
               static_cast<void>(ps::episodes_of(ps::from(name), std::vector<double>{1, 2, 2, 3, 4, 5, 6}));
             }),
             contains("row 2 has the time 2 after 2; the times of an episode must ascend"));
  CHECK_THAT(sentence([&] { static_cast<void>(ps::episodes_of(ps::from(name), std::vector<double>{1})); }),
             contains("there are 1 times for 7 rows"));
}

TEST_CASE("source/windows: one order for any number of ranks and workers, with shuffle, and exact resuming") {
  const table t = random_table(11, 6, 20);
  const auto source = ps::windows<"episode">(t.rows(), {.at = {-2, 0, 3}}) | ps::map(digest);
  const auto whole = engine_test::read_plan(source | ps::shuffle(ps::seed(5)) | ps::batch(1), 2);
  for (std::uint64_t world = 1; world <= 12; ++world) {
    std::vector<std::vector<engine_test::batches>> ranks;
    for (std::uint64_t rank = 0; rank < world; ++rank)
      ranks.push_back(engine_test::read_plan(source | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) |
                                                 ps::batch(2) | ps::workers(static_cast<unsigned>(rank % 3)),
                                             2));
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      engine_test::numbers joined, expected;
      for (std::size_t step = 0; step < ranks[0][epoch].size(); ++step)
        for (const auto& rank : ranks)
          joined.insert(joined.end(), rank[epoch][step].begin(), rank[epoch][step].end());
      for (const auto& b : whole[epoch]) expected.insert(expected.end(), b.begin(), b.end());
      CAPTURE(world, epoch);
      CHECK(joined == expected);
    }
  }
  engine_test::check_all_stops(source | ps::shuffle(ps::seed(5)) | ps::batch(8));
  engine_test::check_elastic(
      [&](std::uint64_t rank, std::uint64_t world, std::uint64_t b) {
        return source | ps::shuffle(ps::seed(5)) | ps::shard(rank, world) | ps::batch(b);
      },
      12, 3, 4, 1);
}

TEST_CASE("source/windows: mixing, joining, and a shuffle by shards") {
  const table a = random_table(21, 8, 20), b = random_table(22, 5, 40);
  const auto left = ps::windows<"episode">(a.rows(), {.at = {-1, 0}}) | ps::map(digest);
  const auto right = ps::windows<"episode">(b.rows(), {.length = 3}) | ps::map(digest);
  const auto mixed = ps::mix(ps::weights{0.7, 0.3}, left | ps::shuffle(ps::seed(1)), right);
  engine_test::check_all_stops(mixed | ps::batch(8), 1);
  const auto joined = ps::concat(left, right);
  CHECK(joined.size() == left.source().size() + right.source().size());
  engine_test::check_all_stops(joined | ps::shuffle(ps::seed(2)) | ps::batch(8), 1);

  // shards of rows are shards of windows: those whose own row is in it
  const penstock_test::temp_dir dir;
  std::vector<float> values(60);
  for (std::size_t i = 0; i < 60; ++i) values[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < 3; ++i)
    written<float>(dir / ("s" + std::to_string(i) + ".npy"), ps::extents(20),
                   std::span(values).subspan(i * 20, 20));
  const auto rows = ps::npy_rows<float>((dir / "s{0..2}.npy").string());
  const std::vector<std::uint64_t> lengths{10, 25, 25};
  CHECK(*ps::windows(rows, ps::episodes(lengths), {.at = {-1, 0}}).starts() ==
        std::vector<std::uint64_t>{0, 20, 40, 60});
  // windows begin at the rows 0, 4; 10, 14, 18, 22, 26; 35, 39, 43, 47, 51
  const auto sparse = ps::windows(rows, ps::episodes(lengths), {.length = 6, .stride = 4});
  CHECK(sparse.size() == 12);
  CHECK(*sparse.starts() == std::vector<std::uint64_t>{0, 5, 9, 12});
  CHECK_THAT(sparse.connect().key({0, 5}), contains("s1.npy:2"));
  CHECK(ps::windows(rows, ps::episodes(lengths), {.length = 6, .stride = 4}).fingerprint() ==
        sparse.fingerprint());
  CHECK(ps::windows(rows, ps::episodes(lengths), {.length = 6, .stride = 5}).fingerprint() !=
        sparse.fingerprint());
  const auto shuffled = sparse | ps::shuffle(ps::seed(3), ps::window(1)) | ps::batch(1) | ps::workers(0);
  for (auto&& one : shuffled.epoch(0)) {
    const auto v = one.values().flat();  // across files
    for (std::size_t i = 1; i < v.size(); ++i) CHECK(v[i] == v[0] + static_cast<float>(i));
  }
}

TEST_CASE("source/windows: npy files from every storage, in one copy, with rows of any shape") {
  const penstock_test::temp_dir dir;
  const std::vector<std::uint64_t> lengths{7, 0, 1, 12, 3};
  std::vector<float> values(23 * 6);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::span<const float> all(values);
  const ps::episodes known(lengths);
  written<float>(dir / "a0.npy", ps::extents(9, 2, 3), all.first(9 * 6));
  written<float>(dir / "a1.npy", ps::extents(14, 2, 3), all.subspan(9 * 6));
  const std::string pattern = (dir / "a{0,1}.npy").string();
  const auto check = [&](const auto& source) {
    std::vector<std::vector<float>> expected, seen;
    std::uint64_t begin = 0;
    for (const std::uint64_t length : lengths) {
      for (std::uint64_t row = begin; row < begin + length; ++row) {
        std::vector<float> one;
        for (std::int64_t delta : {-1, 0, 1, 2, 3}) {
          const auto at = std::clamp(static_cast<std::int64_t>(row) + delta, static_cast<std::int64_t>(begin),
                                     static_cast<std::int64_t>(begin + length) - 1);
          for (std::size_t i = 0; i < 6; ++i) one.push_back(values[static_cast<std::size_t>(at) * 6 + i]);
        }
        expected.push_back(std::move(one));
      }
      begin += length;
    }
    for (const unsigned workers : {0u, 2u}) {
      seen.clear();
      for (auto&& b : source | ps::batch(4) | ps::workers(workers) | ps::prefetch(16)) {
        const auto v = b.values();
        CHECK(v.shape() == ps::extents(b.size(), 5u, 2u, 3u));
        for (std::size_t i = 0; i < b.size(); ++i) seen.emplace_back(v[i].flat().begin(), v[i].flat().end());
      }
      CHECK(seen == expected);
    }
    seen.clear();
    for (const auto& one : source | ps::workers(1))
      seen.emplace_back(one.values().begin(), one.values().end());
    CHECK(seen == expected);
  };
  const ps::window_options options{.at = {-1, 0, 1, 2, 3}};
  check(ps::windows(ps::npy_rows<float>(pattern), known, options));
  check(ps::windows(ps::npy_rows<float, 2, 3>(pattern), known, options));
  check(ps::windows(ps::npy_rows<float>(ps::file(pattern)), known, options));
  const auto memory = ps::memory_files()
                          .add("0", ps::npy_bytes<float>(ps::extents(9, 2, 3), all.first(9 * 6)))
                          .add("1", ps::npy_bytes<float>(ps::extents(14, 2, 3), all.subspan(9 * 6)));
  check(ps::windows(ps::npy_rows<float>(memory), known, options));
  check(ps::windows(
      ps::npy_rows<float>(ps::simulated_storage(memory, {.latency = std::chrono::microseconds(50)})), known,
      options));
  // to slots with gaps, row by row
  std::size_t first = 0;
  for (auto&& b : ps::windows(ps::npy_rows<float>(pattern), known, options) | ps::batch(4, ps::pitched<64>)) {
    const auto v = b.values();
    for (std::size_t i = 0; i < b.size(); ++i)
      for (std::size_t k = 0; k < 6; ++k) CHECK(v[i](1, k / 3, k % 3) == values[(first + i) * 6 + k]);
    first += b.size();
  }
  CHECK(first == 23);
  // joined with others, and through a function that owns what it returns
  const auto tripled = ps::zip<"v">(ps::npy_rows<float>(pattern)) | ps::map([](const auto& r) {
                         const auto v = ps::get<"v">(r).flat();
                         return std::vector<float>(v.begin(), v.end());
                       });
  for (auto&& b : ps::windows(tripled, known, {.at = {0, 2}}) | ps::batch(2))
    CHECK(b.values().shape()[2] == 6);
  // numbers of the episodes in a file beside them
  std::vector<std::int64_t> numbers;
  for (std::size_t e = 0; e < lengths.size(); ++e)
    numbers.insert(numbers.end(), static_cast<std::size_t>(lengths[e]), static_cast<std::int64_t>(e));
  const std::string episode =
      written<std::int64_t>(dir / "e.npy", ps::extents(23), std::span<const std::int64_t>(numbers));
  const auto found = ps::episodes_of(ps::npy_rows<std::int64_t>(episode));
  CHECK(found.count() == 4);
  check(ps::windows(ps::npy_rows<float>(pattern), found, options));
  const auto both = ps::windows<"e">(
      ps::zip<"v", "e">(ps::npy_rows<float>(pattern), ps::npy_rows<std::int64_t>(episode)), options);
  for (auto&& b : both | ps::batch(23)) {
    CHECK(ps::get<"v">(b).shape() == ps::extents(23, 5, 2, 3));
    CHECK(std::ranges::equal(ps::get<"e">(b).flat(), numbers));
  }
  // of columns that are not used nothing is read: not even that a file is gone
  std::filesystem::copy_file(episode, dir / "gone.npy");
  const auto unused =
      ps::windows(ps::zip<"v", "gone">(ps::npy_rows<float>(pattern),
                                       ps::npy_rows<std::int64_t>((dir / "gone.npy").string())),
                  known, options);
  std::filesystem::remove(dir / "gone.npy");
  std::size_t read_rows = 0;
  for (auto&& b : unused | ps::fields<"v", "is_pad"> | ps::batch(8)) {
    CHECK(ps::get<"v">(b).shape() == ps::extents(b.size(), 5, 2, 3));
    read_rows += b.size();
  }
  CHECK(read_rows == 23);
  // and in an index that is kept
  const auto index = ps::derive(
      ps::npy_rows<std::int64_t>(episode), "episode", [](const auto& one) { return one.flat()[0]; },
      dir.path().string());
  CHECK(ps::episodes_of(index).fingerprint() == found.fingerprint());
  check(ps::windows(ps::npy_rows<float>(pattern), ps::episodes_of(index), options));
}

TEST_CASE("source/windows: a file that is cut off while rows are copied together is an error") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  std::vector<float> values(60'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  const std::string path =
      written<float>(dir / "x.npy", ps::extents(15'000, 4), std::span(std::as_const(values)));
  std::size_t next = 0;
  bool whole = true;
  const auto cut = caught([&] {
    for (auto&& b : ps::windows(ps::npy_rows<float>(path), {.length = 100, .stride = 100}) | ps::batch(1) |
                        ps::workers(0)) {
      for (const float one : b.values().flat()) whole &= one == values[next++];
      if (next == 4000) std::filesystem::resize_file(path, 200);
    }
  });
  CHECK(whole);
  CHECK(next >= 4000);
  CHECK(cut.code == ps::errc::io);
  CHECK_THAT(cut.line, contains("x.npy") && contains("cut off or changed while it was mapped"));
}

TEST_CASE("source/windows: nothing is allocated per sample") {
  const table t = random_table(5, 40, 50);
  const auto loader =
      ps::windows<"episode">(t.rows(), {.at = {-1, 0, 1, 2}}) | ps::batch(16) | ps::workers(0);
  auto run = loader.open();
  const auto pass = [&] {
    std::uint64_t count = 0;
    for (auto epoch : run.epochs(run.state().epoch + 1)) {
      for (auto&& b : epoch) count += b.size();
    }
    return count;
  };
  CHECK(pass() == t.episode.size());
  const std::uint64_t before = penstock_test::allocations;
  CHECK(pass() == t.episode.size());
  CHECK(penstock_test::allocations - before < 8);
}

TEST_CASE("source/windows: what cannot be is one sentence") {
  const table t({5, 3});
  const auto rows = t.rows();
  const auto refused = [&](const ps::window_options& options) {
    return sentence([&] { static_cast<void>(ps::windows<"episode">(rows, options)); });
  };
  CHECK_THAT(refused({}), contains("neither `.length` nor `.at` says which rows a window has"));
  CHECK_THAT(refused({.at = {}}), contains("neither `.length` nor `.at`"));
  CHECK_THAT(refused({.length = 0}), contains("neither `.length` nor `.at`"));
  CHECK_THAT(refused({.length = 2, .stride = 0}), contains("`.stride` is 0; write 1"));
  CHECK_THAT(refused({.length = 2, .at = {0}}), contains("both say which rows"));
  CHECK_THAT(refused({.length = 6}), contains("no episode has 6 rows; the longest of 2 has 5"));
  CHECK_THAT(refused({.length = ~std::uint64_t{0}}), contains("no episode has 18446744073709551615 rows"));
  const auto many = ps::generated(std::uint64_t{1} << 61, [](std::uint64_t i) { return i; });
  CHECK_THAT(sentence([&] { static_cast<void>(ps::windows(many, {.length = std::uint64_t{1} << 61})); }),
             contains("a window has at most 2147483648 rows, and `.length` is 2305843009213693952"));
  CHECK_THAT(refused({.at = {-3, 2}, .pad = false}),
             contains("no episode has the 6 rows of a window; the longest "
                      "of 2 has 5; leave out `.pad = false`"));
  CHECK_THAT(refused({.at = {0, 9223372036854775807}}), contains("is beyond 2^62 rows"));
  CHECK_THAT(refused({.at = {0.0, 0.1}}), contains("the times of rows are not known; write `.rate`"));
  CHECK_THAT(
      refused({.at = {0.0, 0.05}, .rate = 30}),
      contains("the offset 0.05 s of `.at` lies between rows: at 30 rows per second the nearest is at "
               "0.06666666666666667 s; write a multiple of 0.03333333333333333 s, or a larger .tolerance"));
  CHECK_THAT(refused({.at = {0.0, 1e300}, .rate = 30}), contains("beyond 2^62 rows"));
  CHECK_THAT(refused({.at = {0.0}, .rate = -1}), contains("`.rate` is -1"));
  CHECK_THAT(refused({.at = {0.0}, .rate = 30, .tolerance = -1}), contains("`.tolerance` is -1"));
  CHECK_THAT(
      sentence([&] { static_cast<void>(ps::windows<"episode">(rows, {.at = {1}}, ps::column_at<"x">{0})); }),
      contains("`.length` and `.at` are for all columns"));
  CHECK_THAT(sentence([&] { static_cast<void>(ps::windows<"episode">(rows, {}, ps::column_at<"x">{})); }),
             contains("column 'x' names no rows"));
  CHECK_THAT(
      sentence([&] {
        static_cast<void>(ps::windows(rows, ps::episodes(std::vector<std::uint64_t>{5, 4}), {.at = {0}}));
      }),
      contains("the episodes have 9 rows, and there are 8"));

  // an episode that comes again, in a file that is named
  const penstock_test::temp_dir dir;
  const std::vector<std::int32_t> again{4, 4, 1, 1, 1, 4, 1};
  const std::string path =
      written<std::int32_t>(dir / "e.npy", ps::extents(7), std::span<const std::int32_t>(again));
  const auto thrown = caught([&] { static_cast<void>(ps::episodes_of(ps::npy_rows<std::int32_t>(path))); });
  CHECK(thrown.code == ps::errc::format);
  CHECK_THAT(thrown.line,
             contains("the rows of episode 4 do not lie one behind the other: it has row 5 after it "
                      "ended with row 1; sort the table by its episodes"));
  CHECK_THAT(thrown.line, contains("e.npy:5"));
  CHECK_THAT(
      sentence([&] {
        static_cast<void>(
            ps::windows<"e">(ps::zip<"v", "e">(ps::from({1, 2, 3}), ps::from({"a", "b", "a"})), {.at = {0}}));
      }),
      contains(
          "the rows of episode a do not lie one behind the other: it has row 2 after it ended with row 0"));

  // rows of different lengths
  const std::vector<std::vector<float>> ragged{{1, 2}, {3, 4}, {5}};
  CHECK_THAT(sentence([&] {
               for (auto&& b : ps::windows(ps::from(ragged), {.length = 2}) | ps::batch(1) | ps::workers(0))
                 static_cast<void>(b);
             }),
             contains("row 2 has shape (1,), and the window's own row (2,)"));
  // rows that have no dimension left
  const auto eight = ps::npy_bytes<float>(ps::extents(1, 1, 1, 1, 1, 1, 1, 2), std::vector<float>{1, 2});
  const auto arrays = ps::from(std::vector{eight, eight}) | ps::decode<ps::npy<float>>;
  CHECK_THAT(sentence([&] {
               for (auto&& one : ps::windows(arrays, {.length = 2}) | ps::workers(0)) static_cast<void>(one);
             }),
             contains("those of shape (1, 1, 1, 1, 1, 1, 1, 2) have eight, the most there may be"));
}
