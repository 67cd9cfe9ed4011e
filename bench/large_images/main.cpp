// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 17: images of 600 KB that are computed in their slots, of samples of 9 KB in tar shards; batches of 64,
// prefetch(4), 2 workers. The time to the first batch, against the work of one batch by hand, and the memory
// held, against 6 batches.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/element.hpp>
#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64, values = 3 * 224 * 224, sample_bytes = values / 16;
constexpr std::size_t batch_bytes = batch_size * values * sizeof(float);

/// An image for each sample: its bytes, 16 times over, each through a table.
void make_image(ps::bytes_view from, float* into) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(i) / 255.0f - 0.5f;
    return made;
  }();
  for (std::size_t i = 0; i < values; i += from.size())
    for (std::size_t k = 0; k < from.size(); ++k) into[i + k] = table[std::to_integer<std::size_t>(from[k])];
}

struct lazy_image {
  using unfinished = void;
  using value_type = float;
  static constexpr ps::extents static_shape{3, 224, 224};
  ps::bytes_view from;
  std::vector<float>* room;

  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(float* into) const { make_image(from, into); }
  [[nodiscard]] ps::tensor_view<const float> finish() const {
    room->resize(values);
    write_to(room->data());
    return {room->data(), static_shape};
  }
};

struct to_image {
  using penstock_part = ps::pointwise_tag;
  static constexpr std::string_view stage_name = "to_image";
  using scratch = std::vector<float>;

  template <class V, class Call>
  auto apply(const V& sample, const Call& call) const {
    return lazy_image{ps::get<"bin">(sample).finish(), &call.scratch};
  }
};

/// Resident memory without mapped files.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0, shared = 0;
  if (!(statm >> total >> resident >> shared)) throw std::runtime_error("cannot read /proc/self/statm");
  return (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void measure(const bench::options& o) {
  const bench::folder folder(o, "large_images");
  const auto names = bench::write_shards(folder, 2, 1000, sample_bytes, false);
  const auto loader = ps::webdataset(names) | ps::fields<"bin"> | to_image{} | ps::shuffle(ps::seed(7)) |
                      ps::batch(batch_size) | ps::prefetch(4) | ps::workers(2);

  const bench::row first{
      "17a", "600 KB images, batch(64), prefetch(4), 2 workers: to the first batch / one batch by hand", 3,
      true};
  if (o.wants(first.id)) {
    std::vector<std::byte> sample(sample_bytes, std::byte{77});
    std::vector<double> ratios, ours, theirs;
    for (int pair = -1; pair < o.pairs; ++pair) {
      double begin = bench::seconds_now();
      double our_time = 0;
      {
        auto run = loader.open();
        for (auto&& b : run) {
          bench::escape(b.values().data());
          our_time = bench::seconds_now() - begin;
          break;
        }
      }
      begin = bench::seconds_now();
      const std::unique_ptr<float[]> batch(new float[batch_size * values]);
      for (std::size_t i = 0; i < batch_size; ++i) make_image(sample, batch.get() + i * values);
      bench::escape(batch.get());
      const double their_time = bench::seconds_now() - begin;
      if (pair < 0) continue;  // the first pair warms up
      ours.push_back(our_time);
      theirs.push_back(their_time);
      ratios.push_back(our_time / their_time);
    }
    bench::print_row(first, bench::quantile(ratios, 0.75), bench::quantile(ratios, 0.5),
                     "ours " + bench::milliseconds(bench::quantile(ours, 0.5)) + ", by hand " +
                         bench::milliseconds(bench::quantile(theirs, 0.5)) + ", " + std::to_string(o.pairs) +
                         " pairs");
  }

  const bench::row memory{"17b", "the same: memory held / 6 batches", 1.3, true};
  if (!o.wants(memory.id)) return;
  const std::uint64_t before = resident_bytes();
  std::uint64_t highest = before, held = 0;
  auto run = loader.open();
  for (auto&& b : run) {
    bench::escape(b.values().data());
    highest = std::max(highest, resident_bytes());
    held = std::max(held, run.counters().bytes_held);
  }
  const double share = static_cast<double>(highest - before) / (6.0 * batch_bytes);
  char notes[96];
  std::snprintf(notes, sizeof notes, "%.0f MB resident, of these %.0f MB are batches; one is %.1f MB",
                static_cast<double>(highest - before) * 1e-6, static_cast<double>(held) * 1e-6,
                static_cast<double>(batch_bytes) * 1e-6);
  bench::print_row(memory, share, share, notes);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
