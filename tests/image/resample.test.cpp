// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/resample.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/resize_oracles.hpp"
#include "support/test_image.hpp"

#include <vector>

namespace resample_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr ps::interpolation all_ways[] = {ps::interpolation::nearest, ps::interpolation::bilinear,
                                          ps::interpolation::bicubic, ps::interpolation::area};

template <std::size_t Channels>
std::vector<std::uint8_t> resampled(const test_image<std::uint8_t, Channels>& image, const ps::resampling& r,
                                    const ps::image_part& part, const ps::detail::resample_kernels& kernels,
                                    ps::image_scratch& scratch) {
  std::vector<std::uint8_t> values(std::size_t{part.width} * part.height * Channels + 1, 93);
  ps::resample(image, r, part, scratch,
               ps::destination<std::uint8_t>(
                   values.data(), ps::extents(std::size_t{part.height}, std::size_t{part.width}, Channels)),
               kernels);
  REQUIRE(values.back() == 93);
  values.pop_back();
  return values;
}

/// The weights of Pillow, and two passes, written as simply as can be, for antialiased bilinear.
template <std::size_t Channels>
std::vector<std::uint8_t> simple_bilinear(const test_image<std::uint8_t, Channels>& image,
                                          ps::image_size to) {
  const auto pass = [](std::uint32_t from, std::uint32_t size, std::uint32_t i, auto value) {
    const double scale = static_cast<double>(from) / size, wide = std::max(scale, 1.0);
    const double centre = (i + 0.5) * scale;
    const auto begin = static_cast<std::uint32_t>(std::max(0.0, centre - wide + 0.5));
    const auto end = std::min(from, static_cast<std::uint32_t>(centre + wide + 0.5));
    const auto weight = [&](std::uint32_t t) {
      return std::max(0.0, 1 - std::abs((t - centre + 0.5) * (1 / wide)));
    };
    double sum = 0;
    for (std::uint32_t t = begin; t < end; ++t) sum += weight(t);
    std::int64_t all = 1 << 21;
    for (std::uint32_t t = begin; t < end; ++t)
      all += std::int64_t{value(t)} * static_cast<std::int64_t>(weight(t) / sum * (1 << 22) + 0.5);
    return static_cast<std::uint8_t>(std::min<std::int64_t>(all >> 22, 255));
  };
  const auto [w, h] = image.size();
  std::vector<std::uint8_t> between(std::size_t{to.width} * h * Channels);
  std::vector<std::uint8_t> result(std::size_t{to.width} * to.height * Channels);
  for (std::uint32_t y = 0; y < h; ++y)
    for (std::uint32_t x = 0; x < to.width; ++x)
      for (std::size_t c = 0; c < Channels; ++c)
        between[(y * to.width + x) * Channels + c] =
            w == to.width ? image.at(x, y, c)
                          : pass(w, to.width, x, [&](std::uint32_t t) { return image.at(t, y, c); });
  for (std::uint32_t y = 0; y < to.height; ++y)
    for (std::uint32_t x = 0; x < to.width; ++x)
      for (std::size_t c = 0; c < Channels; ++c) {
        const auto at = [&](std::uint32_t t) { return between[(t * to.width + x) * Channels + c]; };
        result[(y * to.width + x) * Channels + c] = h == to.height ? at(y) : pass(h, to.height, y, at);
      }
  return result;
}

template <std::size_t Channels>
void check_kernels() {
  ps::image_scratch scratch;
  ps::rng random(5, 0, Channels);
  const auto side = [&](std::uint64_t maximum) {
    return static_cast<std::uint32_t>(1 + random.below(maximum));
  };
  for (int round = 0; round < 60; ++round) {
    const test_image<std::uint8_t, Channels> image({side(70), side(50)}, random(), round % 3 == 0 ? 0 : 3);
    for (const ps::interpolation how : all_ways) {
      const ps::resampling r{
          image.size(),
          {round % 9 == 0 ? image.size().width : side(90), round % 7 == 0 ? image.size().height : side(60)},
          how,
          round % 4 != 0};
      INFO(to_string(how) << ' ' << r.from.width << " x " << r.from.height << " to " << r.to.width << " x "
                          << r.to.height);
      const auto whole = ps::whole_of(r.to);
      const auto portable = resampled(image, r, whole, ps::detail::portable_kernels(), scratch);
      if (const auto* const avx2 = ps::detail::avx2_kernels(); avx2 != nullptr)
        REQUIRE(resampled(image, r, whole, *avx2, scratch) == portable);
      REQUIRE(resampled(image, r, whole, ps::detail::best_kernels(), scratch) == portable);
      if (how == ps::interpolation::bilinear && r.antialias)
        REQUIRE(simple_bilinear(image, r.to) == portable);

      const ps::image_part part{r.to.width / 3, r.to.height / 4, (r.to.width + 2) / 3, (r.to.height + 1) / 2};
      std::vector<std::uint8_t> expected;
      for (std::size_t y = part.y; y < part.y + part.height; ++y)
        for (std::size_t i = part.x * Channels; i < (part.x + part.width) * Channels; ++i)
          expected.push_back(portable[y * r.to.width * Channels + i]);
      REQUIRE(resampled(image, r, part, ps::detail::portable_kernels(), scratch) == expected);
      REQUIRE(image.last_part() == r.needed(part));
      REQUIRE(resampled(image, r, part, ps::detail::best_kernels(), scratch) == expected);
      REQUIRE_FALSE(image.read_outside());
    }
  }
}

}  // namespace

TEST_CASE("image/resample: all kernels give the same bytes, for any part, and those of a simple loop") {
  check_kernels<1>();
  check_kernels<3>();
  check_kernels<4>();
}

TEST_CASE("image/resample: bytes of Pillow, with every kernel") {
  for (const auto* kernels : {&ps::detail::portable_kernels(), ps::detail::avx2_kernels()}) {
    if (kernels == nullptr) {
      WARN("this processor has no AVX2: its kernels are not tested");
      continue;
    }
    ps::image_scratch scratch;
    for (const resize_oracle& oracle : resize_oracles) {
      if (std::string_view(oracle.operation) != "pillow") continue;
      const std::string_view how = oracle.arguments;
      const auto check = [&](const auto& image) {
        ps::resampling r{image.size(), {oracle.new_width, oracle.new_height}};
        if (how.starts_with("bicubic")) r.how = ps::interpolation::bicubic;
        if (how.starts_with("area")) r.how = ps::interpolation::area;
        INFO(kernels->name << ' ' << how << " of " << oracle.width << " x " << oracle.height);
        CHECK(resampled(image, r, ps::whole_of(r.to), *kernels, scratch) == oracle.values());
      };
      if (oracle.channels == 1) check(oracle.image<1>());
      if (oracle.channels == 3) check(oracle.image<3>());
      if (oracle.channels == 4) check(oracle.image<4>());
    }
  }
}

TEST_CASE("image/resample: only what is needed is read") {
  const test_image<std::uint8_t, 3> image({400, 300}, 1);
  const ps::resampling half{image.size(), {200, 150}};
  ps::image_scratch scratch;
  (void)resampled(image, half, {50, 40, 10, 20}, ps::detail::best_kernels(), scratch);
  CHECK(image.reads() == 1);
  CHECK(image.last_part() == ps::image_part{99, 79, 22, 42});
  CHECK(half.needed({0, 0, 200, 150}) == ps::image_part{0, 0, 400, 300});
  const ps::resampling nearest{image.size(), {200, 150}, ps::interpolation::nearest};
  CHECK(nearest.needed({50, 40, 10, 20}) == ps::image_part{100, 80, 19, 39});
  const ps::resampling sharp{image.size(), {100, 75}, ps::interpolation::bilinear, false};
  CHECK(sharp.needed({50, 40, 1, 1}) == ps::image_part{201, 161, 2, 2});
  image.forget_reads();
  (void)resampled(image, half, {50, 40, 0, 0}, ps::detail::best_kernels(), scratch);
  CHECK(image.reads() == 0);
}

TEST_CASE("image/resample: one colour stays that colour") {
  ps::image_scratch scratch;
  for (const int value : {0, 1, 127, 254, 255}) {
    const test_image<std::uint8_t, 3> image({37, 23}, [&](auto, auto, auto) { return value; });
    for (const ps::interpolation how : all_ways)
      for (const bool antialias : {false, true})
        for (const ps::image_size to : {ps::image_size{5, 3}, ps::image_size{80, 90}, ps::image_size{1, 1}}) {
          const auto values = resampled(image, {image.size(), to, how, antialias}, ps::whole_of(to),
                                        ps::detail::best_kernels(), scratch);
          CHECK(std::count(values.begin(), values.end(), value) ==
                static_cast<std::ptrdiff_t>(values.size()));
        }
  }
}

TEST_CASE("image/resample: weights are kept as long as sizes stay, and nothing is allocated") {
  const test_image<std::uint8_t, 3> first({60, 50}, 1), second({60, 50}, 2), other({50, 60}, 3);
  ps::image_scratch scratch, fresh;
  const ps::resampling r{{60, 50}, {31, 22}}, sideways{{50, 60}, {31, 22}};
  const auto& kernels = ps::detail::best_kernels();
  (void)resampled(other, sideways, ps::whole_of(r.to), kernels, scratch);
  (void)resampled(first, r, ps::whole_of(r.to), kernels, scratch);
  CHECK(resampled(second, r, ps::whole_of(r.to), kernels, scratch) ==
        resampled(second, r, ps::whole_of(r.to), kernels, fresh));
  CHECK(resampled(other, sideways, ps::whole_of(r.to), kernels, scratch) ==
        resampled(other, sideways, ps::whole_of(r.to), kernels, fresh));

  std::vector<std::uint8_t> room(31 * 22 * 3);
  const ps::destination<std::uint8_t> into(room.data(), ps::extents(22, 31, 3));
  CHECK(allocations_of([&] {
          for (int i = 0; i < 5; ++i) {
            ps::resample(first, r, ps::whole_of(r.to), scratch, into);
            ps::resample(other, sideways, ps::whole_of(r.to), scratch, into);
          }
        }) == 0);
}

TEST_CASE("image/resample: a large reduction, whose windows are longer than the tables of fixed length") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 3> image({1000, 40}, 9);
  const test_image<std::uint8_t, 1> gray({1000, 40}, 9);
  const ps::image_size to{7, 3};
  CHECK(resampled(image, {image.size(), to}, ps::whole_of(to), ps::detail::best_kernels(), scratch) ==
        simple_bilinear(image, to));
  CHECK(resampled(gray, {gray.size(), to}, ps::whole_of(to), ps::detail::best_kernels(), scratch) ==
        simple_bilinear(gray, to));
}

}  // namespace resample_test
