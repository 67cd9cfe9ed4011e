// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/image/operations.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <penstock/core/random.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/workers.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace device_image_operations_test {

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::test_image;

namespace {

template <std::size_t C>
using image = test_image<std::uint8_t, C>;

template <std::size_t C>
auto images(ps::image_size size, std::uint64_t count = 7) {
  return ps::generated(count, [size](std::uint64_t i) { return image<C>(size, i); });
}
auto to_device() { return ps::batch(3, ps::tail::pad) | ps::pin_and_copy(ps::simulated()); }

/// All bytes that the device has after an epoch of a plan, and the shapes of its batches.
struct outcome {
  std::vector<std::byte> bytes;
  std::vector<ps::extents> shapes;
  std::size_t element = 0;
  friend bool operator==(const outcome&, const outcome&) = default;
};
template <class Plan>
outcome seen(const Plan& plan, std::uint64_t epochs = 1) {
  outcome all;
  auto run = plan.open();
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      const auto view = b.device_view();
      all.element = sizeof(typename decltype(view)::value_type);
      all.shapes.push_back(view.shape());
      const auto* const bytes = reinterpret_cast<const std::byte*>(view.data());
      all.bytes.insert(all.bytes.end(), bytes, bytes + view.size() * all.element);
    }
  return all;
}

/// Whether operations give the same bits on the host, before batch, and on the device.
template <class Source, class... Ops>
bool same_bits(const Source& source, const Ops&... ops) {
  const outcome host = seen(source | ps::map(ops...) | to_device());
  const outcome there = seen(source | to_device() | ps::on_device(ops...));
  CHECK(host.shapes == there.shapes);
  CHECK(host.element == there.element);
  return host.bytes == there.bytes;
}

template <std::size_t C>
ps::channel_statistics<C> some_statistics() {
  ps::channel_statistics<C> some;
  for (std::size_t c = 0; c < C; ++c) {
    some.mean[c] = 0.3 + 0.1 * static_cast<double>(c);
    some.std[c] = 0.2 + 0.03 * static_cast<double>(c);
  }
  return some;
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("device/image/operations: the bits of the host, for any number of channels", "",
                       ((std::size_t C), C), 1, 2, 3, 4) {
  for (const ps::image_size size : {ps::image_size{1, 1}, {8, 3}, {13, 7}, {40, 2}}) {
    INFO(size.width << "x" << size.height);
    const auto source = images<C>(size);
    CHECK(same_bits(source, ps::horizontal_flip(), ps::normalize(some_statistics<C>()), ps::to_half(),
                    ps::to_chw()));
    CHECK(same_bits(source, ps::vertical_flip(), ps::to_float()));
  }
}

TEST_CASE("device/image/operations: the bits of the host, for any numbers and order") {
  const auto normal = ps::normalize(ps::imagenet);
  for (const ps::image_size size : {ps::image_size{16, 5}, {13, 7}}) {
    INFO(size.width << "x" << size.height);
    const auto source = images<3>(size);
    CHECK(same_bits(source, ps::to_chw()));
    CHECK(same_bits(source, ps::to_bfloat16()));
    CHECK(same_bits(source, normal, ps::to_chw()));
    CHECK(same_bits(source, ps::vertical_flip(), ps::horizontal_flip(), normal, ps::to_bfloat16(),
                    ps::to_chw()));
    CHECK(same_bits(source, ps::to_float(), normal, ps::to_half(), ps::horizontal_flip(), ps::to_chw()));
    // a kernel does not care where planes are made
    CHECK(seen(source | to_device() | ps::on_device(ps::to_chw(), normal, ps::to_half())) ==
          seen(source | to_device() | ps::on_device(normal, ps::to_half(), ps::to_chw())));
  }
}

TEST_CASE("device/image/operations: crops and pads, within images and beyond them") {
  for (const ps::image_size size : {ps::image_size{24, 16}, {17, 31}, {8, 8}}) {
    INFO(size.width << "x" << size.height);
    const auto source = images<3>(size);
    const auto normal = ps::normalize(ps::imagenet);
    CHECK(same_bits(source, ps::center_crop(40, 33), normal, ps::to_half(), ps::to_chw()));
    CHECK(same_bits(source, ps::random_crop(7, 5), ps::horizontal_flip(), ps::to_chw()));
    CHECK(same_bits(source, ps::horizontal_flip(), ps::random_crop(8, {.padding = 3, .fill = {1, 2, 3}}),
                    normal));
    CHECK(same_bits(source, ps::random_crop(30, {.pad_if_needed = true, .fill = 9}), ps::vertical_flip(),
                    ps::center_crop(21), normal, ps::to_half(), ps::to_chw()));
    CHECK(same_bits(source, ps::pad(4, {.fill = {124, 116, 104}}), ps::horizontal_flip(), ps::random_crop(9),
                    ps::vertical_flip(), normal, ps::to_bfloat16()));
    CHECK(same_bits(source, ps::crop(1, 2, 5, 6), ps::to_float(), ps::to_chw()));
    CHECK(same_bits(source, normal, ps::pad(2, {.fill = 0.25}), ps::to_chw()));
  }
}

TEST_CASE("device/image/operations: where the host rounds in between, the last bits may differ") {
  // to_float, a crop and normalize are two passes on the host, which rounds to float between them.
  const auto source = images<3>({16, 16});
  const auto ops = [](auto make) {
    return make(ps::to_float(), ps::pad(1, {.fill = 0.5}), ps::normalize(ps::imagenet), ps::to_chw());
  };
  const outcome host = ops([&](const auto&... f) { return seen(source | ps::map(f...) | to_device()); });
  const outcome there =
      ops([&](const auto&... f) { return seen(source | to_device() | ps::on_device(f...)); });
  REQUIRE(host.bytes.size() == there.bytes.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < host.bytes.size(); i += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, host.bytes.data() + i, sizeof a);
    std::memcpy(&b, there.bytes.data() + i, sizeof b);
    wrong +=
        !(std::fabs(a - b) <= 4e-6f);  // values are within 3, of which a unit in the last place is 2.4e-7
  }
  CHECK(wrong == 0);
}

TEST_CASE("device/image/operations: the same for any workers, ranks, epochs, and after filter") {
  const auto in_order = [](auto&& make) {
    return make(ps::horizontal_flip(), ps::random_crop(9), ps::vertical_flip(0.3), ps::normalize(0.4, 0.2),
                ps::to_half(), ps::to_chw());
  };
  const auto both = [&](const auto& source) {
    const outcome host =
        in_order([&](const auto&... f) { return seen(source | ps::map(f...) | to_device(), 2); });
    const outcome there =
        in_order([&](const auto&... f) { return seen(source | to_device() | ps::on_device(f...), 2); });
    CHECK(host == there);
    const outcome keyed = in_order(
        [&](const auto&... f) { return seen(source | to_device() | ps::on_device(f..., ps::key("k")), 2); });
    CHECK(keyed == in_order([&](const auto&... f) {
            return seen(source | ps::map(f..., ps::key("k")) | to_device(), 2);
          }));
    CHECK(keyed != there);
    return there;
  };
  const auto source = images<3>({12, 10}, 23) | ps::shuffle(ps::seed(4));
  const outcome alone = both(source | ps::workers(0));
  CHECK(both(source | ps::workers(2)) == alone);
  (void)both(source | ps::shard(ps::world{.rank = 1, .size = 2}));
  (void)both(source | ps::filter([](const auto& one) { return one(0, 0, 0) % 3 != 0; }));
}

TEST_CASE("device/image/operations: a state goes on with the same decisions") {
  const auto plan = images<1>({10, 10}, 24) | ps::shuffle(ps::seed(2)) | to_device() |
                    ps::on_device(ps::random_crop(4), ps::horizontal_flip());
  const outcome all = seen(plan);
  auto run = plan.open();
  for (int i = 0; i < 3; ++i) (void)run.next();
  auto rest = plan.open(run.state());
  std::size_t at = std::size_t{3} * 3 * 16;
  while (auto b = rest.next()) {
    const auto view = b->device_view();
    CHECK(std::memcmp(view.data(), all.bytes.data() + at, view.size()) == 0);
    at += view.size();
  }
  CHECK(at == all.bytes.size());
}

TEST_CASE("device/image/operations: holes are 0") {
  const auto broken = ps::generated(9, [](std::uint64_t i) {
    if (i % 4 == 1) throw ps::error(ps::errc::format, "of no use");
    return image<3>({8, 4}, i);
  });
  for (const auto& policy : {ps::bad_samples::skip(9), ps::bad_samples::skip(5)}) {
    const auto source = broken | policy;
    CHECK(same_bits(source, ps::normalize(ps::imagenet), ps::to_chw()));
    CHECK(same_bits(source, ps::horizontal_flip(), ps::to_half()));
  }
  CHECK(same_bits(broken | ps::bad_samples::replace(9), ps::horizontal_flip(), ps::random_crop(3)));
}

TEST_CASE("device/image/operations: pitched pixels, and what another operation made") {
  const auto source = images<3>({11, 5});
  const auto plan = source | ps::batch(3, ps::pitched<64>) | ps::pin_and_copy(ps::simulated()) |
                    ps::on_device(ps::horizontal_flip(), ps::to_half(), ps::to_chw());
  const outcome there = seen(plan);
  const outcome dense = seen(source | ps::batch(3) | ps::pin_and_copy(ps::simulated()) |
                             ps::on_device(ps::horizontal_flip(), ps::to_half(), ps::to_chw()));
  CHECK(there == dense);
}

TEST_CASE("device/image/operations: images that do not fit are one error that says so") {
  const auto message = [](const auto& plan) -> std::string {
    try {
      auto run = plan.open();
      for (auto&& b : run) (void)b;
    } catch (const ps::error& e) {
      CHECK(e.stage() == "on_device");
      return e.what();
    }
    return "";
  };
  CHECK_THAT(message(images<3>({8, 8}) | to_device() | ps::on_device(ps::random_crop(9))),
             contains("a crop of 9 x 9 from an image of 8 x 8"));
  CHECK_THAT(message(images<3>({8, 8}) | to_device() | ps::on_device(ps::crop(1, 1, 8, 2))),
             contains("a crop of 8 x 2 at (1, 1) from images of 8 x 8"));
  CHECK_THAT(message(images<1>({8, 8}) | to_device() | ps::on_device(ps::normalize(ps::imagenet))),
             contains("normalize has 3 means and the images have 1 channels"));
  CHECK_THAT(message(images<3>({8, 8}) | ps::batch(2, ps::channels_first) |
                     ps::pin_and_copy(ps::simulated()) | ps::on_device(ps::to_half())),
             contains("1 to 4 channels, and this one has (2, 3, 8, 8)"));
  CHECK_THAT(
      message(images<3>({8, 8}) | to_device() | ps::on_device(ps::pad(1, {.fill = 7}), ps::center_crop(20))),
      contains("pad with different colours"));
  CHECK_THROWS_AS(ps::on_device(ps::pad(1, {.mode = ps::padding_mode::edge})), ps::error);
}

TEST_CASE("device/image/operations: one kernel, of the numbers and with the streams of its operations") {
  const auto stage = ps::on_device<"jpg">(ps::horizontal_flip(), ps::random_crop(4),
                                          ps::normalize(ps::imagenet), ps::to_chw(), ps::to_half());
  using operations = std::remove_cv_t<decltype(stage)>::operations;
  static_assert(operations::size == 1 && decltype(stage)::own_streams == 2);
  using fused = ps::detail::type_at<0, operations>;
  static_assert(std::is_same_v<fused::output<ps::tensor_view<std::uint8_t>>, ps::half>);
  static_assert(ps::device_operation<fused, ps::strided_view<std::uint8_t>>);
  static_assert(!ps::device_operation<fused, ps::tensor_view<float>>);
  CHECK(stage.describe() == "on_device<\"jpg\">");
}

}  // namespace device_image_operations_test
