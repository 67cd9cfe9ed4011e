// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/ffcv_image.hpp>

#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

static_assert(ps::codec<ps::ffcv_image<>> && ps::codec<ps::ffcv_image<ps::jpeg>>);
static_assert(ps::ffcv_image<ps::jpeg>::one_at_a_time && !ps::ffcv_image<>::one_at_a_time);

namespace ffcv_image_test {

/// An image as a source gives it.
struct stored_image {
  struct facts {
    bool raw_image;
    std::uint32_t width, height;
  };
  facts about;
  std::string bytes;

  [[nodiscard]] std::size_t size() const { return bytes.size(); }
  void read_into(ps::mutable_bytes into) const {
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), into.size(), into.begin());
  }
  [[nodiscard]] ps::bytes_view finish() const { return ps::bytes_of(bytes); }
  using unfinished = void;
  [[nodiscard]] const facts& place() const { return about; }
};

}  // namespace ffcv_image_test

using namespace ffcv_image_test;

TEST_CASE("codec/ffcv_image: pixels as they are, and compressed images by their codec") {
  const stored_image raw{{true, 2, 1}, "abcdef"};
  ps::ffcv_image<ps::jpeg>::scratch scratch;
  const ps::ffcv_image<ps::jpeg> any;
  const auto pixels = any.decode(raw, scratch);
  CHECK(pixels.size() == ps::image_size{2, 1});
  CHECK(pixels.index() == 0);
  const auto whole = pixels.finish();
  CHECK(whole.shape() == ps::extents(1, 2, 3));
  CHECK(whole(0, 1, 2) == 'f');

  const std::vector<std::uint8_t> gray(16 * 8 * 3, 100);
  ps::jpeg_encoder encoder;
  const std::string file(
      ps::text_of(encoder.encode(ps::pixel_view<std::uint8_t, 3>(gray.data(), ps::image_size{16, 8}), {})));
  const stored_image compressed{{false, 16, 8}, file};
  const auto decoded = any.decode(compressed, scratch);
  CHECK(decoded.size() == ps::image_size{16, 8});
  CHECK(decoded.index() == 1);
  ps::jpeg::scratch own;
  const auto expected = ps::jpeg{}.decode(std::string_view(file), own).finish();
  const auto found = decoded.finish();
  REQUIRE(found.shape() == expected.shape());
  CHECK(std::equal(found.flat().begin(), found.flat().end(), expected.flat().begin()));
  CHECK(any.decode(std::string_view(file), scratch).index() == 1);

  ps::ffcv_image<>::scratch none;
  CHECK(ps::ffcv_image<>{}.decode(raw, none).size() == ps::image_size{2, 1});
  CHECK_THROWS_WITH(ps::ffcv_image<>{}.decode(compressed, none),
                    Catch::Contains("write ffcv_image<jpeg>, and link penstock::jpeg"));
}
