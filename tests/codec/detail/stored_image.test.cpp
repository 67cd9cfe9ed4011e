// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/detail/stored_image.hpp>

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/codec/webp_encoder.hpp>
#include <penstock/image/crop.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/image_codec_test.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::to_vector;

namespace {

using any_picture = ps::image_of<ps::jpeg, ps::png, ps::webp>;

/// A file of each format, whole and cut; in `damaged`, how many are cut.
std::vector<byte_vector> some_files(std::uint64_t& damaged) {
  const auto pixels = image_codec_test::some_picture<std::uint8_t>({64, 48}, 3, 8);
  ps::jpeg_encoder jpeg;
  ps::png_encoder png;
  ps::webp_encoder webp;
  std::vector<byte_vector> files;
  damaged = 0;
  const auto add = [&](const byte_vector& file) {
    for (const std::size_t kept : {file.size(), file.size() * 4 / 5, file.size(), file.size() * 9 / 10}) {
      files.emplace_back(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(kept));
      damaged += kept == file.size() ? 0 : 1;
    }
  };
  add(to_vector(jpeg.encode(pixels.view<3>())));
  add(to_vector(jpeg.encode(pixels.view<3>(), {.progressive = true})));
  add(to_vector(png.encode(pixels.view<3>())));
  add(to_vector(webp.encode(pixels.view<3>(), {.lossless = true})));
  add(to_vector(webp.encode(pixels.view<3>())));
  return files;
}

}  // namespace

TEST_CASE("codec/detail/damage_count: an image is damaged once") {
  ps::detail::damage_count count;
  for (std::uint64_t image = 1; image < 4; ++image) {
    count.next();
    count.damage();
    count.damage();
    CHECK(count.warnings == image);
    count.next();
    CHECK(count.warnings == image);
  }
}

TEST_CASE(
    "codec/detail/damage_count: truncated files are errors, or with recover warnings in the run's counters") {
  std::uint64_t damaged = 0;
  const auto files = some_files(damaged);
  REQUIRE(damaged == 10);
  const auto source = ps::from(files);
  const auto strict = source | ps::decode<any_picture> | ps::batch(3);
  const auto lenient =
      source | ps::decode<any_picture>(any_picture{{.recover = true}, {.recover = true}, {.recover = true}});
  const auto count = [](const auto& plan, std::uint64_t epochs) {
    auto run = plan.open();
    std::uint64_t samples = 0;
    for (auto epoch : run.epochs(epochs))
      for (auto&& b : epoch) samples += b.valid_size();
    return std::pair(samples, run.counters());
  };
  for (const unsigned workers : {0u, 2u}) {
    INFO(workers << " workers");
    CHECK_THROWS_AS(count(strict | ps::workers(workers), 1), ps::error);
    const auto [good, skipping] = count(
        source | ps::decode<any_picture> | ps::bad_samples::skip(100) | ps::batch(3) | ps::workers(workers),
        1);
    CHECK(good == files.size() - damaged);
    CHECK(skipping.skipped == damaged);
    CHECK(skipping.warnings == 0);
    const auto [all, counters] = count(lenient | ps::batch(3) | ps::workers(workers), 2);
    CHECK(all == 2 * files.size());
    CHECK(counters.warnings == 2 * damaged);
    // Operations that read several parts of an image do not count it again.
    const auto [some, resized] = count(
        lenient | ps::map(ps::resize(20), ps::center_crop(16)) | ps::batch(4) | ps::workers(workers), 1);
    CHECK(some == files.size());
    CHECK(resized.warnings == damaged);
  }
}
