// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains a small convolutional network on images: on tar shards, with a member `cls` that has the label in
// digits, or on a folder whose subfolders are the classes.
//
//     train_images --shards 'baked/baked-*.tar' --classes 1000
//     train_images --folder photos
//
// Images are JPEG, PNG, WebP or raw (npy), side by side, as `bake` writes them. Of each epoch it prints the
// loss and the accuracy before each step, images/s, and how much of the time the loop waited for the loader.
// With `--accelerator MS` nothing is trained: each batch takes that many milliseconds, as on a device. So you
// see which step time the loader can feed on this machine. For checkpoints see train_fashion_mnist.

#include "arguments.hpp"

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/npy_image.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/image.hpp>
#include <penstock/observe/progress.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

/// The weights of a layer, and what SGD with momentum keeps for each.
class weights {
 public:
  weights(std::size_t count, std::size_t inputs, ps::rng& random)
      : value_(count), gradient_(count), velocity_(count) {
    const double maximum = std::sqrt(6 / static_cast<double>(inputs));
    for (float& w : value_) w = static_cast<float>(random.uniform(-maximum, maximum));
  }
  [[nodiscard]] const float* value() const { return value_.data(); }
  [[nodiscard]] float* gradient() { return gradient_.data(); }
  void step(float rate) {
    for (std::size_t i = 0; i < value_.size(); ++i) {
      velocity_[i] = 0.9f * velocity_[i] - rate * gradient_[i];
      value_[i] += velocity_[i];
      gradient_[i] = 0;
    }
  }

 private:
  std::vector<float> value_, gradient_, velocity_;
};

/// A convolution of 3 x 3 with stride 2 and a border of zeros, and a ReLU. Pixels are interleaved: (y, x,
/// channel).
class convolution {
 public:
  std::vector<float> out, d_out, d_in;  ///< of the image seen last; `d_` is the derivative of the loss

  convolution(std::size_t side, std::size_t inputs, std::size_t outputs, ps::rng& random)
      : out(side / 2 * (side / 2) * outputs),
        d_out(out.size()),
        d_in(side * side * inputs),
        side_(side),
        inputs_(inputs),
        outputs_(outputs),
        kernel_(9 * inputs * outputs, 9 * inputs, random) {}

  void forward(const float* in) {
    std::fill(out.begin(), out.end(), 0.0f);
    for_each_tap([&](std::size_t from, std::size_t to, std::size_t tap) {
      for (std::size_t i = 0; i < inputs_; ++i) {
        const float* const w = kernel_.value() + (tap * inputs_ + i) * outputs_;
        for (std::size_t o = 0; o < outputs_; ++o) out[to + o] += in[from + i] * w[o];
      }
    });
    for (float& x : out) x = std::max(x, 0.0f);
  }
  void backward(const float* in) {
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i] <= 0) d_out[i] = 0;
    std::fill(d_in.begin(), d_in.end(), 0.0f);
    for_each_tap([&](std::size_t from, std::size_t to, std::size_t tap) {
      for (std::size_t i = 0; i < inputs_; ++i) {
        const float* const w = kernel_.value() + (tap * inputs_ + i) * outputs_;
        float* const d_w = kernel_.gradient() + (tap * inputs_ + i) * outputs_;
        float sum = 0;
        for (std::size_t o = 0; o < outputs_; ++o) {
          d_w[o] += in[from + i] * d_out[to + o];
          sum += w[o] * d_out[to + o];
        }
        d_in[from + i] += sum;
      }
    });
  }
  void step(float rate) { kernel_.step(rate); }

 private:
  /// Calls f(input pixel, output pixel, place in the kernel) for all that go together.
  template <class F>
  void for_each_tap(F f) const {
    const std::size_t half = side_ / 2;
    for (std::size_t y = 0; y < half; ++y)
      for (std::size_t x = 0; x < half; ++x)
        for (std::size_t tap = 0; tap < 9; ++tap) {
          const std::size_t in_y = 2 * y + tap / 3, in_x = 2 * x + tap % 3;  // the border is row and column 0
          if (in_y == 0 || in_x == 0 || in_y > side_ || in_x > side_) continue;
          f(((in_y - 1) * side_ + in_x - 1) * inputs_, (y * half + x) * outputs_, tap);
        }
  }

  std::size_t side_, inputs_, outputs_;
  weights kernel_;
};

/// Two convolutions, the mean over all places, and a linear layer with softmax.
class network {
 public:
  network(std::size_t side, std::size_t classes)
      : first_(side, 3, 12, random_),
        second_(side / 2, 12, width, random_),
        places_(side / 4 * (side / 4)),
        classes_(classes),
        linear_(width * classes, width, random_),
        score_(classes) {}

  struct judgement {
    double loss;
    bool right;
  };
  /// Looks at one image, and adds to the gradient.
  judgement learn(const float* image, std::size_t label) {
    first_.forward(image);
    second_.forward(first_.out.data());
    float mean[width]{};
    for (std::size_t i = 0; i < second_.out.size(); ++i) mean[i % width] += second_.out[i];
    for (float& m : mean) m /= static_cast<float>(places_);
    std::fill(score_.begin(), score_.end(), 0.0f);
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t k = 0; k < classes_; ++k) score_[k] += mean[i] * linear_.value()[i * classes_ + k];

    const auto best = std::max_element(score_.begin(), score_.end());
    const bool right = static_cast<std::size_t>(best - score_.begin()) == label;
    float sum = 0;
    const float top = *best;
    for (float& s : score_) sum += s = std::exp(s - top);
    for (float& s : score_) s /= sum;
    const double loss = -std::log(std::max(static_cast<double>(score_[label]), 1e-30));

    score_[label] -= 1;  // now the derivative of the loss
    float d_mean[width]{};
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t k = 0; k < classes_; ++k) {
        d_mean[i] += score_[k] * linear_.value()[i * classes_ + k];
        linear_.gradient()[i * classes_ + k] += score_[k] * mean[i];
      }
    for (std::size_t i = 0; i < second_.out.size(); ++i)
      second_.d_out[i] = d_mean[i % width] / static_cast<float>(places_);
    second_.backward(first_.out.data());
    first_.d_out = second_.d_in;
    first_.backward(image);
    return {loss, right};
  }
  void step(float rate) {
    first_.step(rate);
    second_.step(rate);
    linear_.step(rate);
  }

 private:
  static constexpr std::size_t width = 24;

  ps::rng random_{1, 0, 0, 0};
  convolution first_, second_;
  std::size_t places_, classes_;
  weights linear_;
  std::vector<float> score_;
};

struct options {
  std::uint64_t batch, epochs, accelerator_ms, seed;
  std::uint32_t size;
  unsigned workers;
};

/// `Image` and `Label` are the names of the fields.
template <ps::fixed_string Image, ps::fixed_string Label, class Samples>
void train(const Samples& samples, std::size_t classes, const options& how) {
  const auto loader = samples | ps::shuffle(ps::seed(how.seed)) |
                      ps::map<Image>(ps::random_resized_crop(how.size, {.scale = {0.35, 1}}),
                                     ps::horizontal_flip(), ps::normalize(ps::imagenet)) |
                      ps::batch(how.batch, ps::tail::keep) | ps::workers(how.workers);
  auto run = loader.open();
  network net(how.size, classes);
  const double steps = static_cast<double>(how.epochs * run.steps_per_epoch());
  double done = 0;
  for (auto epoch : run.epochs(how.epochs)) {
    const auto number = static_cast<unsigned long long>(epoch.number());
    ps::progress bar("epoch " + std::to_string(number), run.steps_per_epoch());
    const ps::run_counters before = run.counters();
    bar.begin(before);
    double loss = 0, right = 0, seen = 0;
    for (auto&& batch : epoch) {
      if (how.accelerator_ms != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(how.accelerator_ms));
      } else {
        const auto images = ps::get<Image>(batch);  // (batch, size, size, 3), float
        const auto labels = ps::get<Label>(batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          if (labels[i] < 0 || static_cast<std::size_t>(labels[i]) >= classes)
            throw std::runtime_error("a label is " + std::to_string(labels[i]) + ", and there are " +
                                     std::to_string(classes) + " classes; see --classes");
          const auto judged = net.learn(images[i].data(), static_cast<std::size_t>(labels[i]));
          loss += judged.loss;
          right += judged.right ? 1 : 0;
        }
        const double rate = 0.1 * (1 - done / steps);  // falls to zero
        net.step(static_cast<float>(rate / static_cast<double>(batch.size())));
      }
      seen += static_cast<double>(batch.size());
      done += 1;
      if (how.accelerator_ms == 0) bar.show("loss", loss / seen);
      bar.tick([&] { return run.counters(); });
    }
    const ps::run_counters after = run.counters(), spent = ps::since(after, before);
    bar.finish(after);
    std::printf("epoch %llu:", number);
    if (how.accelerator_ms == 0) std::printf(" loss %.6f, accuracy %.4f,", loss / seen, right / seen);
    std::printf(" %.0f images/s, stall %.2f %%\n", spent.samples_per_second(), 100 * spent.stall());
    std::fflush(stdout);
  }
}

void train_images(arguments& given) {
  const std::string shards = given.text("shards", ""), folder = given.text("folder", "");
  const bool says_classes = given.has("classes");
  const std::uint64_t classes = given.number("classes", 10), size = given.number("size", 64);
  const options how{
      .batch = given.number("batch", 32),
      .epochs = given.number("epochs", 5),
      .accelerator_ms = given.number("accelerator", 0),
      .seed = given.number("seed", 7),
      .size = static_cast<std::uint32_t>(size),
      .workers = static_cast<unsigned>(given.number("workers", ps::default_workers(1), max_workers))};
  given.done();
  if (shards.empty() == folder.empty()) throw std::runtime_error("give either --shards or --folder");
  if (size < 8 || size > 1024 || size % 4 != 0)
    throw std::runtime_error("--size is from 8 to 1024, and a multiple of 4");
  if (classes < 2 || classes > 100'000) throw std::runtime_error("--classes is from 2 to 100000");
  if (how.epochs == 0) throw std::runtime_error("--epochs is at least 1");

  using picture = ps::image_of<ps::jpeg, ps::png, ps::webp, ps::npy_image>;
  if (!shards.empty()) {
    const auto samples =
        ps::webdataset(shards) |
        ps::decode<ps::field<"jpg;jpeg;png;webp;npy", picture>, ps::field<"cls", ps::integer>>;
    train<"jpg", "cls">(samples, classes, how);
  } else {
    const ps::directory files(folder, {.extensions = {"jpg", "jpeg", "png", "webp", "npy"}});
    const std::size_t there = files.classes().size();
    if (there < 2)
      throw std::runtime_error(
          folder + " has images of " + std::to_string(there) +
          " class, and there is nothing to tell apart; give a folder with a subfolder for "
          "each of two classes or more");
    if (says_classes && classes != there)
      throw std::runtime_error("--classes is " + std::to_string(classes) + ", and " + folder + " has " +
                               std::to_string(there) + " classes; leave --classes out");
    train<"bytes", "label">(files | ps::decode<ps::field<"bytes", picture>>, there, how);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "train_images (--shards PATTERN [--classes 10] | --folder DIR) [--size 64] [--batch 32] [--epochs 5] "
        "[--workers N] [--accelerator MS] [--seed 7]";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    train_images(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_images: %s\n", e.what());
    return 1;
  }
}
