// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Data sets that lerobot has made, sample for sample as lerobot reads them: tests/data/lerobot_set, and those
// that tools/lerobot_oracles.py makes where lerobot is installed. That file says what samples.txt has.

#include <penstock/source/lerobot.hpp>

#include <penstock/codec/video.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/fixtures.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace lerobot_sets_test {

/// What follows each key in lines of samples.txt.
using sample = std::map<std::string, std::string, std::less<>>;

struct lerobot_samples {
  double fps = 0;
  std::vector<sample> rows;

  explicit lerobot_samples(const std::filesystem::path& folder) {
    std::ifstream file(folder / "samples.txt");
    std::size_t count = 0;
    std::string line;
    while (std::getline(file, line)) {
      const std::size_t space = line.find(' ');
      const std::string key = line.substr(0, space), rest = line.substr(space + 1);
      if (key == "fps") fps = std::stod(rest);
      if (key == "rows") count = std::stoul(rest);
      if (key == "index") rows.emplace_back();
      if (!rows.empty()) rows.back()[key] = rest;
    }
    REQUIRE((count != 0 && rows.size() == count));
  }
};

template <class Values>
bool equal(const Values& values, std::string_view line) {
  std::istringstream in{std::string(line)};
  double wanted = 0;
  for (const auto value : values.flat())
    if (!(in >> wanted) || static_cast<float>(wanted) != static_cast<float>(value)) return false;
  return !(in >> wanted);
}

std::uint32_t crc_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

/// How frames differ from lerobot's.
struct difference {
  // of one row, or of several; and those that are not equal, byte for byte
  std::size_t frames = 0, others = 0;
  int largest = 0;  // of a channel of a pixel; frames of other rows differ by 150
};

void compare(std::span<const std::uint8_t> frames, std::string_view line, difference& found) {
  std::istringstream in{std::string(line)};
  std::size_t count = 0, height = 0, width = 0, step = 0;
  std::uint32_t crc = 0;
  std::string digits;
  in >> count >> height >> width >> step >> crc >> digits;
  REQUIRE(frames.size() == count * height * width * 3);
  found.frames += count;
  found.others += crc_of(frames) == crc ? 0 : count;
  const auto at = [&](std::size_t n, std::size_t y, std::size_t x) {
    return frames.data() + ((n * height + y) * width + x) * 3;
  };
  const std::size_t begin = std::min<std::size_t>(step / 2, 8);
  std::size_t place = 0;
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t y = begin; y < height; y += step)
      for (std::size_t x = begin; x < width; x += step)
        for (std::size_t c = 0; c < 3; ++c, place += 2)
          found.largest = std::max(
              found.largest, std::abs(std::stoi(digits.substr(place, 2), nullptr, 16) - int{at(n, y, x)[c]}));
  }
  CHECK(place == digits.size());
}

difference compare_set(const std::filesystem::path& folder) {
  const lerobot_samples expected(folder);
  const double unit = 1 / expected.fps;
  const auto data = ps::lerobot<ps::camera<"observation.images.top">, ps::camera<"observation.images.wrist">,
                                ps::column<"observation.state", float>, ps::column<"action", float>,
                                ps::column<"task", std::string_view>>(
      folder.string(), {}, ps::column_at<"observation.images.top">{-unit, 0.0},
      ps::column_at<"observation.state">{-2 * unit, -unit, 0.0},
      ps::column_at<"action">(ps::row_offsets::from_to(0, 4)));
  REQUIRE(data.size() == expected.rows.size());
  auto run =
      (data | ps::shuffle(ps::seed(7)) | ps::batch(4, ps::collate<"task">(ps::ragged)) | ps::workers(2))
          .open();
  difference found;
  std::vector<bool> seen(expected.rows.size());
  for (auto&& b : run.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::int64_t index = ps::get<"index">(b)[i];
      INFO("row " << index);
      REQUIRE((index >= 0 && static_cast<std::size_t>(index) < seen.size()));
      seen[static_cast<std::size_t>(index)] = true;
      const sample& row = expected.rows[static_cast<std::size_t>(index)];
      const auto line = [&](const char* key) { return row.find(key)->second; };
      std::ostringstream numbers, time;
      numbers << index << ' ' << ps::get<"episode_index">(b)[i] << ' ' << ps::get<"frame_index">(b)[i] << ' '
              << ps::get<"task_index">(b)[i];
      CHECK(numbers.str() == line("index"));
      time.precision(9);
      time << ps::get<"timestamp">(b)[i];
      CHECK(time.str() == line("timestamp"));
      CHECK(std::ranges::equal(ps::get<"task">(b)[i], line("task")));
      CHECK(equal(ps::get<"observation.state">(b)[i], line("observation.state")));
      CHECK(equal(ps::get<"action">(b)[i], line("action")));
      CHECK(equal(ps::get<"observation.state_is_pad">(b)[i], line("observation.state_is_pad")));
      CHECK(equal(ps::get<"action_is_pad">(b)[i], line("action_is_pad")));
      CHECK(equal(ps::get<"observation.images.top_is_pad">(b)[i], line("observation.images.top_is_pad")));
      compare(ps::get<"observation.images.top">(b)[i].flat(), line("observation.images.top"), found);
      compare(ps::get<"observation.images.wrist">(b)[i].flat(), line("observation.images.wrist"), found);
    }
  CHECK(std::ranges::find(seen, false) == seen.end());
  return found;
}

}  // namespace lerobot_sets_test

TEST_CASE("samples of a data set that lerobot has made are lerobot's", "[source][lerobot_sets]") {
  const auto found = lerobot_sets_test::compare_set(penstock_test::fixture("lerobot_set"));
  CHECK(found.largest <= 2);  // FFmpeg's code for other processors may round otherwise
}

TEST_CASE("samples of data sets that lerobot makes are lerobot's", "[source][lerobot_sets]") {
  const char* const folder = std::getenv("PENSTOCK_LEROBOT_SETS");
  if (folder == nullptr) return;  // see tools/lerobot_oracles.py
  std::size_t sets = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder)) {
    INFO(one.path());
    const auto found = lerobot_sets_test::compare_set(one.path());
    CHECK(found.largest <= 2);
    WARN(one.path().filename().string() << ": " << found.frames << " frames, of which " << found.others
                                        << " differ from lerobot's, by " << found.largest << " at most");
    ++sets;
  }
  CHECK(sets != 0);
}
