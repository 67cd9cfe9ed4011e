// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A data set of two cameras, whose episodes lie in files otherwise than its rows do.

#include <penstock/source/lerobot.hpp>

#include <penstock/codec/video.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/image/values.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/parquet_writer.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"
#include "support/film.hpp"

#include <fstream>

namespace ps = penstock;

namespace lerobot_test {

using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;

constexpr std::int64_t lengths[] = {5, 3, 4};
constexpr std::int64_t begins[] = {0, 5, 8, 12};
constexpr std::size_t one = std::size_t{64} * 48 * 3;
constexpr std::string_view top = "observation.images.top", wrist = "observation.images.wrist";

[[nodiscard]] std::size_t episode_of(std::int64_t row) { return row < 5 ? 0 : row < 8 ? 1 : 2; }

/// Episodes 0 and 1 are in the first file of data, and of `top` all; of `wrist` 1 and 2 are in the second.
struct made_set {
  penstock_test::temp_dir folder;
  byte_vector top_frames, wrist_frames[2];

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  }
  void write_info(const std::string& version, const std::string& total = "12",
                  const std::string& wrist_shape = "[3, 48, 64]") const {
    write("meta/info.json", R"({"codebase_version": ")" + version + R"(", "fps": 10, "total_frames": )" +
                                total + R"(,
    "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    "features": {"observation.images.top": {"dtype": "video", "shape": [48, 64, 3]},
      "observation.images.wrist": {"dtype": "video", "shape": )" +
                                wrist_shape + R"(},
      "action": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
      "next.reward": {"dtype": "float64", "shape": [1]}, "next.done": {"dtype": "bool", "shape": [1]},
      "timestamp": {"dtype": "float32", "shape": [1]}, "episode_index": {"dtype": "int64", "shape": [1]}}})");
  }
  [[nodiscard]] byte_vector film(std::string_view camera, int number, double seconds) const {
    const std::string name =
        "videos/" + std::string(camera) + "/chunk-000/file-00" + std::to_string(number) + ".mp4";
    std::filesystem::create_directories((folder / name).parent_path());
    return penstock_test::frames_by_ffmpeg(
        folder, penstock_test::write_film(
                    folder, {name, "", "-c:v libx264 -g 4 -bf 2 -pix_fmt yuv420p", 0, 64, 48,
                             "-f lavfi -i testsrc2=s=64x48:r=10:d=" + std::to_string(seconds)}));
  }
  void write_data(double late = 0) const {
    for (std::int64_t f = 0; f < 2; ++f) {
      std::filesystem::create_directories(folder / "data/chunk-000");
      ps::parquet_writer out((folder / ("data/chunk-000/file-00" + std::to_string(f) + ".parquet")).string(),
                             {{"action", "fixed_size_list<float>[2]"},
                              {"next.reward", "double"},
                              {"next.done", "bool"},
                              {"timestamp", "float"},
                              {"episode_index", "int64"},
                              {"task_index", "int64"}},
                             {.group_rows = 3});
      for (std::int64_t i = f == 0 ? 0 : 8; i < (f == 0 ? 8 : 12); ++i) {
        const auto episode = static_cast<std::int64_t>(episode_of(i));
        const std::vector<float> action{static_cast<float>(i), 0.5f * static_cast<float>(i)};
        out.write({{"action", action},
                   {"next.reward", 2.0 * static_cast<double>(i)},
                   {"next.done", i + 1 == begins[episode + 1]},
                   {"timestamp", 0.1 * static_cast<double>(i - begins[episode]) + (i == 11 ? late : 0)},
                   {"episode_index", episode},
                   {"task_index", episode % 2}});
      }
      out.close();
    }
  }
  made_set() {
    write_info("v3.0");
    write("meta/stats.json", R"({"action": {"mean": [1, 2], "std": [2, 4], "min": [0, 3], "max": [4, 3]},
      "observation.images.top": {"mean": [[[0.5]], [[0.25]], [[0.125]]], "std": [[[0.5]], [[1]], [[2]]]}})");
    ps::parquet_writer tasks((folder / "meta/tasks.parquet").string(),
                             {{"task_index", "int64"}, {"__index_level_0__", "string"}});
    tasks.write({{"task_index", 0}, {"__index_level_0__", "lift"}});
    tasks.write({{"task_index", 1}, {"__index_level_0__", "push the cube"}});
    tasks.close();
    std::filesystem::create_directories(folder / "meta/episodes/chunk-000");
    std::vector<std::pair<std::string, std::string>> columns{
        {"episode_index", "int64"},    {"length", "int64"},           {"dataset_from_index", "int64"},
        {"dataset_to_index", "int64"}, {"data/chunk_index", "int64"}, {"data/file_index", "int64"}};
    const std::string of_top = "videos/" + std::string(top) + "/",
                      of_wrist = "videos/" + std::string(wrist) + "/";
    for (const std::string& of : {of_top, of_wrist})
      for (const std::string name : {"chunk_index", "file_index", "from_timestamp"})
        columns.emplace_back(of + name, name == "from_timestamp" ? "double" : "int64");
    ps::parquet_writer episodes((folder / "meta/episodes/chunk-000/file-000.parquet").string(),
                                {columns.begin(), columns.end()});
    for (std::int64_t e = 0; e < 3; ++e)
      episodes.write({{"episode_index", e},
                      {"length", lengths[e]},
                      {"dataset_from_index", begins[e]},
                      {"dataset_to_index", begins[e + 1]},
                      {"data/chunk_index", 0},
                      {"data/file_index", e / 2},
                      {of_top + "chunk_index", 0},
                      {of_top + "file_index", 0},
                      {of_top + "from_timestamp", 0.1 * static_cast<double>(begins[e])},
                      {of_wrist + "chunk_index", 0},
                      {of_wrist + "file_index", e == 0 ? 0 : 1},
                      {of_wrist + "from_timestamp", e == 2 ? 0.3 : 0.0}});
    episodes.close();
    write_data();
    top_frames = film(top, 0, 1.2);
    wrist_frames[0] = film(wrist, 0, 0.5);
    wrist_frames[1] = film(wrist, 1, 0.7);
  }
  [[nodiscard]] std::string path() const { return folder.path().string(); }
};

using top_camera = ps::camera<"observation.images.top">;
using wrist_camera = ps::camera<"observation.images.wrist">;
using action = ps::column<"action", float>;

[[nodiscard]] auto whole(const made_set& set, const ps::lerobot_options& options = {}) {
  return ps::lerobot<top_camera, wrist_camera, action, ps::column<"next.reward", double>,
                     ps::column<"next.done", bool>, ps::column<"task", std::string_view>>(
      set.path(), options, ps::column_at<"observation.images.top">{-0.1, 0.0},
      ps::column_at<"action">(ps::row_offsets::from_to(0, 2)));
}
/// Compares a batch with the rows of the set that it says it has; returns these.
template <class Batch>
std::vector<std::int64_t> check_rows(const made_set& set, Batch&& b) {
  const auto index = ps::get<"index">(b);
  const std::vector<std::int64_t> rows(index.data(), index.data() + b.size());
  const auto tops = ps::get<"observation.images.top">(b);
  const auto wrists = ps::get<"observation.images.wrist">(b);
  REQUIRE(tops.shape() == ps::extents(rows.size(), 2, 48, 64, 3));
  REQUIRE(wrists.shape() == ps::extents(rows.size(), 48, 64, 3));
  REQUIRE(ps::get<"action">(b).shape() == ps::extents(rows.size(), 3, 2));
  REQUIRE(ps::get<"next.reward">(b).shape() == ps::extents(rows.size()));
  const auto equal = [](const std::uint8_t* found, const byte_vector& all, std::int64_t frame) {
    return std::memcmp(found, all.data() + static_cast<std::size_t>(frame) * one, one) == 0;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = rows[i];
    const std::size_t e = episode_of(row);
    INFO("row " << row);
    CHECK(equal(tops.data() + i * 2 * one, set.top_frames, std::max(begins[e], row - 1)));
    CHECK(equal(tops.data() + (i * 2 + 1) * one, set.top_frames, row));
    CHECK(equal(wrists.data() + i * one, set.wrist_frames[e == 0 ? 0 : 1], row - (e == 0 ? 0 : 5)));
    CHECK(ps::get<"observation.images.top_is_pad">(b)(i, 0) == (row == begins[e]));
    CHECK_FALSE(ps::get<"observation.images.top_is_pad">(b)(i, 1));
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto slot = static_cast<std::size_t>(k);
      CHECK(ps::get<"action">(b)(i, slot, 0) == static_cast<float>(std::min(row + k, begins[e + 1] - 1)));
      CHECK(ps::get<"action_is_pad">(b)(i, slot) == (row + k >= begins[e + 1]));
    }
    CHECK(ps::get<"next.reward">(b)[i] == 2.0 * static_cast<double>(row));
    CHECK(ps::get<"next.done">(b)[i] == (row + 1 == begins[e + 1]));
    CHECK(ps::get<"episode_index">(b)[i] == static_cast<std::int64_t>(e));
    CHECK(ps::get<"frame_index">(b)[i] == row - begins[e]);
    CHECK(ps::get<"timestamp">(b)[i] == static_cast<float>(0.1 * static_cast<double>(row - begins[e])));
    CHECK(ps::get<"task_index">(b)[i] == static_cast<std::int64_t>(e % 2));
    const std::string_view task = e % 2 == 0 ? "lift" : "push the cube";
    CHECK(std::ranges::equal(ps::get<"task">(b)[i], task));
  }
  return rows;
}

}  // namespace lerobot_test

using namespace lerobot_test;

TEST_CASE("source/lerobot: rows, and frames of several episodes in a film") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const made_set set;
  using rows = std::vector<std::int64_t>;
  const auto shuffled = [](const auto& source, std::uint64_t size, unsigned workers) {
    return source | ps::shuffle(ps::seed(3)) | ps::batch(size, ps::collate<"task">(ps::ragged)) |
           ps::workers(workers);
  };
  const auto sorted = [&](const auto& plan) {
    rows all;
    for (auto&& b : plan.epoch(0))
      for (const std::int64_t row : check_rows(set, b)) all.push_back(row);
    CHECK_FALSE(std::ranges::is_sorted(all));
    std::ranges::sort(all);
    return all;
  };
  const auto data = whole(set);
  for (const unsigned workers : {0u, 2u})
    CHECK(sorted(shuffled(data, 4, workers)) == rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});

  // in two halves, of which the second is resumed
  const auto plan = shuffled(data, 6, 0);
  auto run = plan.open();
  rows seen = check_rows(set, *run.next());
  auto again = plan.open(run.state());
  for (const std::int64_t row : check_rows(set, *again.next())) seen.push_back(row);
  std::ranges::sort(seen);
  CHECK(seen == rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});

  // of some episodes, in the order of the table
  const auto some = whole(set, {.episodes = {2, 0, 2}});
  CHECK(some.size() == 9);
  CHECK(*some.starts() == std::vector<std::uint64_t>{0, 5, 9});
  CHECK(some.connect().key(6) == "2:1");
  CHECK_THAT(some.connect().url(6), contains("file-001.parquet"));
  CHECK_THAT(some.describe(), contains("9 frames of 2 episodes"));
  CHECK(some.fingerprint() != data.fingerprint());
  CHECK(sorted(shuffled(some, 9, 0)) == rows{0, 1, 2, 3, 4, 8, 9, 10, 11});
  CHECK(sorted(shuffled(whole(set, {.episodes = {1}}), 3, 0)) == rows{5, 6, 7});
  std::filesystem::remove_all(set.folder / "videos");
  for (auto&& b : ps::lerobot<action>(set.path()) | ps::batch(12)) CHECK(ps::get<"action">(b)(11, 1) == 5.5f);
}

TEST_CASE("source/lerobot: the example of docs/tasks/time_series.md") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const made_set set;
  const std::string folder = set.path();
  // clang-format off
  const auto data =
      ps::lerobot<ps::camera<"observation.images.top">, ps::camera<"observation.images.wrist">,
                  ps::column<"action", float>>(folder, {},
                                               ps::column_at<"observation.images.top">{-0.1, 0.0},
                                               ps::column_at<"action">(ps::row_offsets::from_to(0, 15)));
  const auto policy = data | ps::shuffle(ps::seed(7)) |
                      ps::map<"observation.images.top">(
                          ps::random_crop(40, 40),
                          ps::normalize<3>(data.stats("observation.images.top")), ps::to_chw()) |
                      ps::map<"action">(ps::mean_std(data.stats("action"))) | ps::batch(4);
  // clang-format on
  std::size_t batches = 0;
  for (auto&& b : policy.epoch(0)) {
    const auto all = ps::get<"observation.images.top">(b);
    REQUIRE(all.shape() == ps::extents(4, 2, 3, 40, 40));
    CHECK(ps::get<"observation.images.wrist">(b).shape() == ps::extents(4, 48, 64, 3));
    REQUIRE(ps::get<"action">(b).shape() == ps::extents(4, 16, 2));
    for (std::size_t i = 0; i < 4; ++i) {
      // one draw for both frames, of which the first stands for none
      if (ps::get<"frame_index">(b)[i] == 0) CHECK(std::ranges::equal(all[i][0].flat(), all[i][1].flat()));
      CHECK(ps::get<"action">(b)(i, 0, 0) == (static_cast<float>(ps::get<"index">(b)[i]) - 1) / (2 + 1e-8f));
    }
    ++batches;
  }
  CHECK(batches == 3);
  CHECK(data.fps() == 10);
  CHECK(data.tasks() == std::vector<std::string>{"lift", "push the cube"});
  CHECK(data.stats("observation.images.top").std == std::vector<double>{0.5, 1, 2});
  CHECK_THAT(caught([&] { static_cast<void>(data.stats("wrench")); }).line,
             contains("it has some of: action"));
}

TEST_CASE("source/lerobot: times of long episodes are rounded to floats") {
  const struct {
    [[nodiscard]] std::uint64_t frames() const { return 30 * 7200; }
    [[nodiscard]] double time_of(std::uint64_t i) const { return 10 + static_cast<double>(i) / 30; }
  } film;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < film.frames(); ++i)
    wrong += ps::detail::nearest_frame(film, 10, static_cast<float>(static_cast<double>(i) / 30), 1e-4) != i;
  CHECK(wrong == 0);
  CHECK(caught([&] { static_cast<void>(ps::detail::nearest_frame(film, 10, 1.01f, 1e-4)); }).code ==
        ps::errc::missing);
}

TEST_CASE("source/lerobot: what a data set must not be") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const made_set set;
  const auto made = [&](const ps::lerobot_options& options = {}) {
    return caught([&] { static_cast<void>(ps::lerobot<wrist_camera, action>(set.path(), options)); });
  };
  const auto read = [&] {
    return caught([&] {
      for (auto&& b : ps::lerobot<wrist_camera>(set.path()) | ps::batch(12)) static_cast<void>(b);
    });
  };
  CHECK(made().line.empty());
  CHECK_THAT(made({.episodes = {3}}).line, contains("episode 3 is asked for, and the data set has 3"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::lerobot<ps::camera<"left">>(set.path())); }).line,
             contains("no feature 'left'; it has: action, episode_index"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::lerobot<ps::camera<"action">>(set.path())); }).line,
             contains("'action' is of the dtype float32, and no film"));
  CHECK_THAT(caught([&] { static_cast<void>(ps::lerobot<ps::column<"action", double>>(set.path())); }).line,
             contains("'action' is of the dtype float32, and its column reads float64"));
  CHECK_THAT(caught([&] {
               static_cast<void>(ps::lerobot<action>(set.path(), {}, ps::column_at<"action">{0.0, 0.05}));
             }).line,
             contains("0.05"));
  CHECK(made({.tolerance = -1}).code == ps::errc::argument);

  set.write_data(0.05);
  CHECK_THAT(read().line, contains("no frame at 0.65") && contains("the nearest is at 0.6") &&
                              contains("wrist/chunk-000/file-001.mp4"));
  set.write_data();
  CHECK(read().line.empty());
  set.write_info("v3.0", "11");
  CHECK_THAT(made().line, contains("the episodes up to 2 have more frames together than the 11"));
  set.write_info("v3.0", "13");
  CHECK_THAT(made().line, contains("the episodes have 12 frames together, and meta/info.json says 13"));
  set.write_info("v3.0", "12", "[3, 64, 48]");
  CHECK_THAT(read().line, contains("the film's frames are 64 x 48") && contains("another shape"));
  set.write_info("v2.1");
  CHECK_THAT(made().line, contains("LeRobot's format v2.1") && contains("convert_dataset_v21_to_v30") &&
                              contains("info.json"));
  set.write_info("v3.0");
  std::filesystem::copy(set.folder / "data/chunk-000/file-000.parquet",
                        set.folder / "data/chunk-000/file-001.parquet",
                        std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(made().line, contains("have 16 rows, and their episodes in meta/episodes 12"));
  set.write_data();

  const auto film = set.folder / "videos/observation.images.wrist/chunk-000/file-001.mp4";
  std::filesystem::resize_file(film, std::filesystem::file_size(film) - 100);
  CHECK_THAT(read().line, contains("truncated") && contains("file-001.mp4"));
  std::filesystem::remove(film);
  CHECK_THAT(made().line, contains("a film of the data set is not there") && contains("file-001.mp4"));
  CHECK(caught([&] { static_cast<void>(ps::lerobot<action>((set.folder / "none").string())); }).code ==
        ps::errc::io);

  ps::parquet_writer((set.folder / "meta/episodes/chunk-000/file-000.parquet").string(),
                     {{"episode_index", "int64"},
                      {"length", "int64"},
                      {"dataset_from_index", "int64"},
                      {"dataset_to_index", "int64"},
                      {"data/chunk_index", "int64"},
                      {"data/file_index", "int64"}})
      .close();
  set.write_info("v3.0", "0");
  CHECK_THAT(caught([&] { static_cast<void>(ps::lerobot<action>(set.path())); }).line,
             contains("the data set has no episodes") && contains("meta/episodes"));
}

TEST_CASE("source/lerobot: nothing is allocated for a sample") {
  if (!penstock_test::have_ffmpeg() || !penstock_test::have_encoder("libx264")) return;
  const made_set set;
  const auto data = whole(set);
  const auto reader = data.connect();
  std::remove_cvref_t<decltype(reader)>::worker worker;
  std::vector<std::uint8_t> pixels(2 * one);
  const auto all = [&] {
    for (std::uint64_t i = 0; i < 12; ++i)
      reader.evaluate({0, i}, worker, [&](const auto& sample) {
        const auto& clip = ps::get<"observation.images.top">(sample);
        clip.write_to(ps::destination<std::uint8_t>(pixels.data(), clip.shape()));
      });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
}
