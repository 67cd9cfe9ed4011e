// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/companions.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/image/blur.hpp>
#include <penstock/image/color.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/geometry.hpp>
#include <penstock/image/lookup.hpp>
#include <penstock/image/pad.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/image/rotate.hpp>
#include <penstock/image/to_chw.hpp>
#include <penstock/image/values.hpp>
#include <penstock/image/warp.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/test_image.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace companions_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using photo = test_image<std::uint8_t, 3>;
using drawing = test_image<std::uint8_t, 1>;
using sample =
    ps::record<ps::field<"jpg", photo>, ps::field<"png", drawing>, ps::field<"boxes", std::vector<float>>>;

ps::image_size size_of(std::uint64_t i) {
  return {static_cast<std::uint32_t>(60 + 4 * (i % 5)), static_cast<std::uint32_t>(50 + 3 * (i % 4))};
}
/// The bright rectangle of sample i.
std::vector<float> box_of(std::uint64_t i) {
  const auto x = static_cast<float>(14 + i % 7), y = static_cast<float>(10 + i % 5);
  return {x, y, x + 25, y + 18};
}
std::uint8_t brightness(std::uint64_t i, std::size_t x, std::size_t y) {
  const auto box = box_of(i);
  const auto px = static_cast<float>(x), py = static_cast<float>(y);
  return px >= box[0] && px < box[2] && py >= box[1] && py < box[3] ? 200 : 10;
}
sample made(std::uint64_t i) {
  const auto paint = [i](std::size_t x, std::size_t y, std::size_t) { return brightness(i, x, y); };
  std::vector<float> boxes = box_of(i);
  boxes.insert(boxes.end(), {-20, 3, 8, 9});
  return sample(photo(size_of(i), paint), drawing(size_of(i), paint), boxes);
}
const auto samples = ps::generated(24, made);

/// The values of all fields of all batches.
template <class Plan>
std::vector<std::vector<float>> all_of(const Plan& plan) {
  std::vector<std::vector<float>> all;
  const auto take = [&](const auto& view) {
    const auto values = view.values();
    all.emplace_back();
    for (const auto v : std::span(values.data(), values.size())) all.back().push_back(static_cast<float>(v));
  };
  for (auto&& b : plan.epoch(0)) {
    take(ps::get<"jpg">(b));
    take(ps::get<"png">(b));
    take(ps::get<"boxes">(b));
  }
  return all;
}
const auto batched = ps::batch(5, ps::pad_to_largest);

std::atomic<int> copies_of_tables = 0;

/// Numbers that count how often they are copied.
struct counted_table {
  std::vector<std::uint8_t> values;

  explicit counted_table(std::uint8_t add) : values(256) {
    for (std::size_t i = 0; i < 256; ++i) values[i] = static_cast<std::uint8_t>(i + add);
  }
  counted_table(const counted_table& other) : values(other.values) { ++copies_of_tables; }
  counted_table(counted_table&&) = default;
  counted_table& operator=(const counted_table&) = default;
  counted_table& operator=(counted_table&&) = default;
};

/// Adds a number to all pixels; its images point into it. `MaskAdd` is what it adds to masks, unless it is 0.
template <int MaskAdd>
struct looked_up : ps::byte_operation {
  using moves_places = void;

  template <ps::byte_image I>
  struct picture : ps::image_expression<picture<I>, std::uint8_t, I::channels> {
    using view_type = ps::pixel_view<std::uint8_t, I::channels>;
    I image;
    const looked_up* operation;
    ps::image_scratch* scratch;

    picture(const I& wrapped, const looked_up* by, ps::image_scratch& s)
        : image(wrapped), operation(by), scratch(&s) {}
    [[nodiscard]] ps::image_size size() const { return image.size(); }
    [[nodiscard]] ps::image_scratch& memory() const { return *scratch; }
    [[nodiscard]] view_type read(const ps::image_part& part) const {
      const view_type pixels = image.read(part);
      auto* const to = ps::room_for<std::uint8_t>(scratch->pixels, pixels.height() * pixels.row_values());
      for (std::size_t y = 0; y < pixels.height(); ++y)
        for (std::size_t i = 0; i < pixels.row_values(); ++i)
          to[y * pixels.row_values() + i] = operation->table.values[pixels.row(y)[i]];
      return {to, part.size()};
    }
  };

  counted_table table;

  explicit looked_up(std::uint8_t add) : table(add) {}
  template <ps::byte_image I>
  [[nodiscard]] picture<I> operator()(const I& image, const ps::call<ps::image_scratch>& c) const {
    return {image, this, c.scratch};
  }
  template <class Places>
  void follow(Places&, ps::rng&) const {}
  [[nodiscard]] looked_up for_mask(const ps::pixel_fill&) const
    requires(MaskAdd != 0)
  {
    return looked_up(MaskAdd);
  }
};

}  // namespace

TEST_CASE("image/companions: a mask is changed as by a map of its own with the same key") {
  const auto check = [](const auto& joint, const auto& apart) {
    const auto expected = all_of(apart | batched);
    for (const unsigned workers : {0u, 2u, 7u})
      CHECK(all_of(joint | batched | ps::workers(workers)) == expected);
  };
  const auto nearest = ps::interpolation::nearest;
  const ps::key k("crop");
  check(samples | ps::map<"jpg", ps::as_mask<"png">>(ps::random_resized_crop(32), ps::horizontal_flip(),
                                                     ps::vertical_flip(), k),
        samples | ps::map<"jpg">(ps::random_resized_crop(32), ps::horizontal_flip(), ps::vertical_flip(), k) |
            ps::map<"png">(ps::random_resized_crop(32, {.how = nearest}), ps::horizontal_flip(),
                           ps::vertical_flip(), k));
  const ps::rotate_options turned{.how = ps::interpolation::bilinear, .expand = true};
  check(samples | ps::map<"jpg", ps::as_mask<"png", 255>>(ps::resize(40), ps::pad(3, {.fill = {1, 2, 3}}),
                                                          ps::random_crop(48, {.pad_if_needed = true}),
                                                          ps::rotate({-30, 30}, turned),
                                                          ps::crop(2, 3, 30, 31), ps::color_jitter(0.5),
                                                          ps::normalize(ps::imagenet), ps::to_chw(), k),
        samples |
            ps::map<"jpg">(ps::resize(40), ps::pad(3, {.fill = {1, 2, 3}}),
                           ps::random_crop(48, {.pad_if_needed = true}), ps::rotate({-30, 30}, turned),
                           ps::crop(2, 3, 30, 31), ps::color_jitter(0.5), ps::normalize(ps::imagenet),
                           ps::to_chw(), k) |
            ps::map<"png">(ps::resize(40, {.how = nearest}), ps::pad(3, {.fill = 255}),
                           ps::random_crop(48, {.pad_if_needed = true, .fill = 255}),
                           ps::rotate({-30, 30}, {.expand = true, .fill = 255}), ps::crop(2, 3, 30, 31), k));
  const ps::affine_options moved{
      .degrees = {-20, 20}, .translate = {0.2, 0.2}, .how = ps::interpolation::bilinear};
  ps::affine_options moved_mask = moved;
  moved_mask.how = nearest;
  check(samples | ps::map<"jpg", ps::as_mask<"png">>(ps::center_crop(64, 66), ps::affine(moved),
                                                     ps::warp({.c = 3}, {.fill = {9, 8, 7}}), k),
        samples |
            ps::map<"jpg">(ps::center_crop(64, 66), ps::affine(moved),
                           ps::warp({.c = 3}, {.fill = {9, 8, 7}}), k) |
            ps::map<"png">(ps::center_crop(64, 66), ps::affine(moved_mask), ps::warp({.c = 3}), k));
  // what has no mask form of its own keeps the fill of the mask
  for (auto&& b :
       (samples | ps::map<"jpg", ps::as_mask<"png", 255>>(ps::center_crop(100)) | batched).epoch(0))
    CHECK((ps::get<"png">(b).values()(0, 0, 0, 0) == 255 && ps::get<"jpg">(b).values()(0, 0, 0, 0) == 0));
}

TEST_CASE("image/companions: a function that draws for the image only does not part a mask from it") {
  const auto plan = samples | ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(
                                  ps::color_jitter(0.2), ps::random_crop(30, 40), ps::random_grayscale(0.5),
                                  ps::horizontal_flip(), ps::key("k"));
  for (auto&& b : (plan | batched).epoch(0)) {
    const auto images = ps::get<"jpg">(b).values(), masks = ps::get<"png">(b).values();
    for (std::size_t i = 0; i < b.size(); ++i)
      for (std::size_t y = 0; y < 30; ++y)
        for (std::size_t x = 0; x < 40; ++x) {
          REQUIRE((images(i, y, x, 0) > 100) == (masks(i, y, x, 0) == 200));
          const auto box = ps::get<"boxes">(b)[i];
          const auto px = static_cast<float>(x), py = static_cast<float>(y);
          const bool inside = px >= box(0) && px < box(2) && py >= box(1) && py < box(3);
          REQUIRE(inside == (masks(i, y, x, 0) == 200));
        }
  }
}

TEST_CASE("image/companions: boxes and points move as image_geometry moves them by hand") {
  const auto check = [](const auto& operation, const auto& by_hand) {
    const ps::key k("k");
    const auto joint = samples | ps::map<"jpg", ps::as_boxes<"boxes">>(operation, k) | batched;
    const auto points = samples | ps::map<"jpg", ps::as_points<"boxes">>(operation, k) | batched;
    std::uint64_t seen = 0;
    auto other = (points | ps::workers(2)).open();
    for (auto&& b : (joint | ps::workers(2)).epoch(0)) {
      auto beside = other.next();
      REQUIRE(beside);
      for (std::size_t i = 0; i < b.size(); ++i, ++seen) {
        const sample one = made(seen);
        ps::image_geometry places(size_of(seen));
        ps::rng random(0, 0, seen, k.hash);
        by_hand(places, random);
        std::vector<float> boxes = ps::get<"boxes">(one), xy = boxes;
        places.boxes(boxes);
        places.clamp_boxes(boxes);
        places.points(xy);
        const auto size = ps::get<"jpg">(b).sizes()[i];
        REQUIRE(ps::extents(places.size().height, places.size().width, 3) == size);
        const auto got = ps::get<"boxes">(b)[i], got_points = ps::get<"boxes">(*beside)[i];
        REQUIRE(got.shape() == ps::extents(8));
        for (std::size_t n = 0; n < 8; ++n) REQUIRE(got(n) == boxes[n]);
        for (std::size_t n = 0; n < 8; ++n) REQUIRE(got_points(n) == xy[n]);
      }
    }
    CHECK(seen == 24);
  };
  const auto crop = ps::random_resized_crop(32, 48);
  check(crop, [=](auto& places, ps::rng& random) {
    places.crop(crop.choose(places.size(), random)).resize({48, 32});
  });
  check(ps::resize(100),
        [](auto& places, ps::rng&) { places.resize(ps::resize(100).new_size(places.size())); });
  check(ps::center_crop(40, 20), [](auto& places, ps::rng&) {
    places.crop((places.size().width - 20) / 2, ps::detail::centre_of(places.size().height, 40), {20, 40});
  });
  const auto anywhere = ps::random_crop(30, {.padding = 4});
  check(anywhere, [=](auto& places, ps::rng& random) {
    const auto [x, y] = anywhere.choose(places.size(), random);
    places.crop(x, y, {30, 30});
  });
  check(ps::crop(5, 6, 30, 31), [](auto& places, ps::rng&) { places.crop({5, 6, 30, 31}); });
  check(ps::pad(1, 2, 3, 4), [](auto& places, ps::rng&) {
    places.crop(-1, -2, {places.size().width + 4, places.size().height + 6});
  });
  check(ps::horizontal_flip(), [](auto& places, ps::rng& random) {
    if (random.chance(0.5)) places.mirror(ps::mirroring::horizontal);
  });
  check(ps::vertical_flip(), [](auto& places, ps::rng& random) {
    if (random.chance(0.5)) places.mirror(ps::mirroring::vertical);
  });
  const auto turn = ps::rotate({-40, 40}, {.expand = true});
  check(turn, [=](auto& places, ps::rng& random) {
    const ps::warp_matrix matrix = turn.choose(random);
    places.warp(matrix, turn.new_size(matrix, places.size()));
  });
  const auto change = ps::affine({.degrees = {-20, 20}, .translate = {0.2, 0.1}, .scale = {0.8, 1.3}});
  check(change, [=](auto& places, ps::rng& random) {
    places.warp(change.choose(places.size(), random), places.size());
  });
  check(ps::warp({.a = 2, .c = 3}),
        [](auto& places, ps::rng&) { places.warp({.a = 2, .c = 3}, places.size()); });
  check(ps::color_jitter(0.4), [](auto&, ps::rng&) {});
}

TEST_CASE("image/companions: what is painted in a box lies in the box that was moved") {
  const auto plan =
      samples | ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(
                    ps::random_resized_crop(64, 72, {.scale = {0.5, 1}}), ps::horizontal_flip(),
                    ps::gaussian_blur(3, 0.5, 0.6), ps::rotate({-25, 25}), ps::vertical_flip(), ps::pad(2));
  std::size_t bright = 0;
  for (auto&& b : (plan | ps::shuffle(ps::seed(1)) | batched | ps::workers(2)).epoch(0)) {
    const auto masks = ps::get<"png">(b).values();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto box = ps::get<"boxes">(b)[i];
      for (std::size_t n = 0; n < 8; ++n) REQUIRE((box(n) >= 0 && box(n) <= (n % 2 == 0 ? 76 : 68)));
      for (std::size_t y = 0; y < 68; ++y)
        for (std::size_t x = 0; x < 76; ++x) {
          if (masks(i, y, x, 0) != 200) continue;
          ++bright;
          const auto px = static_cast<float>(x), py = static_cast<float>(y);
          REQUIRE((px + 1.5f >= box(0) && px <= box(2) + 0.5f && py + 1.5f >= box(1) && py <= box(3) + 0.5f));
        }
    }
  }
  CHECK(bright > 5000);
}

TEST_CASE("image/companions: boxes of many types, and only the part that is needed is read") {
  using boxed = ps::record<ps::field<"jpg", photo>, ps::field<"a", std::array<float, 4>>,
                           ps::field<"b", std::vector<int>>, ps::field<"c", std::vector<std::byte>>>;
  const auto array = ps::npy_bytes<double>(ps::extents(2, 2, 2), std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const photo image({20, 10}, 1);
  const std::vector<boxed> one{boxed(image, std::array<float, 4>{1, 2, 3, 4}, std::vector{5, 6, 7, 8},
                                     std::vector<std::byte>(array.begin(), array.end()))};
  const auto plan = ps::from(one) | ps::decode<ps::field<"c", ps::npy<double>>> |
                    ps::map<"jpg", ps::as_boxes<"a">, ps::as_boxes<"b">, ps::as_points<"c">>(
                        ps::crop(2, 1, 8, 6), ps::horizontal_flip(1)) |
                    ps::batch(1);
  for (auto&& b : plan.epoch(0)) {
    CHECK(ps::get<"a">(b).shape() == ps::extents(1, 4));
    const std::vector<float> a(ps::get<"a">(b).flat().begin(), ps::get<"a">(b).flat().end());
    CHECK(a == std::vector<float>{7, 1, 8, 3});
    CHECK(ps::get<"b">(b)(0, 2) == 5);
    CHECK(ps::get<"c">(b).shape() == ps::extents(1, 2, 2, 2));
    CHECK(ps::get<"c">(b)(0, 1, 1, 0) == 8 - (7 - 2));
    CHECK(ps::get<"c">(b)(0, 1, 1, 1) == 7);
  }
  CHECK(image.last_part() == ps::image_part{2, 1, 8, 6});
}

TEST_CASE("image/companions: a run that is restored has the same batches") {
  const auto plan = samples | ps::shuffle(ps::seed(4)) |
                    ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(
                        ps::random_resized_crop(16), ps::horizontal_flip(), ps::color_jitter(0.4)) |
                    batched;
  const auto whole = all_of(plan);
  REQUIRE(whole.size() == 15);
  for (const std::size_t stop : {1u, 3u}) {
    auto first = (plan | ps::workers(2)).open();
    for (std::size_t i = 0; i < stop; ++i) CHECK(first.next());
    auto second = (plan | ps::workers(3)).open(ps::state_from_string(to_string(first.state())));
    std::size_t step = stop;
    for (auto epoch : second.epochs(1))
      for (auto&& b : epoch) {
        const auto boxes = ps::get<"boxes">(b).values().flat();
        CHECK(std::vector<float>(boxes.begin(), boxes.end()) == whole[3 * step + 2]);
        const auto pixels = ps::get<"jpg">(b).values().flat();
        CHECK(std::vector<float>(pixels.begin(), pixels.end()) == whole[3 * step]);
        ++step;
      }
    CHECK(step == 5);
  }
}

TEST_CASE("image/companions: images of other sizes, and boxes of three numbers, are errors of their sample") {
  const auto refused = [](const auto& plan, const std::string& words) {
    for (const unsigned workers : {0u, 2u}) {
      const auto said = error_of([&] {
        for (auto&& b : (plan | batched | ps::workers(workers)).epoch(0)) static_cast<void>(b);
      });
      CHECK_THAT(said, contains(words) && contains("position 0:7"));
    }
  };
  const auto with = [](auto size, std::size_t numbers) {
    return ps::generated(24, [=](std::uint64_t i) {
      return sample(photo({20, 10}, i), drawing(i == 7 ? size : ps::image_size{20, 10}, i),
                    std::vector<float>(i == 7 ? numbers : 4));
    });
  };
  const auto both = ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(ps::random_resized_crop(8));
  refused(with(ps::image_size{10, 20}, 4) | both,
          "fields of one map are images of one size, and 'jpg' is 20 x 10, 'png' 10 x 20");
  refused(with(ps::image_size{20, 10}, 3) | both,
          "boxes have shape (n, 4), and 'boxes' has 3 numbers; split off the others first, such as a class");
  refused(with(ps::image_size{20, 10}, 3) | ps::map<"jpg", ps::as_points<"boxes">>(ps::resize(8)),
          "points have shape (n, 2), and 'boxes' has 3 numbers; split off the others first");
  // where nothing moves, sizes may differ
  std::size_t images = 0;
  for (auto&& b : (with(ps::image_size{10, 20}, 4) | ps::map<"jpg", "png">(ps::invert()) | batched).epoch(0))
    images += b.size();
  CHECK(images == 24);
}

TEST_CASE("image/companions: images may point at their operation, which is made once for all samples") {
  using pair = ps::record<ps::field<"jpg", photo>, ps::field<"png", drawing>,
                          ps::field<"boxes", std::array<float, 4>>>;
  std::vector<pair> pairs;
  for (std::uint64_t i = 0; i < 24; ++i)
    pairs.emplace_back(photo({6, 5}, i), drawing({6, 5}, i), std::array<float, 4>{1, 2, 3, 4});
  const auto check = [&](const auto& operation, std::uint8_t for_image, std::uint8_t for_mask) {
    const auto plan = ps::from(pairs) |
                      ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(
                          operation, ps::random_crop(3, 4), ps::horizontal_flip()) |
                      ps::batch(2);
    const auto plain = ps::from(pairs) |
                       ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(ps::random_crop(3, 4),
                                                                                 ps::horizontal_flip()) |
                       ps::batch(2);
    for (const unsigned workers : {0u, 2u}) {
      auto expected = (plain | ps::workers(0)).open();
      auto run = (plan | ps::workers(workers)).open();
      const int copies = copies_of_tables;
      std::uint64_t seen = 0;
      for (std::size_t step = 0; step < 12; ++step) {
        const auto before = allocations;
        auto b = run.next();
        const auto spent = allocations - before;
        REQUIRE(b);
        if (workers == 0 && step > 3) CHECK(spent == 0);
        auto e = expected.next();
        REQUIRE(e);
        const auto same = [&](const auto& got, const auto& without, std::uint8_t add) {
          for (std::size_t i = 0; i < got.size(); ++i, ++seen)
            REQUIRE(got.data()[i] == static_cast<std::uint8_t>(without.data()[i] + add));
        };
        same(ps::get<"jpg">(*b).flat(), ps::get<"jpg">(*e).flat(), for_image);
        same(ps::get<"png">(*b).flat(), ps::get<"png">(*e).flat(), for_mask);
      }
      CHECK(seen == 24 * 3 * 4 * 4);
      CHECK(copies_of_tables == copies);
    }
  };
  check(looked_up<0>(7), 7, 7);
  check(looked_up<50>(7), 7, 50);
}

TEST_CASE("image/companions: arrays whose last dimension is another one are refused, with their name") {
  using boxed = ps::record<ps::field<"jpg", photo>, ps::field<"ann", std::vector<std::byte>>>;
  const auto with = [](const ps::extents& shape) {
    const auto array = ps::npy_bytes<float>(shape, std::vector<float>(shape.elements(), 1));
    const std::vector<boxed> one{
        boxed(photo({20, 10}, 1), std::vector<std::byte>(array.begin(), array.end()))};
    return ps::from(one) | ps::decode<ps::field<"ann", ps::npy<float>>>;
  };
  const auto passes = [](const auto& plan, const ps::extents& shape) {
    for (auto&& b : (plan | ps::batch(1)).epoch(0)) {
      CHECK(ps::get<"ann">(b).shape() == shape.prepend(1));
      CHECK(ps::get<"ann">(b).flat().data()[0] == 19);
    }
  };
  const auto refused = [](const auto& plan, const std::string& words) {
    const auto said = error_of([&] {
      for (auto&& b : (plan | ps::batch(1)).epoch(0)) static_cast<void>(b);
    });
    CHECK_THAT(said, contains(words));
  };
  const auto boxes = ps::map<"jpg", ps::as_boxes<"ann">>(ps::horizontal_flip(1));
  const auto points = ps::map<"jpg", ps::as_points<"ann">>(ps::horizontal_flip(1));
  refused(with(ps::extents(4, 5)) | boxes,
          "boxes have shape (n, 4), and 'ann' has (4, 5); split off the others first, such as a class");
  refused(with(ps::extents(2, 2, 2)) | boxes,
          "boxes have shape (n, 4), and 'ann' has (2, 2, 2); reshape it first");
  refused(with(ps::extents(6)) | boxes, "boxes have shape (n, 4), and 'ann' has 6 numbers; split off");
  refused(
      with(ps::extents(2, 3)) | points,
      "points have shape (n, 2), and 'ann' has (2, 3); split off the others first, such as the visibility");
  refused(with(ps::extents(4, 1)) | points,
          "points have shape (n, 2), and 'ann' has (4, 1); reshape it first");
  refused(with(ps::extents(3)) | points, "points have shape (n, 2), and 'ann' has 3 numbers; split off");
  for (const ps::extents& shape : {ps::extents(3, 4), ps::extents(2, 3, 4), ps::extents(8)})
    passes(with(shape) | boxes, shape);
  for (const ps::extents& shape : {ps::extents(3, 2), ps::extents(2, 2, 2), ps::extents(6)})
    passes(with(shape) | points, shape);
}

}  // namespace companions_test
