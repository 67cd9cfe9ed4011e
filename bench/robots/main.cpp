// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 63: samples a second from a LeRobot data set that lerobot has made, with two workers, in batches of 8,
// shuffled: an action chunk of 16, the state, and a frame of each of two cameras, 480 x 640 in AV1, resized
// to 224 x 224, as float; against lerobot's own loader. `peer_lerobot.py` is the peer's side, and makes the
// data.

#include "support/harness.hpp"

#include <penstock/codec/video.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/image/values.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/lerobot.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// Samples a second, and a second of processor time.
struct rates {
  double wall = 0, processor = 0;
};

rates ours(const std::string& folder, double seconds) {
  const auto data = ps::lerobot<ps::camera<"observation.images.top">, ps::camera<"observation.images.wrist">,
                                ps::column<"observation.state", float>, ps::column<"action", float>>(
      folder, {}, ps::column_at<"action">(ps::row_offsets::from_to(0, 15)),
      ps::column_at<"observation.state">{0});
  auto run = (data | ps::shuffle(ps::seed(7)) |
              ps::map<"observation.images.top">(ps::resize(224, 224), ps::to_float(), ps::to_chw()) |
              ps::map<"observation.images.wrist">(ps::resize(224, 224), ps::to_float(), ps::to_chw()) |
              ps::batch(8) | ps::workers(2))
                 .open();
  std::uint64_t batches = 0, done = 0;
  double begin = 0, passed = 0;
  std::clock_t used = 0;
  for (auto epoch : run.epochs(1'000'000)) {
    for (auto&& batch : epoch) {
      if (batches++ < 8) {  // until the workers have opened their files
        begin = bench::seconds_now();
        used = std::clock();
        continue;
      }
      bench::escape(ps::get<"observation.images.top">(batch).data());
      done += batch.size();
      if ((passed = bench::seconds_now() - begin) >= seconds) break;
    }
    if (passed >= seconds) break;
  }
  const auto samples = static_cast<double>(done);
  return {samples / passed, samples * CLOCKS_PER_SEC / static_cast<double>(std::clock() - used)};
}

rates theirs(const std::string& command) {
  rates found;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  const bool good = std::fscanf(pipe, "%lf %lf", &found.wall, &found.processor) == 2;
  ::pclose(pipe);
  return good ? found : rates{};
}

void measure(const bench::options& o) {
  const bench::row row{"63", "2 cameras of LeRobot, action chunks, 2 workers / lerobot's loader", 3};
  if (!o.wants(row.id)) return;
  const char* const python = std::getenv("BENCH_LEROBOT_PYTHON");
  const char* const script = std::getenv("BENCH_LEROBOT_SCRIPT");
  if (python == nullptr || script == nullptr) return bench::print_skipped(row, "lerobot is not there");
  const std::string peer = std::string(python) + " '" + script + "' ";
  const char* const given = std::getenv("BENCH_LEROBOT_DATA");  // a data set that an earlier run has left
  const std::filesystem::path made =
      given == nullptr ? o.dir / "bench_lerobot" : std::filesystem::path(given);
  const std::string folder = "'" + made.string() + "'";
  if (!std::filesystem::exists(made) &&
      std::system(
          (peer + "make " + folder + (o.quick ? " 2 40" : " 10 300") + " > /dev/null 2>&1").c_str()) != 0)
    return bench::print_skipped(row, "lerobot cannot make a data set");
  const double seconds = o.quick ? 2 : 10;
  std::vector<double> ratios, by_processor, our_rates, their_rates;
  for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
    const rates mine = ours(made.string(), seconds);
    const rates other = theirs(peer + "rate " + folder + " " + std::to_string(seconds) + " 2> /dev/null");
    if (other.wall == 0) return bench::print_skipped(row, "lerobot's loader failed");
    ratios.push_back(mine.wall / other.wall);
    by_processor.push_back(mine.processor / other.processor);
    our_rates.push_back(mine.wall);
    their_rates.push_back(other.wall);
  }
  char notes[160];
  std::snprintf(notes, sizeof notes, "%.0f samples/s, lerobot %.0f; %.2f times as many for processor time",
                bench::quantile(our_rates, 0.5), bench::quantile(their_rates, 0.5),
                bench::quantile(by_processor, 0.5));
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes);
  if (!o.keep && given == nullptr) std::filesystem::remove_all(made);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
