// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/first_program.md; tools/check_readme.py compares the two.

#include <penstock/penstock.hpp>
#include <penstock/source/shard_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

// Writes train-0000.tar and train-0001.tar: 500 samples each, an 8 x 8 image and a label in every sample.
void write_shards(const fs::path& folder) {
  ps::shard_writer out((folder / "train-%04d.tar").string(), {.maxcount = 500});
  for (int i = 0; i < 1000; ++i) {
    const std::vector<std::uint8_t> pixels(8 * 8, static_cast<std::uint8_t>(i));
    out.write(std::to_string(i), {{"npy", ps::npy_bytes<std::uint8_t>(ps::extents(8, 8), pixels)},
                                  {"cls", std::to_string(i % 10)}});
  }
  out.close();
}

// Trains for two epochs, or until it has taken `limit` steps, and returns how many it took.
// Resumes from the checkpoint if there is one.
template <class Loader>
int train(const Loader& loader, const fs::path& checkpoint, int limit) {
  std::ifstream saved(checkpoint);
  const std::string text{std::istreambuf_iterator<char>(saved), {}};

  auto run = text.empty() ? loader.open() : loader.open(ps::state_from_string(text));
  int steps = 0;
  for (auto epoch : run.epochs(2)) {
    ps::progress bar("epoch " + std::to_string(epoch.number()), run.steps_per_epoch());
    bar.begin(run.counters());
    for (auto&& batch : epoch) {
      auto images = get<"npy">(batch);  // a tensor_view of shape (32, 8, 8)
      auto labels = get<"cls">(batch);  // a span of 32 integers
      double sum = 0;                   // your training step goes here
      for (std::size_t i = 0; i < batch.size(); ++i) sum += images(i, 0, 0) * static_cast<double>(labels[i]);
      if (!(sum > 0)) return -1;

      if (++steps == limit) {
        std::ofstream(checkpoint) << to_string(run.state());
        return steps;
      }
      bar.tick([&] { return run.counters(); });
    }
    bar.finish(run.counters());
  }
  return steps;
}

int main() {
  try {
    const fs::path folder = "first_program_data";
    fs::remove_all(folder);
    fs::create_directories(folder);
    write_shards(folder);

    const auto loader = ps::webdataset((folder / "train-{0000..0001}.tar").string()) |
                        ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>> |
                        ps::shuffle(ps::seed(7)) | ps::batch(32, ps::tail::drop);

    const int before = train(loader, folder / "checkpoint.json", 40);   // stops in the middle of epoch 1
    const int after = train(loader, folder / "checkpoint.json", 1000);  // resumes there
    std::printf("%d steps, then %d more\n", before, after);
    return before == 40 && after == 22 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
