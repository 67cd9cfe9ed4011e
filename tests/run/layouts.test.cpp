// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Columns that are pitched or have the channels first, by every way in which values get into batches and out
// of them.

#include <penstock/codec/npy.hpp>
#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/integration/any_loader.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace layouts_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr std::uint64_t count = 50;

/// Value number k of picture i.
constexpr std::int16_t pixel(std::uint64_t i, std::uint64_t k) {
  return static_cast<std::int16_t>(i * 600 + k + 1);
}
void draw(std::uint64_t i, std::int16_t* into, std::uint64_t values) {
  for (std::uint64_t k = 0; k < values; ++k) into[k] = pixel(i, k);
}

/// A picture in memory, valid until the next one is requested in this thread.
ps::tensor_view<const std::int16_t> drawn(std::uint64_t i, const ps::extents& shape) {
  thread_local std::vector<std::int16_t> kept;
  kept.resize(static_cast<std::size_t>(shape.elements()));
  draw(i, kept.data(), shape.elements());
  return {kept.data(), shape};
}

/// Pictures as expressions of both forms, with static or dynamic shapes.
struct simple_picture {
  using unfinished = void;
  using value_type = std::int16_t;
  std::uint64_t number;
  ps::extents size;
  [[nodiscard]] const ps::extents& shape() const { return size; }
  void write_to(std::int16_t* into) const { draw(number, into, size.elements()); }
  [[nodiscard]] auto finish() const { return drawn(number, size); }
};
struct placed_picture {
  using unfinished = void;
  using value_type = std::int16_t;
  std::uint64_t number;
  ps::extents size;
  [[nodiscard]] const ps::extents& shape() const { return size; }
  void write_to(const ps::destination<std::int16_t>& into) const {
    into.fill_from([this, k = std::uint64_t{0}]() mutable { return pixel(number, k++); });
  }
  [[nodiscard]] auto finish() const { return drawn(number, size); }
};
template <class Picture, std::uint64_t... Lengths>
struct known : Picture {
  static constexpr ps::extents static_shape{Lengths...};
  explicit known(std::uint64_t i) : Picture{i, static_shape} {}
};

template <class Picture>
auto pictures_of(ps::extents shape) {
  return ps::generated(count, [shape](std::uint64_t i) { return Picture{i, shape}; });
}
auto whole_pictures(ps::extents shape) {
  return ps::generated(count, [shape](std::uint64_t i) {
    ps::whole_tensor<std::int16_t> made;
    draw(i, made.resize(shape), shape.elements());
    return made;
  });
}
auto picture_file(ps::extents shape) {
  std::vector<std::int16_t> all(static_cast<std::size_t>(count * shape.elements()));
  for (std::uint64_t i = 0; i < count; ++i) draw(i, all.data() + i * shape.elements(), shape.elements());
  return ps::memory_files().add("x", ps::npy_bytes<std::int16_t>(shape.prepend(count), all));
}
template <std::uint64_t... Lengths>
auto stored_pictures(ps::extents shape) {
  return ps::npy_rows<std::int16_t, Lengths...>(picture_file(shape));
}

/// The number of the picture in a slot, from its first value; nothing if the slot is empty.
std::optional<std::uint64_t> number_of(std::int16_t first) {
  return first == 0 ? std::nullopt
                    : std::optional<std::uint64_t>((static_cast<std::uint64_t>(first) - 1) / 600);
}

/// Checks a batch of pictures with the channels first; returns the numbers of its pictures.
template <class View>
std::vector<std::uint64_t> planes_in(const View& view, const ps::extents& shape) {
  STATIC_REQUIRE(std::is_same_v<typename View::value_type, std::int16_t>);
  std::vector<std::uint64_t> numbers;
  bool same = view.shape().drop_front() == ps::extents(shape[2], shape[0], shape[1]);
  for (std::size_t s = 0; s < view.shape()[0]; ++s) {
    const auto slot = view[s];
    const auto number = number_of(slot.data()[0]);
    if (number) numbers.push_back(*number);
    for (std::uint64_t y = 0; y < shape[0]; ++y)
      for (std::uint64_t x = 0; x < shape[1]; ++x)
        for (std::uint64_t c = 0; c < shape[2]; ++c)
          same = same &&
                 slot[c][y].data()[x] == (number ? pixel(*number, (y * shape[1] + x) * shape[2] + c) : 0);
  }
  CHECK(same);
  return numbers;
}
/// Checks a batch of pictures with pitched rows; `bytes` is the whole column.
template <class View>
std::vector<std::uint64_t> rows_in(const View& view, const ps::extents& shape, std::size_t alignment,
                                   const std::int16_t* all) {
  std::vector<std::uint64_t> numbers;
  const std::size_t length = static_cast<std::size_t>(shape[shape.rank() - 1]);
  const std::size_t pitch = (length * 2 + alignment - 1) / alignment * alignment / 2;
  bool same = view.shape().drop_front() == shape && view.data() == all;
  const std::size_t rows_each = view.rows() / std::max<std::size_t>(1, view.shape()[0]);
  for (std::size_t r = 0; r < view.rows(); ++r) {
    const auto row = view.row(r);
    same = same && row.data() == all + r * pitch && row.size() == length;
    const auto number = number_of(view.row(r / rows_each * rows_each)[0]);
    if (number && r % rows_each == 0) numbers.push_back(*number);
    for (std::size_t k = 0; k < pitch; ++k)
      same = same &&
             all[r * pitch + k] == (number && k < length ? pixel(*number, r % rows_each * length + k) : 0);
  }
  CHECK(same);
  return numbers;
}

template <class Batches>
std::vector<std::uint64_t> all_planes(const Batches& plan, const ps::extents& shape) {
  std::vector<std::uint64_t> all;
  for (auto&& b : plan.epoch(0))
    for (const std::uint64_t n : planes_in(b.values(), shape)) all.push_back(n);
  return all;
}
template <std::size_t Alignment, class Batches>
std::vector<std::uint64_t> all_rows(const Batches& plan, const ps::extents& shape) {
  std::vector<std::uint64_t> all;
  for (auto&& b : plan.epoch(0))
    for (const std::uint64_t n :
         rows_in(b.values(), shape, Alignment, static_cast<const std::int16_t*>(b.device_data())))
      all.push_back(n);
  return all;
}

std::vector<std::uint64_t> numbers_of(const std::vector<ps::position>& positions) {
  std::vector<std::uint64_t> all;
  for (const auto& p : positions) all.push_back(p.index);
  return all;
}
std::vector<std::uint64_t> first_numbers(std::uint64_t n) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

/// Checks every way into a batch: in place, set aside, gathered after a filter, with and without padding.
template <class Samples>
void goes_every_way(const Samples& samples, const ps::extents& shape) {
  const auto ordered = first_numbers(count);
  const auto shuffled = [&] {
    std::vector<std::uint64_t> all;
    for (auto&& b :
         (ps::generated(count, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(3)) | ps::batch(7))
             .epoch(0))
      all.insert(all.end(), b.values().begin(), b.values().end());
    return all;
  }();
  const auto keep = ps::filter([](const auto& v) { return v.shape().rank() != 0; });
  for (const unsigned workers : {0u, 1u, 3u}) {
    const auto w = ps::workers(workers);
    CHECK(all_rows<64>(samples | ps::batch(8, ps::pitched<64>) | w, shape) == ordered);
    CHECK(all_rows<32>(samples | ps::shuffle(ps::seed(3)) | ps::batch(7, ps::tail::pad, ps::pitched<32>) | w,
                       shape) == shuffled);
    CHECK(all_rows<64>(samples | ps::shuffle(ps::seed(3)) | keep | ps::batch(7, ps::pitched<64>) | w,
                       shape) == shuffled);
    if (shape.rank() != 3) continue;
    CHECK(all_planes(samples | ps::batch(8, ps::tail::pad, ps::channels_first) | w, shape) == ordered);
    CHECK(all_planes(samples | ps::shuffle(ps::seed(3)) | ps::batch(7, ps::channels_first) | w, shape) ==
          shuffled);
    CHECK(all_planes(samples | ps::shuffle(ps::seed(3)) | keep | ps::batch(7, ps::channels_first) | w,
                     shape) == shuffled);
  }
}

}  // namespace

TEST_CASE("run/layouts: expressions of both forms, of shapes known at run time") {
  for (const ps::extents& shape :
       {ps::extents(4, 5, 3), ps::extents(3, 2, 4), ps::extents(2, 3, 1), ps::extents(1, 33, 2)}) {
    goes_every_way(pictures_of<simple_picture>(shape), shape);
    goes_every_way(pictures_of<placed_picture>(shape), shape);
  }
  goes_every_way(pictures_of<placed_picture>(ps::extents(7)), ps::extents(7));
  goes_every_way(pictures_of<simple_picture>(ps::extents(2, 2, 3, 9)), ps::extents(2, 2, 3, 9));
}

TEST_CASE("run/layouts: expressions of both forms with static shapes") {
  const ps::extents shape(4, 5, 3);
  goes_every_way(ps::generated(count, [](std::uint64_t i) { return known<simple_picture, 4, 5, 3>(i); }),
                 shape);
  goes_every_way(ps::generated(count, [](std::uint64_t i) { return known<placed_picture, 4, 5, 3>(i); }),
                 shape);
}

TEST_CASE("run/layouts: arrays in memory, and arrays in files") {
  const ps::extents shape(4, 5, 3);
  goes_every_way(whole_pictures(shape), shape);
  goes_every_way(stored_pictures<>(shape), shape);
  goes_every_way(stored_pictures<4, 5, 3>(shape), shape);
  const auto views =
      ps::from(std::vector<std::uint64_t>(first_numbers(count))) | ps::map([](std::uint64_t i) {
        static thread_local std::vector<std::int16_t> kept(200);
        for (std::uint64_t k = 0; k < 60; ++k) kept[k / 3 % 5 * 3 + k % 3 + k / 15 * 20] = pixel(i, k);
        return ps::strided_view<const std::int16_t>(kept.data(), ps::extents(4, 5, 3), {20, 3, 1});
      });
  goes_every_way(views, shape);
}

TEST_CASE("run/layouts: arrays that were fetched ahead") {
  const ps::extents shape(4, 5, 3);
  const ps::simulated_storage far(picture_file(shape), {.latency = std::chrono::microseconds(200)});
  const auto rows = ps::npy_rows<std::int16_t>(far) | ps::prefetch(20);
  CHECK(all_rows<64>(rows | ps::batch(8, ps::pitched<64>) | ps::workers(2), shape) == first_numbers(count));
  CHECK(all_planes(rows | ps::batch(8, ps::channels_first) | ps::workers(2), shape) == first_numbers(count));
  const auto known_rows = ps::npy_rows<std::int16_t, 4, 5, 3>(far) | ps::prefetch(20);
  CHECK(all_planes(known_rows | ps::batch(8, ps::channels_first) | ps::workers(2), shape) ==
        first_numbers(count));
}

TEST_CASE("run/layouts: lists of numbers are one row each") {
  const auto lists = ps::generated(count, [](std::uint64_t i) {
    std::vector<std::int16_t> made(5);
    draw(i, made.data(), 5);
    return made;
  });
  const auto arrays = ps::generated(count, [](std::uint64_t i) {
    std::array<std::int16_t, 5> made{};
    draw(i, made.data(), 5);
    return made;
  });
  for (const unsigned workers : {0u, 2u}) {
    CHECK(all_rows<16>(lists | ps::batch(8, ps::pitched<16>) | ps::workers(workers), ps::extents(5)) ==
          first_numbers(count));
    CHECK(all_rows<16>(arrays | ps::batch(8, ps::pitched<16>) | ps::workers(workers), ps::extents(5)) ==
          first_numbers(count));
    CHECK(all_rows<16>(arrays | ps::batch(2, ps::tail::pad, ps::pitched<16>) | ps::workers(workers),
                       ps::extents(5)) == first_numbers(count));
  }
}

TEST_CASE("run/layouts: shapes that change from batch to batch, and gaps that stay zero") {
  // pictures that get smaller and larger: old values must not show in gaps
  const auto shape_of = [](std::uint64_t i) { return ps::extents(3 + i / 8 % 2, 9 - i / 8 % 3 * 2, 3); };
  const auto pictures = ps::generated(count, [=](std::uint64_t i) { return placed_picture{i, shape_of(i)}; });
  for (const unsigned workers : {0u, 1u, 2u}) {
    std::uint64_t seen = 0;
    for (auto&& b : (pictures | ps::batch(8, ps::pitched<64>) | ps::workers(workers)).epoch(0)) {
      CHECK(
          rows_in(b.values(), shape_of(seen), 64, static_cast<const std::int16_t*>(b.device_data())).size() ==
          b.size());
      seen += b.size();
    }
    CHECK(seen == count);
    seen = 0;
    for (auto&& b : (pictures | ps::batch(8, ps::channels_first) | ps::workers(workers)).epoch(0)) {
      CHECK(planes_in(b.values(), shape_of(seen)).size() == b.size());
      seen += b.size();
    }
    CHECK(seen == count);
  }
}

TEST_CASE("run/layouts: fields have their own layouts, and others do not change") {
  using sample = ps::record<ps::field<"image", simple_picture>, ps::field<"also", placed_picture>,
                            ps::field<"label", std::uint64_t>>;
  const ps::extents shape(4, 5, 3);
  const auto samples = ps::generated(count, [=](std::uint64_t i) {
    return sample(simple_picture{i, shape}, placed_picture{i, shape}, i);
  });
  const auto plan =
      samples | ps::batch(8, ps::collate<"image">(ps::channels_first), ps::collate<"also">(ps::pitched<64>)) |
      ps::workers(2);
  for (auto&& b : plan) {
    STATIC_REQUIRE(std::is_same_v<decltype(ps::get<"image">(b)), ps::tensor_view<std::int16_t>>);
    STATIC_REQUIRE(std::is_same_v<decltype(ps::get<"also">(b)), ps::strided_view<std::int16_t>>);
    const std::vector<std::uint64_t> labels(ps::get<"label">(b).begin(), ps::get<"label">(b).end());
    CHECK(planes_in(ps::get<"image">(b), shape) == labels);
    CHECK(rows_in(ps::get<"also">(b), shape, 64, static_cast<const std::int16_t*>(b.device_data<1>())) ==
          labels);
    CHECK(ps::get<"also">(b).row_pitch() == 64);
  }
  const std::string text = ps::describe(plan);
  CHECK_THAT(text, contains("field image: computed in the worker's memory, then copied into the batch") &&
                       contains("channels first"));
  CHECK_THAT(text, contains("field also: written straight into the batch") &&
                       contains("rows at multiples of 64 bytes"));
  CHECK_THAT(
      ps::describe(samples | ps::map([](const auto& s) { return ps::get<"label">(s); }) | ps::batch(2)),
      !contains("rows at") && !contains("channels first"));
}

TEST_CASE("run/layouts: a value that does not fit the policy is an error at its position") {
  const auto pictures = ps::generated(count, [](std::uint64_t i) {
    return placed_picture{i, i == 21 ? ps::extents(20, 3) : ps::extents(4, 5, 3)};
  });
  for (const unsigned workers : {0u, 2u}) {
    auto run = (pictures | ps::batch(8, ps::channels_first) | ps::workers(workers)).open();
    CHECK(run.next());
    CHECK(run.next());
    try {
      const auto next = run.next();
      REQUIRE(next.failure != nullptr);
      std::rethrow_exception(next.failure);
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::shape);
      CHECK_THAT(std::string(e.what()), contains("(20, 3)") && contains("(height, width, channels)"));
      REQUIRE(e.at().has_value());
      CHECK(e.at()->index == 21);
    }
  }
  std::vector<std::uint64_t> expected = first_numbers(count);
  expected.erase(expected.begin() + 21);
  CHECK(all_planes(pictures | ps::bad_samples::skip(1) | ps::batch(8, ps::channels_first),
                   ps::extents(4, 5, 3)) == expected);
  const auto scalars = ps::generated(count, [](std::uint64_t i) { return placed_picture{i, ps::extents()}; });
  CHECK_THAT(error_of([&] {
               for (auto&& b : (scalars | ps::batch(8, ps::pitched<64>)).epoch(0)) (void)b;
             }),
             contains("at least one dimension"));
}

TEST_CASE("run/layouts: an odd shape under bad_samples::skip leaves a hole of zeros") {
  const auto pictures = ps::generated(count, [](std::uint64_t i) {
    return placed_picture{i, i == 21 || i == 1 ? ps::extents(5, 9) : ps::extents(4, 5)};
  });
  std::vector<std::uint64_t> expected = first_numbers(count);
  expected.erase(expected.begin() + 21);
  expected.erase(expected.begin() + 1);
  for (const unsigned workers : {0u, 2u})
    CHECK(all_rows<64>(
              pictures | ps::bad_samples::skip(2) | ps::batch(8, ps::pitched<64>) | ps::workers(workers),
              ps::extents(4, 5)) == expected);
}

TEST_CASE("run/layouts: a device gets the column with its gaps, as on the host") {
  const ps::extents shape(4, 5, 3);
  const auto samples = pictures_of<placed_picture>(shape);
  std::vector<std::uint64_t> seen;
  for (auto&& b :
       samples | ps::batch(8, ps::pitched<64>) | ps::pin_and_copy(ps::simulated{}) | ps::workers(2)) {
    const auto view = b.values();
    const ps::strided_view<const std::int16_t> there(static_cast<const std::int16_t*>(b.device_data()),
                                                     view.shape(), view.strides());
    for (const std::uint64_t n : rows_in(there, shape, 64, there.data())) seen.push_back(n);
  }
  CHECK(seen == first_numbers(count));
  for (auto&& b :
       samples | ps::batch(8, ps::channels_first) | ps::pin_and_copy(ps::simulated{}) | ps::workers(2)) {
    const ps::tensor_view<const std::int16_t> there(static_cast<const std::int16_t*>(b.device_data()),
                                                    b.values().shape());
    CHECK(planes_in(there, shape).size() == b.size());
  }
}

TEST_CASE("run/layouts: map_batch changes values in place, and may return its argument") {
  const ps::extents shape(4, 5, 3);
  const auto samples = pictures_of<placed_picture>(shape);
  const auto plus_one = ps::map_batch([](auto& columns) {
    const auto view = columns.values();
    static_assert(std::is_same_v<std::remove_const_t<decltype(view)>, ps::strided_view<std::int16_t>>);
    for (std::size_t r = 0; r < view.rows(); ++r)
      for (std::int16_t& x : view.row(r)) x = static_cast<std::int16_t>(x + 1);
  });
  const auto minus_one = ps::map_batch([](auto& columns) {
    const auto view = columns.values();
    for (std::size_t r = 0; r < view.rows(); ++r)
      for (std::int16_t& x : view.row(r)) x = static_cast<std::int16_t>(x - 1);
  });
  CHECK(all_rows<64>(samples | ps::batch(8, ps::pitched<64>) | plus_one | minus_one | ps::workers(2),
                     shape) == first_numbers(count));
  const auto dense = ps::map_batch([](auto& columns) { return columns.values(); });
  std::uint64_t seen = 0;
  for (auto&& b : (samples | ps::batch(8, ps::pitched<64>) | dense | ps::workers(2)).epoch(0)) {
    const ps::tensor_view<const std::int16_t> view = b.values();
    CHECK(view.shape() == shape.prepend(b.size()));
    for (std::size_t i = 0; i < b.size(); ++i, ++seen)
      for (std::size_t k = 0; k < 60; ++k) REQUIRE(view[i].data()[k] == pixel(seen, k));
  }
  CHECK(seen == count);
  CHECK(all_planes(samples | ps::batch(8, ps::channels_first) | ps::map_batch([](auto& columns) {
                     for (std::int16_t& x : columns.values().flat()) x = static_cast<std::int16_t>(x + 1);
                   }) | ps::map_batch([](auto& columns) {
                     for (std::int16_t& x : columns.values().flat()) x = static_cast<std::int16_t>(x - 1);
                   }),
                   shape) == first_numbers(count));
}

TEST_CASE("run/layouts: a held column and a loader of another type show strides") {
  const ps::extents shape(4, 5, 3);
  const auto plan = pictures_of<placed_picture>(shape) | ps::batch(8, ps::pitched<64>) | ps::workers(2);
  auto held = [&] {
    auto run = plan.open();
    auto first = run.next();
    REQUIRE(first);
    return first->hold();
  }();
  CHECK(held.view().strides() == ps::element_strides{4 * 5 * 32, 5 * 32, 32, 1});
  CHECK(rows_in(held.view(), shape, 64, static_cast<const std::int16_t*>(held.device_data())) ==
        first_numbers(8));

  struct my_batch {
    ps::strided_view<const std::int16_t> image;
  };
  ps::any_loader<my_batch> loader(plan, [](auto& b) { return my_batch{b.values()}; });
  std::vector<std::uint64_t> seen;
  for (const my_batch& b : loader.epoch(0))
    for (const std::uint64_t n : rows_in(b.image, shape, 64, b.image.data())) seen.push_back(n);
  CHECK(seen == first_numbers(count));
}

TEST_CASE("run/layouts: loops without batches deliver arrays unchanged") {
  const ps::extents shape(4, 5, 3);
  std::uint64_t seen = 0;
  for (auto&& one : (pictures_of<placed_picture>(shape) | ps::workers(2)).epoch(0)) {
    CHECK(one.shape() == shape);
    CHECK(one.values()[59] == pixel(seen, 59));
    ++seen;
  }
  CHECK(seen == count);
}

TEST_CASE("run/layouts: a state of one layout resumes in another, with an equal sequence") {
  const ps::extents shape(4, 5, 3);
  const auto samples = pictures_of<simple_picture>(shape) | ps::shuffle(ps::seed(9));
  const auto planes = samples | ps::batch(8, ps::channels_first) | ps::workers(1);
  auto run = planes.open();
  for (int i = 0; i < 3; ++i) CHECK(run.next());
  auto rest = (samples | ps::batch(8, ps::pitched<64>)).open(run.state());
  while (auto next = run.next()) {
    auto other = rest.next();
    REQUIRE(other);
    const auto numbers = planes_in(next->values(), shape);
    CHECK(numbers ==
          rows_in(other->values(), shape, 64, static_cast<const std::int16_t*>(other->device_data())));
    CHECK(numbers_of(next->positions()) == numbers_of(other->positions()));
  }
  CHECK_FALSE(rest.next());
}

}  // namespace layouts_test
