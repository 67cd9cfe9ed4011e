// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/resize.hpp>

#include <penstock/image/crop.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/resize_oracles.hpp"
#include "support/test_image.hpp"

#include <cstdlib>
#include <string>
#include <vector>

namespace resize_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

ps::interpolation way_of(const std::string& name) {
  if (name == "nearest") return ps::interpolation::nearest;
  if (name == "bicubic") return ps::interpolation::bicubic;
  if (name == "area") return ps::interpolation::area;
  return ps::interpolation::bilinear;
}

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return std::string(to_string(e.code())) + ": " + std::string(e.message());
  }
  return "";
}

}  // namespace

TEST_CASE("image/resize: values of Pillow and torchvision") {
  image_call call;
  for (const char* const operation : {"pillow", "antialiased", "plain"})
    check_resize_oracles(operation, [&](const auto& image, const std::vector<std::string>& arguments) {
      return ps::resize(std::stoi(arguments[1]), std::stoi(arguments[2]),
                        {.how = way_of(arguments[0]), .antialias = std::string(operation) != "plain"})(
          image, call.at(0));
    });
  check_resize_oracles("shorter", [&](const auto& image, const std::vector<std::string>& arguments) {
    return ps::resize(std::stoi(arguments[0]),
                      {.max_size = static_cast<std::uint32_t>(std::stoul(arguments[1]))})(image, call.at(0));
  });
}

TEST_CASE("image/resize: sizes are those of torchvision") {
  CHECK(ps::resize(10, 20).new_size({7, 9}) == ps::image_size{20, 10});
  CHECK(ps::resize(256).new_size({500, 375}) == ps::image_size{341, 256});
  CHECK(ps::resize(256).new_size({375, 500}) == ps::image_size{256, 341});
  CHECK(ps::resize(256).new_size({256, 300}) == ps::image_size{256, 300});
  CHECK(ps::resize(256).new_size({256, 256}) == ps::image_size{256, 256});
  CHECK(ps::resize(256, {.max_size = 300}).new_size({375, 1000}) == ps::image_size{112, 300});
  CHECK(ps::resize(256, {.max_size = 300}).new_size({300, 300}) == ps::image_size{256, 256});
  CHECK(ps::resize(2, {.max_size = 3}).new_size({1, 100'000}) == ps::image_size{1, 3});
  CHECK(ps::resize(256).new_size({0, 5}) == ps::image_size{0, 5});
}

TEST_CASE("image/resize: an image that has the size is passed through") {
  image_call call;
  const test_image<std::uint8_t, 3> image({12, 10}, 1, 4);
  const auto same = ps::resize(10)(image, call.at(0));
  CHECK(same.read({2, 3, 4, 5}).data() == image.read({2, 3, 4, 5}).data());
  CHECK(same.read(ps::whole_of(same.size())).data() == image.read({0, 0, 12, 10}).data());
  CHECK(all_ways_agree(same));
  CHECK(&same.memory() == &call.scratch);
  CHECK(call.scratch.work.capacity() == 0);
}

TEST_CASE("image/resize: reads only what the operations behind it need") {
  image_call first, second;
  const test_image<std::uint8_t, 3> image({400, 300}, 1);
  const auto small = ps::crop(50, 40, 10, 20)(ps::resize(150)(image, first.at(0)), second.at(0));
  CHECK(image.reads() == 0);
  CHECK(all_ways_agree(small));
  (void)small.read({0, 0, 10, 20});
  CHECK(image.last_part() == ps::image_part{99, 79, 22, 42});
  const auto nothing = drawn_values(ps::resize(150)(image, first.at(0)), {7, 7, 0, 0});
  CHECK(nothing.empty());
}

TEST_CASE("image/resize: nothing is allocated once buffers have grown") {
  image_call call;
  const test_image<std::uint8_t, 3> image({40, 30}, 1);
  std::vector<std::uint8_t> room(20 * 15 * 3);
  const auto work = [&] {
    for (const ps::interpolation how : {ps::interpolation::nearest, ps::interpolation::bicubic}) {
      const auto half = ps::resize(15, 20, {.how = how})(image, call.at(0));
      half.write_to(ps::destination<std::uint8_t>(room.data(), ps::extents(15, 20, 3)));
      half.write_to(ps::destination<std::uint8_t>(room.data(), ps::extents(15, 20, 3), {20, 1, 300}));
      (void)half.finish();
    }
  };
  work();
  CHECK(allocations_of(work) == 0);
}

TEST_CASE("image/resize: one resize within another, each with its own scratch") {
  image_call first, second;
  const test_image<std::uint8_t, 4> image({31, 45}, 1);
  const auto twice = ps::resize(9, 40)(ps::resize(20)(image, first.at(0)), second.at(0));
  CHECK(all_ways_agree(twice));
  const test_image<std::uint8_t, 4> between({20, 29}, read_values(ps::resize(20)(image, first.at(0))));
  CHECK(read_values(twice) == read_values(ps::resize(9, 40)(between, second.at(0))));
}

TEST_CASE("image/resize: in a pipeline, the same bytes for any number of workers") {
  std::vector<test_image<std::uint8_t, 3>> images;
  for (std::uint32_t i = 0; i < 20; ++i) images.emplace_back(ps::image_size{20 + i, 50 - i}, i);
  const auto plan = ps::from(images) | ps::map(ps::resize(24), ps::center_crop(16)) | ps::batch(5);
  std::vector<std::uint8_t> expected;
  for (const auto& image : images) {
    image_call first, second;
    const auto values = read_values(ps::center_crop(16)(ps::resize(24)(image, first.at(0)), second.at(0)));
    expected.insert(expected.end(), values.begin(), values.end());
  }
  for (const unsigned workers : {0u, 1u, 2u, 7u}) CHECK(values_of(plan, workers) == expected);
}

TEST_CASE("image/resize: wrong arguments, and images without pixels") {
  CHECK_THAT(message_of([] { (void)ps::resize(0); }), contains("argument: resize: a side of 0 pixels"));
  CHECK_THAT(message_of([] { (void)ps::resize(5, 0); }), contains("write at least 1"));
  CHECK_THAT(message_of([] { (void)ps::resize(0, 5); }), contains("write at least 1"));
  CHECK_THAT(message_of([] { (void)ps::resize(-3); }), contains("-3"));
  CHECK_THAT(message_of([] { (void)ps::resize((1 << 20) + 1); }), contains("write at most 1048576"));
  CHECK_THAT(message_of([] { (void)ps::resize(5, 5, {.max_size = 9}); }), contains("max_size"));
  CHECK_THAT(message_of([] { (void)ps::resize(9, {.max_size = 9}); }), contains("larger than the shorter"));
  CHECK_THAT(message_of([] { (void)ps::resize(1 << 20).new_size({1, 65'500}); }), contains("limit: "));
  image_call call;
  const test_image<std::uint8_t, 3> empty({0, 0}, 1);
  CHECK_THAT(message_of([&] { (void)ps::resize(4)(empty, call.at(0)); }),
             contains("shape: an image of 0 x 0"));
  CHECK_THAT(message_of([&] { (void)ps::resize(4, 5)(empty, call.at(0)); }), contains("no pixels"));
}

TEST_CASE("image/resize: what is no image of bytes has its own sentence") {
  using operation = ps::resize_operation;
  static_assert(std::is_same_v<operation::wrong_argument_for<int>, ps::mistakes::operation_wants_image>);
  static_assert(std::is_same_v<operation::wrong_argument_for<test_image<float, 3>>,
                               ps::mistakes::operation_wants_bytes>);
  static_assert(!std::is_invocable_v<const operation&, const test_image<float, 3>&,
                                     const ps::call<ps::image_scratch>&>);
  SUCCEED();
}

}  // namespace resize_test
