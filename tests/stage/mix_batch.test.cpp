// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/mix_batch.hpp>

#include <penstock/core/half.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace mix_batch_test {

namespace ps = penstock;
using penstock_test::error_of;

namespace {

/// An array of this shape whose values are i + k / 1000.
template <class T>
struct picture {
  using unfinished = void;
  using value_type = T;
  std::uint64_t i;
  ps::extents size;
  [[nodiscard]] ps::extents shape() const { return size; }
  void write_to(T* into) const {
    for (std::uint64_t k = 0; k < size.elements(); ++k)
      into[k] =
          static_cast<T>(std::is_integral_v<T> ? static_cast<double>(i % 200)
                                               : static_cast<double>(i) + static_cast<double>(k) / 1000);
  }
  [[nodiscard]] ps::tensor_view<const T> finish() const { return {nullptr, size}; }
};

template <class T>
using pictured =
    ps::record<ps::field<"image", picture<T>>, ps::field<"label", int>, ps::field<"id", std::uint64_t>>;

template <class T>
struct make_sample {
  ps::extents size;
  int classes;
  pictured<T> operator()(std::uint64_t i) const {
    if (i % 11 == 7 && fails) throw ps::error(ps::errc::format, "bad");
    return pictured<T>(picture<T>{i, size}, static_cast<int>(i % static_cast<std::uint64_t>(classes)), i);
  }
  bool fails = false;
};

struct seen_batch {
  std::vector<double> images;
  std::vector<float> labels;
  std::vector<std::uint64_t> ids;
  std::size_t valid = 0;
  bool operator==(const seen_batch&) const = default;
};
template <class Batch>
seen_batch seen(const Batch& b) {
  seen_batch made;
  const auto images = ps::get<"image">(b).flat();
  made.images.assign(images.begin(), images.end());
  const auto labels = ps::get<"label">(b).flat();
  made.labels.assign(labels.begin(), labels.end());
  const auto ids = ps::get<"id">(b);
  made.ids.assign(ids.begin(), ids.end());
  made.valid = b.valid_size();
  return made;
}
template <class Run>
std::vector<seen_batch> rest_of(Run& run) {
  std::vector<seen_batch> all;
  for (auto&& b : run.rest()) all.push_back(seen(b));
  return all;
}

const ps::extents small(2, 5, 3);  // (channels, height, width)

}  // namespace

TEST_CASE("stage/mix_batch: draws from Beta(alpha, alpha)") {
  for (const double alpha : {0.05, 0.2, 0.5, 1.0, 2.0, 8.0}) {
    ps::rng random(1, 2, 3);
    double sum = 0, squares = 0;
    constexpr int n = 20'000;
    for (int i = 0; i < n; ++i) {
      const double x = ps::detail::draw_beta(random, alpha);
      REQUIRE((x >= 0 && x <= 1));
      sum += x, squares += x * x;
    }
    const double mean = sum / n, variance = squares / n - mean * mean;
    CHECK(std::abs(mean - 0.5) < 0.02);
    CHECK(std::abs(variance * 4 * (2 * alpha + 1) - 1) < 0.05);
  }
  // shares that are no more than 0 or 1 are numbers still
  ps::rng random(1, 2, 3);
  int low = 0, high = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = ps::detail::draw_beta(random, 1e-5);
    REQUIRE((x >= 0 && x <= 1));
    low += x < 1e-6 ? 1 : 0, high += x > 1 - 1e-6 ? 1 : 0;
  }
  CHECK((low > 400 && high > 400 && low + high > 990));
  ps::rng again(1, 2, 3), more(1, 2, 3);
  CHECK(ps::detail::draw_beta(again, 0.3) == ps::detail::draw_beta(more, 0.3));
}

TEST_CASE("stage/mix_batch: each function says which one it is") {
  CHECK(ps::mixup<"image", "label">(5).describe() == "mixup_function");
  CHECK(ps::cutmix<"image", "label">(5).describe() == "cutmix_function");
}

TEST_CASE("stage/mix_batch: mixup adds the image before, and its label") {
  const auto plan = ps::generated(26, make_sample<float>{small, 5}) | ps::batch(8) |
                    ps::map_batch(ps::mixup<"image", "label">(5, {.alpha = 0.7}));
  const std::size_t values = 30;
  std::vector<seen_batch> first;
  std::vector<double> shares;
  for (auto&& b : plan.epoch(0)) {
    STATIC_REQUIRE(std::is_same_v<decltype(ps::get<"label">(b)), ps::tensor_view<float>>);
    REQUIRE(ps::get<"image">(b).shape() == small.prepend(b.size()));
    REQUIRE(ps::get<"label">(b).shape() == ps::extents(b.size(), 5));
    const seen_batch got = seen(b);
    const std::size_t n = b.size();
    const double share = (n == 1) ? 1 : 1 - (got.images[values] - static_cast<double>(got.ids[1])) / -1.0;
    shares.push_back(share);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t p = (i + n - 1) % n;
      for (std::size_t k = 0; k < values; ++k) {
        const double fraction = static_cast<double>(k) / 1000;
        const double expected = share * (static_cast<double>(got.ids[i]) + fraction) +
                                (1 - share) * (static_cast<double>(got.ids[p]) + fraction);
        REQUIRE(std::abs(got.images[i * values + k] - expected) < 1e-4);
      }
      std::array<double, 5> soft{};
      soft[got.ids[i] % 5] += share, soft[got.ids[p] % 5] += 1 - share;
      for (std::size_t k = 0; k < 5; ++k)
        REQUIRE(std::abs(static_cast<double>(got.labels[i * 5 + k]) - soft[k]) < 1e-4);
    }
    first.push_back(got);
  }
  REQUIRE(first.size() == 4);
  CHECK(first.back().ids == std::vector<std::uint64_t>{24, 25});
  CHECK((shares[0] > 0 && shares[0] < 1 && shares[0] != shares[1]));
}

TEST_CASE("stage/mix_batch: the same for any number of workers, and after a restore") {
  const auto plan = ps::generated(60, make_sample<float>{small, 5}) | ps::shuffle(ps::seed(3)) |
                    ps::batch(7) | ps::map_batch(ps::mixup<"image", "label">(5)) |
                    ps::map_batch(ps::cutmix<"image", "label">(5, {.alpha = 2}));
  std::vector<seen_batch> whole;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    auto run = (plan | ps::workers(workers)).open();
    const auto all = rest_of(run);
    REQUIRE(all.size() == 9);
    if (whole.empty()) whole = all;
    CHECK(all == whole);
  }
  auto run = (plan | ps::workers(2)).open();
  for (int i = 0; i < 4; ++i) REQUIRE(run.next());
  const std::string state = to_string(run.state());
  auto resumed = (plan | ps::workers(0)).open(ps::state_from_string(state));
  CHECK(rest_of(resumed) == std::vector<seen_batch>(whole.begin() + 4, whole.end()));
  // soft labels stay shares
  for (const seen_batch& b : whole)
    for (std::size_t i = 0; i < b.ids.size(); ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < 5; ++k) sum += b.labels[i * 5 + k];
      REQUIRE(std::abs(sum - 1) < 1e-5f);
    }
}

TEST_CASE("stage/mix_batch: numbers of 16 and 64 bits are mixed too") {
  const std::vector<ps::half> halves{ps::half(1.0f), ps::half(2.0f), ps::half(3.0f), ps::half(8.0f)};
  std::vector<ps::half> mixed(4);
  ps::detail::blended_rows<ps::half>{halves.data(), ps::extents(2, 2), {2, {}}, 0.75f}.write_to(mixed.data());
  CHECK(static_cast<float>(mixed[0]) == 1.5f);
  CHECK(static_cast<float>(mixed[1]) == 3.5f);
  CHECK(static_cast<float>(mixed[2]) == 2.5f);
  CHECK(static_cast<float>(mixed[3]) == 6.5f);
  const std::vector<double> doubles{0.1, 0.3};
  std::vector<double> made(2);
  ps::detail::blended_rows<double>{doubles.data(), ps::extents(2, 1), {2, {}}, 0.1}.write_to(made.data());
  CHECK(made[0] == 0.1 * 0.1 + 0.3 * 0.9);
  // without samples nothing is mixed
  const std::vector<std::uint8_t> none(2, 0);
  ps::detail::blended_rows<double>{doubles.data(), ps::extents(2, 1), {2, none}, 0.1}.write_to(made.data());
  CHECK(made == doubles);
}

namespace {

/// Checks that each image has a rectangle of the one before, and returns how many rectangles had pixels.
template <class Plan>
int check_cut(const Plan& plan, std::size_t channels, std::size_t height, std::size_t width, bool first) {
  int cut = 0;
  for (auto&& b : plan.epoch(0)) {
    const auto images = ps::get<"image">(b);
    const std::size_t n = b.size();
    const auto ids = ps::get<"id">(b);
    std::size_t left = width, right = 0, top = height, bottom = 0, count = 0;
    const auto at = [&](std::size_t i, std::size_t c, std::size_t y, std::size_t x) {
      return first ? images(i, c, y, x) : images(i, y, x, c);
    };
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x)
          for (std::size_t c = 0; c < channels; ++c) {
            const auto before = ids[(i + n - 1) % n], v = static_cast<std::uint64_t>(at(i, c, y, x));
            REQUIRE((v == ids[i] || v == before));
            if (v == ids[i]) continue;
            ++count;
            left = std::min(left, x), right = std::max(right, x + 1);
            top = std::min(top, y), bottom = std::max(bottom, y + 1);
          }
    const std::size_t area = right > left ? (right - left) * (bottom - top) : 0;
    REQUIRE(count == n * channels * area);
    cut += area != 0 ? 1 : 0;
    const double share = 1 - static_cast<double>(area) / static_cast<double>(height * width);
    const auto labels = ps::get<"label">(b);
    for (std::size_t i = 0; i < n; ++i)
      REQUIRE(std::abs(static_cast<double>(labels(i, ids[i] % 5)) - share) < 1e-5);
  }
  return cut;
}

}  // namespace

TEST_CASE("stage/mix_batch: cutmix takes a rectangle of the image before") {
  const auto bytes = ps::generated(160, make_sample<std::uint8_t>{ps::extents(3, 9, 14), 5}) | ps::batch(4);
  CHECK(check_cut(bytes | ps::map_batch(ps::cutmix<"image", "label">(5)), 3, 9, 14, true) > 20);
  const auto last = ps::generated(160, make_sample<std::uint8_t>{ps::extents(9, 14, 3), 5}) | ps::batch(4);
  CHECK(check_cut(last | ps::map_batch(ps::cutmix<"image", "label">(5, {.channels_first = false})), 3, 9, 14,
                  false) > 20);
  CHECK(error_of([&] {
          check_cut(last | ps::map_batch(ps::cutmix<"image", "label">(5)), 3, 9, 14, false);
        }).find("channels_first = false") != std::string::npos);

  // the rectangle
  ps::rng random(1, 0, 0);
  double area = 0;
  for (int i = 0; i < 2000; ++i) {
    double share = 0.75;
    const auto box = ps::detail::draw_cut_box(ps::extents(1, 3, 20, 40), true, random, share);
    REQUIRE((box.x + box.width <= 40 && box.y + box.height <= 20 && box.width <= 20 && box.height <= 10));
    REQUIRE(share == 1 - static_cast<double>(box.width * box.height) / 800);
    area += 1 - share;
  }
  CHECK((area / 2000 > 0.18 && area / 2000 < 0.2));  // a quarter, less what is cut off
  double share = 0.5;
  CHECK(ps::detail::draw_cut_box(ps::extents(1, 3, 0, 0), true, random, share).width == 0);
  CHECK_THROWS_AS(ps::detail::draw_cut_box(ps::extents(4, 3, 3), true, random, share), ps::error);
  CHECK_THROWS_AS(ps::detail::draw_cut_box(ps::extents(4, 3, 30, 30), false, random, share), ps::error);
  CHECK_THROWS_AS(ps::detail::draw_cut_box(ps::extents(4, 30, 30, 3), true, random, share), ps::error);
}

TEST_CASE("stage/mix_batch: slots without a sample take no part") {
  const auto plan = ps::generated(30, make_sample<float>{small, 5, true}) | ps::bad_samples::skip(100) |
                    ps::batch(8, ps::tail::pad) | ps::map_batch(ps::mixup<"image", "label">(5));
  std::size_t rows = 0;
  for (auto&& b : (plan | ps::workers(2)).epoch(0)) {
    const auto valid = b.valid();
    for (std::size_t i = 0; i < b.size(); ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < 5; ++k) sum += ps::get<"label">(b)(i, k);
      REQUIRE(std::abs(sum - (valid[i] != 0 ? 1.0f : 0.0f)) < 1e-5f);
      if (valid[i] == 0) REQUIRE(ps::get<"image">(b)(i, 0, 0, 0) == 0);
      // mixed with samples only: values of samples of this batch, or between them
      if (valid[i] != 0) REQUIRE(ps::get<"image">(b)(i, 0, 0, 0) >= static_cast<float>(b.step() * 8));
      rows += valid[i];
    }
  }
  CHECK(rows == 27);
}

TEST_CASE("stage/mix_batch: what is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  for (const double alpha : {0.0, -1.0, 1e-309, 1e7, nan, inf}) {
    CHECK_THROWS_AS((ps::mixup<"image", "label">(5, {.alpha = alpha})), ps::error);
    CHECK_THROWS_AS((ps::cutmix<"image", "label">(5, {.alpha = alpha})), ps::error);
  }
  CHECK_THROWS_AS((ps::mixup<"image", "label">(0)), ps::error);
  CHECK_THROWS_AS((ps::cutmix<"image", "label">(-3)), ps::error);
  const auto plan = ps::generated(30, make_sample<float>{small, 5}) | ps::batch(8);
  const std::string said = error_of([&] {
    for (auto&& b : (plan | ps::map_batch(ps::mixup<"image", "label">(4))).epoch(0)) static_cast<void>(b);
  });
  CHECK(said.find("the label in slot 4 of the batch is no class of mixup(4)") != std::string::npos);
  CHECK(error_of([&] {
          for (auto&& b : (plan | ps::map_batch(ps::mixup<"image", "label">(5)) |
                           ps::map_batch(ps::mixup<"image", "label">(6)))
                              .epoch(0))
            static_cast<void>(b);
        }).find("of shape (8, 5)") != std::string::npos);
}

}  // namespace mix_batch_test
