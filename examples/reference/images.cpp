// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images from shards to batches: the snippets of docs/images.md and of the README.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/jpeg_encoder.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/image.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace ps = penstock;

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "images: %s\n", what);
  std::exit(1);
}

/// A folder of its own with shards of made-up photos: a JPEG, a class, a mask of the same size as PNG, and
/// the box of what is 255 in the mask.
class photos {
 public:
  explicit photos(std::uint64_t count)
      : before_(std::filesystem::current_path()), place_(before_ / "made_up_photos") {
    std::filesystem::remove_all(place_);  // left by a killed program
    std::filesystem::create_directories(place_);
    std::filesystem::current_path(place_);
    ps::shard_writer out("photos-%04d.tar", {.maxcount = 16});
    ps::jpeg_encoder jpegs;
    ps::png_encoder pngs;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto width = static_cast<std::uint32_t>(200 + 10 * (i % 9));
      const auto height = static_cast<std::uint32_t>(260 - 10 * (i % 7));
      std::vector<std::uint8_t> rgb(std::size_t{width} * height * 3), mask(std::size_t{width} * height);
      for (std::uint32_t y = 0; y < height; ++y)
        for (std::uint32_t x = 0; x < width; ++x) {
          const std::size_t at = std::size_t{y} * width + x;
          rgb[3 * at] = static_cast<std::uint8_t>(x);
          rgb[3 * at + 1] = static_cast<std::uint8_t>(y);
          rgb[3 * at + 2] = static_cast<std::uint8_t>(40 * i);
          mask[at] = x < 128 ? 0 : 255;
        }
      const std::vector<float> box{128, 0, static_cast<float>(width), static_cast<float>(height)};
      out.write(std::to_string(i),
                {{"jpg", jpegs.encode(ps::pixel_view<std::uint8_t, 3>(rgb.data(), {width, height}))},
                 {"png", pngs.encode(ps::pixel_view<std::uint8_t, 1>(mask.data(), {width, height}))},
                 {"boxes", ps::text_of(ps::npy_bytes<float>(ps::extents(1, 4), box))},
                 {"cls", std::to_string(i % 10)}});
    }
    out.close();
  }
  photos(const photos&) = delete;
  photos& operator=(const photos&) = delete;
  ~photos() {
    std::filesystem::current_path(before_);
    std::error_code ignored;
    std::filesystem::remove_all(place_, ignored);
  }

 private:
  std::filesystem::path before_, place_;
};

void five_lines() {
  auto loader = ps::webdataset("photos-{0000..0003}.tar") |
                ps::decode<ps::field<"jpg", ps::jpeg>, ps::field<"cls", ps::integer>> |
                ps::map<"jpg">(ps::random_resized_crop(224), ps::horizontal_flip(),
                               ps::normalize(ps::imagenet), ps::to_chw()) |
                ps::shuffle(ps::seed(7)) | ps::batch(16);
  std::uint64_t images = 0;
  for (auto&& batch : loader.epoch(0)) {
    must(ps::get<"jpg">(batch).shape() == ps::extents(16, 3, 224, 224), "a batch of 16 crops");
    images += batch.size();
  }
  must(images == 64, "64 images");
}

void images_of_many_shapes() {
  std::filesystem::create_directory("derived");
  const auto images = ps::webdataset("photos-{0000..0003}.tar") | ps::decode<ps::field<"jpg", ps::jpeg>>;
  const auto size = ps::derive(
      images | ps::map<"jpg">(ps::packed_size), "size", [](const auto& s) { return ps::get<"jpg">(s); },
      "derived");
  const ps::aspect_buckets buckets(256 * 256);  // sides are multiples of 64
  auto loader = images | ps::map<"jpg">(ps::resize(buckets)) | ps::shuffle(ps::seed(7)) |
                ps::bucket_by(size, buckets, {.max_samples = 8});
  std::uint64_t images_seen = 0;
  for (auto&& batch : loader.epoch(0)) {
    const auto shape = ps::get<"jpg">(batch).shape();
    must(shape[0] <= 8 && shape[1] % 64 == 0 && shape[2] % 64 == 0, "images of one size");
    images_seen += batch.size();
  }
  must(images_seen == 64, "64 images in buckets");
}

void one_draw_for_several_fields() {
  auto loader = ps::webdataset("photos-{0000..0003}.tar") |
                ps::decode<ps::field<"jpg", ps::jpeg>, ps::field<"png", ps::png_as<ps::gray8>>,
                           ps::field<"boxes", ps::npy<float>>> |
                ps::map<"jpg", ps::as_mask<"png">, ps::as_boxes<"boxes">>(
                    ps::random_resized_crop(96), ps::horizontal_flip(), ps::color_jitter(0.2), ps::to_chw()) |
                ps::batch(16);
  std::uint64_t right = 0, all = 0;
  for (auto&& batch : loader.epoch(0)) {
    const auto images = ps::get<"jpg">(batch);
    const auto masks = ps::get<"png">(batch);
    const auto boxes = ps::get<"boxes">(batch);
    must(images.shape() == ps::extents(16, 3, 96, 96) && boxes.shape() == ps::extents(16, 1, 4),
         "images, masks and boxes");
    for (std::size_t i = 0; i < batch.size(); ++i)
      for (std::size_t y = 0; y < 96; ++y)
        for (std::size_t x = 0; x < 96; ++x, ++all) {
          const float place = static_cast<float>(x) + 0.5f;
          const bool in_box = place >= boxes(i, 0u, 0u) && place < boxes(i, 0u, 2u);
          right += in_box == (masks(i, y, x, 0u) == 255) ? 1u : 0u;
        }
  }
  must(all == 64 * 96 * 96 && right * 50 > all * 49, "masks and boxes follow their images");
}

/// An operation of your own: a function object that wraps an image in another.
struct darken : ps::image_operation {
  using keeps_places = void;

  template <ps::byte_image I>
  struct darkened : ps::image_expression<darkened<I>, std::uint8_t, I::channels> {
    using view_type = ps::pixel_view<std::uint8_t, I::channels>;
    I image;
    ps::image_scratch* scratch;

    darkened(const I& wrapped, ps::image_scratch& s) : image(wrapped), scratch(&s) {}
    [[nodiscard]] ps::image_size size() const { return image.size(); }
    [[nodiscard]] ps::image_scratch& memory() const { return *scratch; }
    [[nodiscard]] view_type read(const ps::image_part& part) const {
      const view_type pixels = image.read(part);
      auto* const made = ps::room_for<std::uint8_t>(scratch->pixels, pixels.height() * pixels.row_values());
      for (std::size_t y = 0; y < pixels.height(); ++y)
        for (std::size_t i = 0; i < pixels.row_values(); ++i)
          made[y * pixels.row_values() + i] = static_cast<std::uint8_t>(pixels.row(y)[i] / 2);
      return {made, part.size()};
    }
  };

  template <ps::byte_image I>
  [[nodiscard]] auto operator()(const I& image, const ps::call<ps::image_scratch>& c) const {
    return darkened<I>(image, c.scratch);
  }
};

void beside_a_launching_thread() {
  auto loader = ps::webdataset("photos-{0000..0003}.tar") | ps::decode<ps::field<"jpg", ps::jpeg>> |
                ps::map<"jpg">(ps::resize(64, 64)) | ps::batch(16) |
                ps::workers(4, {.processors = {2, 3, 4, 5}, .nice = 5});
  must(ps::describe(loader).find("workers(4, processors 2-5, nice 5)") != std::string::npos, "as written");
}

void an_operation_of_your_own() {
  auto loader = ps::webdataset("photos-{0000..0003}.tar") | ps::decode<ps::field<"jpg", ps::jpeg>> |
                ps::map<"jpg">(ps::resize(64, 64), darken{}) | ps::batch(16);
  for (auto&& batch : loader)
    for (const std::uint8_t value : ps::get<"jpg">(batch).flat()) must(value < 128, "no bright pixel");
}

}  // namespace

int main() {
  const photos files(64);
  five_lines();
  images_of_many_shapes();
  beside_a_launching_thread();
  one_draw_for_several_fields();
  an_operation_of_your_own();
  std::puts("images: crops, masks and boxes, and an operation of one's own, as docs/images.md shows them");
}
