// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Behaviour cloning: trains a small policy to do what a LeRobot data set shows, a chunk of actions from the
// state and the frames of two cameras. Killed at any moment, it goes on from its checkpoint and prints the
// losses that it would have printed. made_demonstrations.py makes such a data set.

#include "arguments.hpp"
#include "checkpoint_file.hpp"
#include "tiny_policy.hpp"

#include <penstock/image.hpp>
#include <penstock/penstock.hpp>

#include <penstock/codec/video.hpp>
#include <penstock/source/lerobot.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

const std::string usage =
    "train_policy --data FOLDER --checkpoint FOLDER [--epochs N] [--batch N] [--chunk STEPS] [--width N] "
    "[--rate R] [--workers N]";

constexpr std::size_t side = 8;  // of a frame as the policy sees it

/// What the policy learns from, row after row.
struct examples {
  std::vector<float> observed, shown, weights;

  template <class Batch>
  explicit examples(const Batch& b) {
    const auto add = [](std::vector<float>& to, const auto& values) {
      to.insert(to.end(), values.flat().begin(), values.flat().end());
    };
    const auto actions = ps::get<"action">(b);  // (samples, chunk, numbers)
    add(shown, actions);
    for (std::size_t i = 0; i < b.size(); ++i) {
      add(observed, ps::get<"observation.state">(b)[i]);
      add(observed, ps::get<"observation.images.top">(b)[i]);
      add(observed, ps::get<"observation.images.wrist">(b)[i]);
      // Behind the end of an episode, its last action is repeated: nothing to be learned.
      for (const bool padding : ps::get<"action_is_pad">(b)[i].flat())
        weights.insert(weights.end(), actions.shape()[2], padding ? 0.0f : 1.0f);
    }
  }
};

int train(arguments given) {
  const std::filesystem::path folder = given.text("checkpoint");
  std::filesystem::create_directories(folder);
  const std::uint64_t epochs = given.number("epochs", 1), chunk = given.number("chunk", 8, 1000);

  const auto data = ps::lerobot<ps::camera<"observation.images.top">, ps::camera<"observation.images.wrist">,
                                ps::column<"observation.state", float>, ps::column<"action", float>>(
      given.text("data"), {},
      ps::column_at<"action">(ps::row_offsets::from_to(0, static_cast<std::int64_t>(chunk) - 1)));
  const auto loader = data | ps::shuffle(ps::seed(7)) |
                      ps::map<"observation.images.top">(ps::resize(side, side), ps::to_float()) |
                      ps::map<"observation.images.wrist">(ps::resize(side, side), ps::to_float()) |
                      ps::map<"observation.state">(ps::mean_std(data.stats("observation.state"))) |
                      ps::map<"action">(ps::mean_std(data.stats("action"))) |
                      ps::batch(given.number("batch", 8)) |
                      ps::workers(given.number("workers", 1, max_workers));

  const std::size_t actions = data.stats("action").mean.size();
  tiny_policy policy(data.stats("observation.state").mean.size() + 2 * side * side * 3,
                     given.number("width", 32), static_cast<std::size_t>(chunk) * actions);
  const auto rate = static_cast<float>(given.share("rate", 0.3));
  given.done();
  const checkpoint_file checkpoint(folder / "checkpoint");
  const auto saved = checkpoint.load(policy);
  auto run = saved ? loader.open(*saved) : loader.open();

  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      const examples seen(b);
      const double loss = policy.train(seen.observed, seen.shown, seen.weights, rate);
      std::printf("epoch %llu step %llu samples %zu loss %.9f\n", static_cast<unsigned long long>(b.epoch()),
                  static_cast<unsigned long long>(b.step()), b.size(), loss);
      std::fflush(stdout);
      checkpoint.save(policy, run.state());
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (asked_for_help(argc, argv, usage)) return 0;
  try {
    return train(arguments(argc, argv, usage));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_policy: %s\n", e.what());
    return 1;
  }
}
