// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/evaluate_each.hpp"

#include "support/catch.hpp"

#include <penstock/codec/identity.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace evaluate_test {

// Shows that one signature is enough: five kinds of payload go through evaluate(position, worker, sink) alone
// and through the engine, with equal results. The fifth, with a context per worker, is in
// evaluate_zstd.test.cpp.

namespace ps = penstock;
using bytes = std::vector<std::byte>;

namespace {

constexpr std::uint64_t count = 200, seed = 5;

bytes some_bytes(std::uint64_t i, std::size_t size) {
  bytes made(size);
  for (std::size_t k = 0; k < size; ++k) made[k] = static_cast<std::byte>(ps::mix64(i * 1000 + k));
  return made;
}

template <class F>
auto made_of(F f) {
  std::vector<bytes> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(f(i));
  return ps::from(std::move(all));
}

/// The rows that the engine makes of a plan, for several numbers of workers.
template <class Plan, class Row>
void through_the_engine(const Plan& plan, Row row) {
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::uint64_t seen = 0;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i) row(seen++, b, i);
    CHECK(seen == count);
  }
}

}  // namespace

TEST_CASE("run/evaluate: raw bytes of any length") {
  const auto samples = made_of([](std::uint64_t i) { return some_bytes(i, i % 50); }) |
                       ps::shuffle(ps::seed(seed)) | ps::decode<ps::identity>;
  std::vector<bytes> found(count);
  penstock_test::evaluate_each(samples, [&](std::uint64_t i, const auto& value) {
    const auto view = ps::as_bytes(value);
    found[i].assign(view.begin(), view.end());
  });
  through_the_engine(samples | ps::batch(32, ps::ragged),
                     [&](std::uint64_t at, const auto& b, std::size_t i) {
                       CHECK(std::ranges::equal(b.values()[i], found[at]));
                     });
  std::sort(found.begin(), found.end());
  CHECK(found.front().empty());
  CHECK(found.back().size() < 50);
}

TEST_CASE("run/evaluate: npy arrays, announced by their headers") {
  const auto array = [](std::uint64_t i) { return std::vector<float>(12, static_cast<float>(i)); };
  const auto samples =
      made_of([&](std::uint64_t i) { return ps::npy_bytes<float>(ps::extents(3, 4), array(i)); }) |
      ps::shuffle(ps::seed(seed)) | ps::decode<ps::npy<float>>;
  std::vector<float> found(count);
  penstock_test::evaluate_each(samples, [&]<class V>(std::uint64_t i, const V& value) {
    static_assert(ps::array_expression<V>, "an array is not copied before its destination is known");
    float into[12];
    value.write_to(ps::destination(into, value.shape()));
    found[i] = into[11];
  });
  through_the_engine(samples | ps::batch(32), [&](std::uint64_t at, const auto& b, std::size_t i) {
    CHECK(b.values().shape() == ps::extents(b.size(), 3, 4));
    CHECK(std::ranges::equal(b.values()[i].values(), std::vector<float>(12, found[at])));
  });
}

TEST_CASE("run/evaluate: text, whose length is known after decoding") {
  const auto words = [](std::uint64_t i) { return std::string(i % 30, 'a') + std::to_string(i); };
  const auto samples = made_of([&](std::uint64_t i) {
                         const std::string word = words(i);
                         const auto all = ps::bytes_of(word);
                         return bytes(all.begin(), all.end());
                       }) |
                       ps::shuffle(ps::seed(seed)) | ps::decode<ps::text>;
  std::vector<std::string> found(count);
  penstock_test::evaluate_each(samples, [&](std::uint64_t i, std::string_view value) { found[i] = value; });
  through_the_engine(samples | ps::batch(32, ps::ragged),
                     [&](std::uint64_t at, const auto& b, std::size_t i) {
                       const auto row = b.values()[i];
                       CHECK(std::string(row.begin(), row.end()) == found[at]);
                     });
}

namespace {

std::atomic<std::uint64_t> pixels_decoded{0};

/// The result of an image codec: an image that can decode a region. Its pixels are (seed + 7 y + x).
struct lazy_image {
  using unfinished = void;
  using value_type = std::uint8_t;
  std::uint8_t first;
  std::uint64_t height, width;
  std::vector<std::uint8_t>* whole;

  [[nodiscard]] ps::extents shape() const { return ps::extents(height, width); }
  void region(std::uint64_t top, std::uint64_t left, std::uint64_t rows, std::uint64_t columns,
              std::uint8_t* into) const {
    for (std::uint64_t y = top; y < top + rows; ++y)
      for (std::uint64_t x = left; x < left + columns; ++x)
        *into++ = static_cast<std::uint8_t>(first + 7 * y + x);
    pixels_decoded += rows * columns;
  }
  void write_to(std::uint8_t* into) const { region(0, 0, height, width, into); }
  [[nodiscard]] ps::tensor_view<const std::uint8_t> finish() const {
    whole->resize(static_cast<std::size_t>(height * width));
    write_to(whole->data());
    return {whole->data(), shape()};
  }
};

struct stub_image {
  static constexpr std::string_view codec_name = "stub_image";
  using scratch = std::vector<std::uint8_t>;
  template <ps::byte_element Bytes>
  [[nodiscard]] lazy_image decode(const Bytes& in, scratch& s) const {
    const ps::bytes_view head = ps::as_bytes(in);
    if (head.size() != 3) throw ps::error(ps::errc::format, "an image here has three bytes");
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(head[i]); };
    return {at(0), at(1), at(2), &s};
  }
};

/// A part of fixed size of an image that is not decoded yet: an expression whose shape is part of its type.
template <std::uint64_t Size>
struct cropped {
  using unfinished = void;
  using value_type = std::uint8_t;
  static constexpr ps::extents static_shape{Size, Size};
  lazy_image image;
  std::uint64_t top, left;

  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(std::uint8_t* into) const { image.region(top, left, Size, Size, into); }
  [[nodiscard]] ps::tensor_view<const std::uint8_t> finish() const {
    image.whole->resize(static_cast<std::size_t>(Size * Size));
    write_to(image.whole->data());
    return {image.whole->data(), static_shape};
  }
};

template <std::uint64_t Size>
struct random_crop {
  using accepts_unfinished = void;
  cropped<Size> operator()(const lazy_image& image, ps::rng& random) const {
    return {image, random.below(image.height - Size + 1), random.below(image.width - Size + 1)};
  }
};

}  // namespace

TEST_CASE("run/evaluate: only the crop of an image is decoded, at its destination") {
  const auto samples = made_of([](std::uint64_t i) {
                         return bytes{std::byte(i), std::byte(20 + i % 7), std::byte(30 + i % 5)};
                       }) |
                       ps::shuffle(ps::seed(seed)) | ps::decode<stub_image> | ps::map(random_crop<8>{});
  static_assert(ps::static_array_expression<typename decltype(samples)::element>,
                "decode and crop together are an expression of known shape");
  std::vector<std::vector<std::uint8_t>> found(count, std::vector<std::uint8_t>(64));
  penstock_test::evaluate_each(samples,
                               [&](std::uint64_t i, const auto& value) { value.write_to(found[i].data()); });
  CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());

  pixels_decoded = 0;
  through_the_engine(samples | ps::batch(32), [&](std::uint64_t at, const auto& b, std::size_t i) {
    static_assert(std::is_same_v<decltype(b.values()), ps::tensor_view<const std::uint8_t>>,
                  "a batch of images is an array");
    CHECK(b.values().shape() == ps::extents(b.size(), 8, 8));
    CHECK(std::ranges::equal(b.values()[i].values(), found[at]));
  });
  CHECK(pixels_decoded == 3 * count * 64);
}

}  // namespace evaluate_test
