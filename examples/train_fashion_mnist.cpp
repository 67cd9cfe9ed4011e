// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains a small classifier (784 - 128 - 10, ReLU, SGD with momentum) from the shards that pack_webdataset
// wrote, and saves what it needs to resume: the weights, and one line of text with the state of the loader.
// Start it again, whether it was killed or not: it resumes at the next batch and ends with the same weights,
// bit for bit.

#include "arguments.hpp"
#include "fashion_mnist.hpp"

#include <penstock/observe/progress.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

/// A checkpoint is one line of text, the loader's state, and then the numbers.
void save(const std::string& path, model& m, const ps::state& where) {
  const std::string beside = path + ".partial";
  {
    std::ofstream out(beside, std::ios::binary);
    out << to_string(where) << '\n';
    for (const auto* part : {&m.weights(), &m.velocity()})
      out.write(reinterpret_cast<const char*>(part->data()),
                static_cast<std::streamsize>(part->size() * sizeof(float)));
    out.flush();
    if (!out) throw std::runtime_error("cannot write " + beside);
  }
  fs::rename(beside, path);  // a reader sees the old file or the new one, complete
}

std::optional<ps::state> restore(const std::string& path, model& m) {
  if (!fs::exists(path)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  if (!std::getline(in, line)) throw std::runtime_error("cannot read the checkpoint " + path);
  const ps::state where = ps::state_from_string(line);
  for (auto* part : {&m.weights(), &m.velocity()})
    in.read(reinterpret_cast<char*>(part->data()),
            static_cast<std::streamsize>(part->size() * sizeof(float)));
  if (!in || in.peek() != std::ifstream::traits_type::eof())
    throw std::runtime_error("the checkpoint " + path +
                             " is not of this model, or was cut; remove it to begin anew");
  return where;
}

std::vector<std::string> shards_of(const fs::path& folder, const std::string& split) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(split + "-") && name.ends_with(".tar")) found.push_back(entry.path().string());
  }
  if (found.empty())
    throw std::runtime_error("there are no shards " + split + "-*.tar in " + folder.string() +
                             "; make them with pack_webdataset");
  std::sort(found.begin(), found.end());
  return found;
}

auto samples_of(const fs::path& folder, const std::string& split) {
  return decoded(ps::webdataset(shards_of(folder, split)));
}

double test_accuracy(const fs::path& folder, model& m, unsigned workers) {
  const auto loader = samples_of(folder, "t10k") | ps::batch(256, ps::tail::keep) | ps::workers(workers);
  std::uint64_t seen = 0, right = 0;
  for (auto&& batch : loader)
    for_each_sample(batch, [&](std::span<const std::uint8_t> image, std::size_t label) {
      ++seen;
      right += m.look(image) == label;
    });
  if (seen != loader.source().size()) throw std::runtime_error("not every test sample was seen exactly once");
  return static_cast<double>(right) / static_cast<double>(seen);
}

volatile std::sig_atomic_t interrupted = 0;

int train(arguments& given) {
  const fs::path shards = given.text("shards");
  const std::string checkpoint = given.text("checkpoint");
  const std::uint64_t epochs = given.number("epochs", 1), batch_size = given.number("batch", 100);
  const std::uint64_t rank = given.number("rank", 0), world = given.number("world", 1);
  const auto workers =
      static_cast<unsigned>(given.number("workers", ps::default_workers(world), max_workers));
  const std::uint64_t every = given.number("checkpoint-every", 100), window = given.number("window", 8);
  const std::uint64_t stop_after = given.number("stop-after", 0);
  given.done();

  // The ranks divide the samples. Each trains its own model, because this example does not sum gradients.
  const auto loader = samples_of(shards, "train") | ps::shuffle(ps::seed(7), ps::window(window)) |
                      ps::shard(rank, world) | ps::batch(batch_size, ps::tail::drop) | ps::workers(workers) |
                      ps::pin_and_copy;

  model m;
  const std::optional<ps::state> from = restore(checkpoint, m);
  if (from && from->epoch >= epochs) {
    std::printf("all %llu epochs are done; test accuracy %.4f\n", static_cast<unsigned long long>(epochs),
                test_accuracy(shards, m, workers));
    return 0;
  }
  auto run = from ? loader.open(*from) : loader.open();
  if (run.steps_per_epoch() == 0)
    throw std::runtime_error("an epoch has not even one whole batch; use a smaller --batch");
  if (from)
    std::printf("continuing at epoch %llu step %llu\n", static_cast<unsigned long long>(from->epoch),
                static_cast<unsigned long long>(from->step));
  std::fflush(stdout);

  std::uint64_t steps = 0;
  for (auto epoch : run.epochs(epochs)) {
    const auto number = static_cast<unsigned long long>(epoch.number());
    ps::progress bar("epoch " + std::to_string(number), run.steps_per_epoch());
    const ps::run_counters before = run.counters();
    bar.begin(before, from && from->epoch == epoch.number() ? from->step : 0);
    for (auto&& batch : epoch) {
      for_each_sample(batch,
                      [&](std::span<const std::uint8_t> image, std::size_t label) { m.look(image, label); });
      // Falls within each epoch, so that each epoch ends with a model worth testing. It depends only on the
      // place, so a resumed run has the same rate.
      const float left = 1 - static_cast<float>(batch.step()) / static_cast<float>(run.steps_per_epoch());
      m.step(0.05f * left, batch.size());
      bar.tick([&] { return run.counters(); });
      ++steps;
      const bool stop = interrupted != 0 || steps == stop_after;
      if (stop || (every != 0 && steps % every == 0)) save(checkpoint, m, run.state());
      if (stop) {
        std::printf("stopped after epoch %llu step %llu; start again to continue\n", number,
                    static_cast<unsigned long long>(batch.step()));
        return 0;
      }
    }
    const ps::run_counters after = run.counters(), spent = ps::since(after, before);
    bar.finish(after);
    save(checkpoint, m, run.state());
    std::printf("epoch %llu: stall %.2f %%, %.0f samples/s, test accuracy %.4f\n", number,
                100 * spent.stall(), spent.samples_per_second(), test_accuracy(shards, m, workers));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::signal(SIGTERM, [](int) { interrupted = 1; });
  try {
    constexpr const char* usage =
        "train_fashion_mnist --shards DIR --checkpoint FILE [--epochs N] [--workers N] [--batch B] "
        "[--rank R --world W] [--window SHARDS] [--checkpoint-every STEPS] [--stop-after STEPS]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    return train(given);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_fashion_mnist: %s\n", e.what());
    return 1;
  }
}
