// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 22: the kernels of images alone. Bytes to normalised float32, channels first, against a plain loop and
// against memcpy of as many bytes; resizing against Pillow.

#include "support/harness.hpp"
#include "support/raw_image.hpp"

#include <penstock/image.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint32_t side = 224;
constexpr std::size_t image_values = 3 * side * side;

std::vector<std::uint8_t> made_up(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(ps::mix64(i));
  return values;
}

ps::call<ps::image_scratch> with(ps::image_scratch& s) { return {{}, 0, 0, 0, s}; }

void convert(const bench::options& o) {
  constexpr std::size_t images = 16;
  const std::size_t rounds = o.quick ? 2 : 20;
  const auto bytes = made_up(images * image_values);
  std::vector<float> out(images * image_values), copied(images * image_values, 1.0f);
  ps::image_scratch scratch;
  const auto normal = ps::normalize(ps::imagenet);
  const auto ours = [&] {
    for (std::size_t n = 0; n < rounds * images; ++n) {
      const std::size_t i = n % images;
      const bench::raw_image image({bytes.data() + i * image_values, {side, side}}, scratch);
      ps::to_chw()(normal(image, with(scratch)), with(scratch))
          .write_to(ps::destination<float>(out.data() + i * image_values, ps::extents(3, side, side)));
      bench::escape(out.data());
    }
    return std::uint64_t{0};
  };
  const auto plain = [&] {
    const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
    for (std::size_t n = 0; n < rounds * images; ++n) {
      const std::size_t i = n % images;
      const std::uint8_t* const from = bytes.data() + i * image_values;
      float* const to = out.data() + i * image_values;
      for (std::size_t p = 0; p < side * side; ++p)
        for (std::size_t c = 0; c < 3; ++c)
          to[c * side * side + p] = (static_cast<float>(from[3 * p + c]) / 255.0f - mean[c]) / std[c];
      bench::escape(out.data());
    }
    return std::uint64_t{0};
  };
  const auto copy = [&] {
    for (std::size_t n = 0; n < rounds * images; ++n) {
      const std::size_t i = n % images;
      std::memcpy(out.data() + i * image_values, copied.data() + i * image_values,
                  image_values * sizeof(float));
      bench::escape(out.data());
    }
    return std::uint64_t{0};
  };
  bench::compare(o, {"22a", "bytes to normalised float32, channels first / a plain loop", 4}, ours, plain);
  bench::compare(o, {"22b", "the same / memcpy of the result", 0.5}, ours, copy);
}

void resize(const bench::options& o) {
  const bench::row row{"22c", "resize 500 x 375 to 224 x 224, bilinear, antialiased / Pillow", 2};
  if (!o.wants(row.id)) return;
  const char* python = std::getenv("BENCH_TORCHVISION_PYTHON");
  if (python == nullptr) return bench::print_skipped(row, "bench/run.sh says where Pillow is");
  const auto bytes = made_up(std::size_t{500} * 375 * 3);
  std::vector<std::uint8_t> out(image_values);
  ps::image_scratch scratch;
  const auto to_size = ps::resize(side, side);
  const int rounds = o.quick ? 50 : 500;
  const std::string command = std::string(python) +
                              " -c \"import time; from PIL import Image; i=Image.effect_noise((500,375),99)"
                              ".convert('RGB'); i.resize((224,224),2); b=time.perf_counter(); "
                              "[i.resize((224,224),2) for _ in range(" +
                              std::to_string(rounds) + ")]; print((time.perf_counter()-b)/" +
                              std::to_string(rounds) + ")\"";
  std::vector<double> ratios, ours, theirs;
  for (int pair = -1; pair < (o.quick ? 1 : 7); ++pair) {
    const double begin = bench::seconds_now();
    for (int i = 0; i < rounds; ++i) {
      const bench::raw_image image({bytes.data(), {500, 375}}, scratch);
      to_size(image, with(scratch))
          .write_to(ps::destination<std::uint8_t>(out.data(), ps::extents(side, side, 3)));
      bench::escape(out.data());
    }
    const double our_time = (bench::seconds_now() - begin) / rounds;
    double their_time = 0;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    const bool good = pipe != nullptr && std::fscanf(pipe, "%lf", &their_time) == 1;
    if (pipe != nullptr) ::pclose(pipe);
    if (!good) return bench::print_skipped(row, "Pillow is not there");
    if (pair < 0) continue;
    ours.push_back(our_time);
    theirs.push_back(their_time);
    ratios.push_back(their_time / our_time);
  }
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + bench::milliseconds(bench::quantile(ours, 0.5)) + ", Pillow " +
                       bench::milliseconds(bench::quantile(theirs, 0.5)));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main(argc, argv, [](const bench::options& o) {
    convert(o);
    resize(o);
  });
}
