// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Runs the snippets of README.md; tools/check_readme.py compares the two.

#include "made_up_shards.hpp"

#include <penstock/penstock.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t rank = 0, world = 2;
std::uint64_t seen = 0, saved = 0;
std::string last_saved;

void step(const ps::tensor_view<const std::uint8_t>& images, std::span<const std::int64_t> labels) {
  seen += images.shape() == ps::extents(256, 28, 28) ? labels.size() : 0;
}
void save(const std::string& state) {
  ++saved;
  last_saved = state;
}

bool training() {
  const bool due = true;

  auto loader = ps::webdataset("train-{0000..0127}.tar") |  // members that are not named below are not read
                ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>> |
                ps::shuffle(ps::seed(7), ps::window(16)) | ps::shard(rank, world) |
                ps::batch(256, ps::tail::drop) | ps::pin_and_copy;

  auto run = loader.open();  // threads and read-ahead live here, across epochs
  for (auto epoch : run.epochs(90))
    for (auto&& batch : epoch) {
      auto images = get<"npy">(batch);  // a (256, 28, 28) array of uint8
      auto labels = get<"cls">(batch);  // 256 numbers
      step(images, labels);
      if (due) save(to_string(run.state()));  // one line of text
    }
  return seen == std::uint64_t{90} * 2 * 256 && saved == 180;
}

bool resuming() {
  auto loader = ps::webdataset("train-{0000..0127}.tar") |
                ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>> |
                ps::shuffle(ps::seed(7), ps::window(16)) | ps::shard(rank, world) |
                ps::batch(256, ps::tail::drop);
  auto first = loader.open();
  for (auto&& batch : first.epoch(0)) {
    save(to_string(first.state()));
    static_cast<void>(batch);
    break;
  }
  const std::string text = last_saved;

  auto run = loader.open(ps::state_from_string(text));
  for (auto epoch : run.epochs(90))  // resumes mid-epoch, then runs the remaining epochs
    for (auto&& batch : epoch) {
      return batch.epoch() == 0 && batch.step() == 1;
    }
  return false;
}

bool asking() {
  auto loader =
      ps::from(std::vector{1, 2, 3, 4}) | ps::shuffle(ps::seed(7)) | ps::shard(rank, world) | ps::batch(2);

  static_assert(ps::elastic<decltype(loader)>);   // can resume on another number of ranks
  static_assert(ps::lockstep<decltype(loader)>);  // every rank has the same number of batches
  auto filtered = ps::from(std::vector{1, 2, 3, 4}) | ps::filter([](int x) { return x > 1; }) | ps::batch(2);
  static_assert(!ps::lockstep<decltype(filtered)>);  // how many there will be is unknown
  return ps::describe(loader).find("keeps: indexed deterministic resumable elastic lockstep") !=
         std::string::npos;
}

bool randomness() {
  auto flip = [](std::vector<float> row, ps::rng& random) {
    if (random.chance(0.5)) std::reverse(row.begin(), row.end());
    return row;  // the same result for this sample and epoch on any number of workers or ranks
  };
  auto loader = ps::from(std::vector<std::vector<float>>(1000, {1, 2, 3})) | ps::map(flip) | ps::batch(100);
  std::vector<float> found[2];
  for (const unsigned workers : {1u, 3u})
    for (auto&& batch : (loader | ps::workers(workers)).epoch(0))
      found[workers == 3].insert(found[workers == 3].end(), batch.values().flat().begin(),
                                 batch.values().flat().end());
  return found[0].size() == 3000 && found[0] == found[1];
}

}  // namespace

int main() {
  try {
    const made_up_shards here("readme", 128, 8);
    const bool works = training() && resuming() && asking() && randomness();
    std::puts(works ? "as the README says" : "not as the README says");
    return works ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
