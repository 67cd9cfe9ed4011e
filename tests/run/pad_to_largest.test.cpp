// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Arrays of unequal shapes in one block, by every way in which values get into batches and out of them.

#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_image.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pad_to_largest_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr std::uint64_t count = 29;

/// Value number k of picture i, never 0.
constexpr std::uint8_t pixel(std::uint64_t i, std::uint64_t k) {
  return static_cast<std::uint8_t>(1 + (i * 37 + k) % 113);
}

/// A picture whose values depend on its number and their place.
template <class T>
struct picture {
  using unfinished = void;
  using value_type = T;
  std::uint64_t number = 0;
  ps::extents size;
  [[nodiscard]] const ps::extents& shape() const { return size; }
  void write_to(const ps::destination<T>& into) const {
    into.fill_from([this, k = std::uint64_t{0}]() mutable { return static_cast<T>(pixel(number, k++)); });
  }
  [[nodiscard]] auto finish() const {
    thread_local std::vector<T> kept;
    kept.resize(static_cast<std::size_t>(size.elements()));
    write_to(ps::destination<T>(kept.data(), size));
    return ps::tensor_view<const T>(kept.data(), size);
  }
};

/// Images of unequal heights and widths, some without pixels.
ps::extents image_shape(std::uint64_t i) {
  return i == 11 ? ps::extents(0, 0, 3) : ps::extents(1 + i * 5 % 7, 2 + i * 3 % 5, 3);
}
ps::extents volume_shape(std::uint64_t i) { return ps::extents(1 + i % 3, 1 + i % 2, 1 + i % 5, 1 + i % 4); }
ps::extents list_shape(std::uint64_t i) { return ps::extents(i * 5 % 7); }

template <class T, class Shape>
auto pictures(Shape shape) {
  return ps::generated(count, [shape](std::uint64_t i) { return picture<T>{i, shape(i)}; });
}

/// What a batch holds: its shape, the sizes, and all bytes.
struct held {
  ps::extents shape;
  std::vector<ps::extents> sizes;
  std::vector<std::byte> bytes;
  friend bool operator==(const held&, const held&) = default;
};
template <class Batch>
held look(const Batch& b) {
  const auto view = b.values();
  held seen{view.shape(), {view.sizes().begin(), view.sizes().end()}, {}};
  const auto all = std::as_bytes(view.values().flat());
  seen.bytes.assign(all.begin(), all.end());
  return seen;
}
template <class Plan>
std::vector<held> look_at_all(const Plan& plan) {
  std::vector<held> all;
  for (auto&& b : plan.epoch(0)) {
    all.push_back(look(b));
    REQUIRE(reinterpret_cast<std::uintptr_t>(b.values().values().data()) % 64 == 0);
    if (!all.back().bytes.empty())
      CHECK(std::memcmp(b.device_data(), all.back().bytes.data(), all.back().bytes.size()) == 0);
  }
  return all;
}

/// The batch of these pictures, by the definition; a picture that is missing leaves zeros.
template <class T, class Shape>
held expected(const std::vector<std::optional<std::uint64_t>>& numbers, Shape shape, T fill, bool planes) {
  const auto turned = [&](std::uint64_t i) {
    const ps::extents s = shape(i);
    return planes ? ps::extents(s[2], s[0], s[1]) : s;
  };
  const std::size_t rank = shape(0).rank();
  std::array<std::uint64_t, 8> maximum{};
  for (const auto& i : numbers)
    for (std::size_t a = 0; i && a < rank; ++a) maximum[a] = std::max(maximum[a], turned(*i)[a]);
  ps::extents whole, none;
  for (std::size_t a = 0; a < rank; ++a) whole.push_back(maximum[a]), none.push_back(0);
  held made{whole.prepend(numbers.size()), {}, {}};
  std::vector<T> values;
  for (const auto& i : numbers) {
    made.sizes.push_back(i ? turned(*i) : none);
    for (std::uint64_t e = 0; e < whole.elements(); ++e) {
      std::array<std::uint64_t, 8> at{};
      std::uint64_t rest = e;
      for (std::size_t a = rank; a-- > 0; rest /= whole[a]) at[a] = rest % whole[a];
      bool within = i.has_value();
      for (std::size_t a = 0; within && a < rank; ++a) within = at[a] < made.sizes.back()[a];
      if (planes) std::swap(at[0], at[1]), std::swap(at[1], at[2]);  // (c, y, x) to (y, x, c)
      std::uint64_t k = 0;
      for (std::size_t a = 0; within && a < rank; ++a) k = k * shape(*i)[a] + at[a];
      values.push_back(within ? static_cast<T>(pixel(*i, k)) : i ? fill : T{});
    }
  }
  const auto all = std::as_bytes(std::span<const T>(values));
  made.bytes.assign(all.begin(), all.end());
  return made;
}
template <class T, class Shape>
std::vector<held> expected_batches(const std::vector<std::uint64_t>& order, std::size_t size, bool padded,
                                   Shape shape, T fill, bool planes) {
  std::vector<held> all;
  for (std::size_t first = 0; first < order.size(); first += size) {
    std::vector<std::optional<std::uint64_t>> numbers(
        order.begin() + static_cast<std::ptrdiff_t>(first),
        order.begin() + static_cast<std::ptrdiff_t>(std::min(first + size, order.size())));
    if (padded) numbers.resize(size);
    all.push_back(expected(numbers, shape, fill, planes));
  }
  return all;
}
std::vector<std::uint64_t> in_order() {
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}
std::vector<std::uint64_t> shuffled() {
  std::vector<std::uint64_t> all;
  for (auto&& b :
       (ps::generated(count, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(3)) | ps::batch(8))
           .epoch(0))
    all.insert(all.end(), b.values().begin(), b.values().end());
  return all;
}

template <class T, class Policy, class Shape>
void goes_every_way(Policy policy, Shape shape, T fill, bool planes) {
  const auto source = pictures<T>(shape);
  const auto keep = ps::filter([](const auto&) { return true; });
  const auto straight = expected_batches<T>(in_order(), 8, false, shape, fill, planes);
  const auto mixed = expected_batches<T>(shuffled(), 7, true, shape, fill, planes);
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    const auto w = ps::workers(workers);
    CHECK(look_at_all(source | ps::batch(8, policy) | w) == straight);
    CHECK(look_at_all(source | ps::shuffle(ps::seed(3)) | ps::batch(7, ps::tail::pad, policy) | w) == mixed);
    CHECK(look_at_all(source | ps::shuffle(ps::seed(3)) | keep | ps::batch(7, ps::tail::pad, policy) | w) ==
          mixed);
    CHECK(look_at_all(source | ps::batch(8, policy) | ps::pin_and_copy(ps::simulated{}) | w) == straight);
  }
}

}  // namespace

TEST_CASE("run/pad_to_largest: images, volumes and lists, by every way into a batch") {
  goes_every_way<std::uint8_t>(ps::pad_to_largest, image_shape, 0, false);
  goes_every_way<std::uint8_t>(ps::pad_to_largest_with<114>, image_shape, 114, false);
  goes_every_way<float>(ps::pad_to_largest_with<-1>, image_shape, -1, false);
  goes_every_way<std::uint8_t>(ps::pad_to_largest(ps::channels_first), image_shape, 0, true);
  goes_every_way<std::int16_t>(ps::pad_to_largest_with<-300>(ps::channels_first), image_shape, -300, true);
  goes_every_way<std::uint16_t>(ps::pad_to_largest, volume_shape, 0, false);
  goes_every_way<std::uint16_t>(ps::pad_to_largest_with<60'000>, volume_shape, 60'000, false);
  goes_every_way<double>(ps::pad_to_largest_with<7>, list_shape, 7, false);
  goes_every_way<ps::half>(ps::pad_to_largest_with<2>, image_shape, ps::half(2.0f), false);
}

TEST_CASE("run/pad_to_largest: a run that is restored has the same batches") {
  const auto plan =
      pictures<float>(image_shape) | ps::shuffle(ps::seed(5)) | ps::batch(4, ps::pad_to_largest_with<9>);
  const auto whole = look_at_all(plan | ps::workers(0));
  REQUIRE(whole.size() == 8);
  for (std::size_t stop = 0; stop < whole.size(); ++stop) {
    auto first = (plan | ps::workers(2)).open();
    std::size_t steps = 0;
    std::string state = to_string(first.state());
    for (auto&& b : first.epoch(0)) {
      if (steps++ == stop) break;
      REQUIRE(look(b) == whole[steps - 1]);
      state = to_string(first.state());
    }
    std::size_t step = stop;
    auto second = (plan | ps::workers(3)).open(ps::state_from_string(state));
    for (auto epoch : second.epochs(1))
      for (auto&& b : epoch) REQUIRE(look(b) == whole[step++]);
    REQUIRE(step == whole.size());
  }
}

TEST_CASE("run/pad_to_largest: lazy images are drawn once, in either order of channels") {
  const auto image = [](std::uint64_t i) {
    return test_image<std::uint8_t, 3>(
        {static_cast<std::uint32_t>(3 + i % 4), static_cast<std::uint32_t>(5 - i % 3)},
        [i](std::size_t x, std::size_t y, std::size_t c) { return 1 + i + 10 * y + 2 * x + c; });
  };
  const auto images = ps::generated(10, image);
  const auto check = [&](const auto& plan, bool planes) {
    std::size_t seen = 0;
    for (auto&& b : plan.epoch(0)) {
      const auto view = b.values();
      CHECK(view.shape() ==
            (planes ? ps::extents(5, 3, 5, 6) : ps::extents(5, 5, 6, 3)).drop_front().prepend(b.size()));
      for (std::size_t n = 0; n < b.size(); ++n, ++seen) {
        const auto one = image(seen);
        const std::size_t w = one.size().width, h = one.size().height;
        REQUIRE(view.sizes()[n] ==
                (planes ? ps::extents(std::size_t{3}, h, w) : ps::extents(h, w, std::size_t{3})));
        REQUIRE(view[n].shape() == view.sizes()[n]);
        for (std::size_t y = 0; y < 5; ++y)
          for (std::size_t x = 0; x < 6; ++x)
            for (std::size_t c = 0; c < 3; ++c) {
              const int value = planes ? view.values()(n, c, y, x) : view.values()(n, y, x, c);
              REQUIRE(value == (x < w && y < h ? one.at(x, y, c) : 0));
              if (x < w && y < h) REQUIRE((planes ? view[n](c, y, x) : view[n](y, x, c)) == value);
            }
      }
    }
    CHECK(seen == 10);
  };
  for (const unsigned workers : {0u, 2u}) {
    const auto w = ps::workers(workers);
    check(images | ps::batch(5, ps::pad_to_largest) | w, false);
    check(images | ps::batch(5, ps::pad_to_largest(ps::channels_first)) | w, true);
    check(images | ps::map(ps::horizontal_flip(0), ps::to_chw()) | ps::batch(5, ps::pad_to_largest) | w,
          true);
  }
}

TEST_CASE("run/pad_to_largest: fields of a record, views, and memory that outlives the batch") {
  using sample = ps::record<ps::field<"image", picture<float>>, ps::field<"mask", picture<std::uint8_t>>,
                            ps::field<"label", std::uint64_t>>;
  const auto samples = ps::generated(count, [](std::uint64_t i) {
    return sample(picture<float>{i, image_shape(i)}, picture<std::uint8_t>{i, image_shape(i)}, i);
  });
  const auto plan =
      samples | ps::batch(8, ps::pad_to_largest, ps::collate<"mask">(ps::pad_to_largest_with<255>));
  std::uint64_t seen = 0;
  for (auto&& b : (plan | ps::workers(2)).epoch(0)) {
    STATIC_REQUIRE(std::is_same_v<decltype(ps::get<"image">(b)), ps::basic_padded_arrays_view<float>>);
    STATIC_REQUIRE(
        std::is_same_v<decltype(ps::get<"image">(std::as_const(b))), ps::padded_arrays_view<float>>);
    const ps::padded_arrays_view<std::uint8_t> masks = ps::get<"mask">(b);
    CHECK(ps::get<"image">(b).shape() == masks.shape());
    CHECK(std::vector<ps::extents>(masks.sizes().begin(), masks.sizes().end()) ==
          std::vector<ps::extents>(ps::get<"image">(b).sizes().begin(), ps::get<"image">(b).sizes().end()));
    auto kept = ps::hold<"mask">(b);
    std::size_t n = 0;
    for (const auto one : kept.view()) CHECK(one.shape() == image_shape(ps::get<"label">(b)[n++]));
    CHECK(n == b.size());
    seen += b.size();
  }
  CHECK(seen == count);
  CHECK_THAT(ps::describe(plan), contains("field image: kept beside the batch until all lengths are known") &&
                                     contains("field label: written straight into the batch"));
  CHECK_THAT(ps::describe(samples | ps::batch(8, ps::collate<"image">(ps::pad_to_largest(ps::channels_first)),
                                              ps::collate<"mask">(ps::ragged))),
             contains("channels first"));
}

TEST_CASE("run/pad_to_largest: map_batch changes the values, with and without their padding") {
  const auto source = pictures<float>(image_shape) | ps::batch(8, ps::pad_to_largest);
  const auto halve = [](auto& columns) {
    for (const auto image : columns.values())
      for (std::size_t y = 0; y < image.shape()[0]; ++y)
        for (std::size_t x = 0; x < image.shape()[1]; ++x)
          for (std::size_t c = 0; c < 3; ++c) image(y, x, c) += 1000;
  };
  const auto mask = [](auto& columns) {  // 1 where there is an image
    const auto view = columns.values();
    std::vector<std::uint8_t> made(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      made[i] =
          static_cast<std::uint8_t>(view.sizes()[i].elements() * 100 / view.shape().drop_front().elements());
    return made;
  };
  const auto plain = look_at_all(source);
  for (const unsigned workers : {0u, 2u}) {
    std::size_t step = 0;
    for (auto&& b : (source | ps::map_batch(halve) | ps::workers(workers)).epoch(0)) {
      const auto view = b.values();
      REQUIRE(std::vector<ps::extents>(view.sizes().begin(), view.sizes().end()) == plain[step].sizes);
      std::vector<float> before(view.values().size());
      std::memcpy(before.data(), plain[step++].bytes.data(), before.size() * sizeof(float));
      for (std::size_t k = 0; k < before.size(); ++k)
        REQUIRE(view.values().flat()[k] == (before[k] == 0 ? 0 : before[k] + 1000));
    }
    step = 0;
    for (auto&& b : (source | ps::map_batch(mask) | ps::workers(workers)).epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i)
        REQUIRE(b.values()[i] ==
                plain[b.step()].sizes[i].elements() * 100 / plain[b.step()].shape.drop_front().elements());
  }
}

TEST_CASE(
    "run/pad_to_largest: bad samples leave zeros of size 0, and batches of them the shape of the good one "
    "before") {
  const auto shape = [](std::uint64_t i) {
    if (i == 2 || i >= 8) throw ps::error(ps::errc::format, {"not a picture"});
    return image_shape(i);
  };
  const auto plan =
      pictures<std::uint8_t>(shape) | ps::bad_samples::skip(100) | ps::batch(4, ps::pad_to_largest_with<9>);
  using numbers = std::vector<std::optional<std::uint64_t>>;
  for (const unsigned workers : {0u, 2u}) {
    const auto seen = look_at_all(plan | ps::workers(workers));
    REQUIRE(seen.size() == 8);
    CHECK(seen[0] == expected<std::uint8_t>(numbers{0, 1, {}, 3}, image_shape, 9, false));
    CHECK(seen[1] == expected<std::uint8_t>(numbers{4, 5, 6, 7}, image_shape, 9, false));
    for (std::size_t i = 2; i < 8; ++i) {
      CHECK(seen[i].shape.drop_front() == image_shape(7));
      CHECK(seen[i].sizes == std::vector<ps::extents>(i == 7 ? 1 : 4, ps::extents(0, 0, 0)));
      CHECK(std::count(seen[i].bytes.begin(), seen[i].bytes.end(), std::byte{0}) ==
            static_cast<std::ptrdiff_t>(seen[i].bytes.size()));
    }
  }
  // a rank without a sample in the last step
  for (auto&& b :
       (pictures<float>(image_shape) | ps::shard(0, 30) | ps::batch(1, ps::pad_to_largest)).epoch(0))
    CHECK(b.values().size() == b.size());
}

TEST_CASE("run/pad_to_largest: what cannot be in one block is an error at its position") {
  const auto refused = [](auto shape, ps::errc code, const std::string& words) {
    const auto plan = pictures<std::uint8_t>(shape) | ps::batch(4, ps::pad_to_largest);
    for (const unsigned workers : {0u, 2u}) {
      auto run = (plan | ps::workers(workers)).open();
      CHECK(run.next());
      try {
        const auto next = run.next();
        REQUIRE(next.failure != nullptr);
        std::rethrow_exception(next.failure);
      } catch (const ps::error& e) {
        CHECK(e.code() == code);
        CHECK_THAT(std::string(e.what()), contains(words));
        REQUIRE(e.at().has_value());
        CHECK(e.at()->index == 6);
      }
    }
    // and a bad sample like any other
    std::size_t holes = 0;
    for (auto&& b :
         (pictures<std::uint8_t>(shape) | ps::bad_samples::skip(1) | ps::batch(4, ps::pad_to_largest))
             .epoch(0))
      holes += b.size() - b.valid_size();
    CHECK(holes == 1);
  };
  refused([](std::uint64_t i) { return i == 6 ? ps::extents(2, 3) : ps::extents(2, 3, 1); }, ps::errc::shape,
          "cannot pad a value of shape (2, 3) to the largest beside one of shape (2, 3, 1)");
  refused([](std::uint64_t i) { return i == 6 ? ps::extents() : ps::extents(2); }, ps::errc::shape,
          "at least one");
  refused([](std::uint64_t i) { return i == 6 ? ps::extents(1ull << 62, 0) : ps::extents(2, 5); },
          ps::errc::limit, "more than 64 times the elements");
  refused([](std::uint64_t i) { return i == 6 ? ps::extents(1, 100) : ps::extents(100, 1); }, ps::errc::limit,
          "crop or resize before batch");
  refused([](std::uint64_t i) { return i == 6 ? ps::extents(0, 70'000) : ps::extents(70'000, 0); },
          ps::errc::limit, "more than 64 times");
  refused(
      [](std::uint64_t i) {
        return i == 6 ? ps::extents(1, 1, 1, 1, 1, 1, 1, 1) : ps::extents(1, 1, 1, 1, 1, 1, 1);
      },
      ps::errc::shape, "at most eight");
}

}  // namespace pad_to_largest_test
