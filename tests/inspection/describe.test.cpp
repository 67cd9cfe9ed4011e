// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/describe.hpp>

#include <penstock/core/tensor.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/image.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_fields.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace describe_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("inspection/describe: stages with their kinds, where guarantees are lost, moves and device") {
  const auto plan = ps::from(first_ints(10)) | ps::shuffle(ps::seed(7)) | ps::shard(0, 2) |
                    ps::shuffle_buffer(4) | ps::batch(2) | ps::pin_and_copy;
  const auto text = describe(plan);
  CHECK_THAT(text, contains("shuffle(seed 7)"));
  CHECK_THAT(text, contains("sequencer  loses indexed, loses elastic"));
  CHECK_THAT(text, contains("keeps: deterministic resumable lockstep\n"));
  CHECK_THAT(text, contains("value: written straight into the batch\n"));
  CHECK_THAT(text, contains("device: host\n"));
}

TEST_CASE("inspection/describe: which fields are used, if a source is told that not all are") {
  const auto joint = ps::zip<"x", "y">(ps::from(first_ints(3)), ps::from(first_ints(3)));
  CHECK_THAT(describe(joint | ps::fields<"y"> | ps::batch(1)), contains("\nuses of a sample: y\nkeeps:"));
  CHECK_THAT(describe(joint | ps::shuffle(ps::seed(1)) | ps::fields<"y", "x"> | ps::batch(1)),
             contains("uses of a sample: y, x\n"));
  CHECK_THAT(describe(joint | ps::batch(1)), !contains("uses of a sample"));
  CHECK_THAT(describe(ps::from(first_ints(3)) | ps::batch(1)), !contains("uses of a sample"));
}

TEST_CASE("inspection/describe: fields one by one, and one more move after a filter") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"txt", std::string>>;
  const auto plan = ps::from(std::vector<sample>{sample(1, "a")}) |
                    ps::filter([](const auto&) { return true; }) | ps::batch(2, ps::ragged) |
                    ps::pin_and_copy(ps::simulated{});
  const auto text = describe(plan);
  CHECK_THAT(text, contains("filter     loses indexed, loses lockstep"));
  CHECK_THAT(text, contains("field x: written straight into the batch"));
  CHECK_THAT(text,
             contains("field txt: kept beside the batch until all lengths are known, then copied into it"));
  CHECK_THAT(text, contains("copied once more, from a chunk of samples into the batch"));
  CHECK_THAT(text, contains("device: simulated accelerator"));
}

TEST_CASE("inspection/describe: what makes several samples of one is a flat map") {
  const auto plan = ps::from(std::vector<std::vector<int>>{{1, 2}, {3}}) | ps::unbatch | ps::batch(2);
  CHECK_THAT(describe(plan), contains("flat map   loses indexed, loses lockstep"));
}

TEST_CASE("inspection/describe: a source alone") {
  CHECK(describe(ps::from(first_ints(3))) ==
        "  from(3 samples in memory)                      indexed\n"
        "keeps: indexed deterministic resumable elastic lockstep\n"
        "device: host\n" +
            ps::tuning_text());
}

struct twice {
  int operator()(int x) const { return 2 * x; }
};

TEST_CASE("inspection/describe: the functions of a map, by what they say of themselves or by their class") {
  using image = ps::tensor_view<const std::uint8_t>;
  const auto chain = ps::from(first_ints(3)) | ps::map(twice{}, [](int x) { return x + 1; });
  CHECK_THAT(describe(chain), contains("  map: twice, a function "));
  CHECK_THAT(describe(ps::from(first_ints(3)) | ps::map([](int x) { return x; })), contains("  map     "));
  CHECK_THAT(describe(ps::from(first_ints(3)) | ps::map(twice{})), contains("  map: twice  "));

  const std::vector<std::uint8_t> pixels(4 * 4 * 3);
  using sample = ps::record<ps::field<"img", image>>;
  const auto images = ps::from(std::vector<sample>{sample(image(pixels.data(), ps::extents(4, 4, 3)))});
  const auto shown = [](const auto& stage) { return ps::detail::functions_text(stage); };
  CHECK_THAT(describe(images | ps::map<"img">([](const image& one) { return one; })),
             contains("  map<\"img\">   "));
  CHECK(shown(ps::map<"img">(ps::resize(256), ps::center_crop(224), ps::horizontal_flip(), ps::to_float(),
                             ps::normalize(ps::imagenet), ps::to_chw())) ==
        "resize(256), center_crop(224), horizontal_flip, to_float, normalize, to_chw");
  CHECK(
      shown(ps::map<"img">(ps::resize(224, 320), ps::random_resized_crop(64, 32), ps::vertical_flip(0.5))) ==
      "resize(224, 320), random_resized_crop(64, 32), vertical_flip");
  CHECK(shown(ps::map<"img">(ps::color_jitter(0.4), ps::invert(), ps::random_equalize(),
                             ps::rotate({-5, 5}))) == "color_jitter, invert, random_equalize, rotate");
  CHECK(shown(ps::map<"img", "other">(ps::random_crop(32), ps::to_half())) == "random_crop(32), to_half");
}

}  // namespace describe_test
