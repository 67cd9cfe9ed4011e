// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nvjpeg.h>)
#error "penstock/device/image/nvjpeg.hpp needs nvJPEG: link penstock::nvjpeg"
#endif

#include <penstock/device/concepts.hpp>
#include <penstock/device/image/detail/nvjpeg_decoder.hpp>
#include <penstock/device/image/image_places.hpp>
#include <penstock/image/crop.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct nvjpeg_wants_files : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: nvjpeg decodes the bytes of JPEG files, first of all operations; leave the field "
        "encoded and batch it as it is: decode<field<\"jpg\", identity>> | batch(n, "
        "collate<\"jpg\">(ragged))");
  }
};

}  // namespace mistakes

/// Options of `nvjpeg`.
struct nvjpeg_options {
  /// Threads that decode the Huffman code of what the engine does not decode, and whole images that the
  /// device cannot; 0: half of the processor's, 8 at most.
  unsigned threads = 0;
  /// Decodes with the device's JPEG engine what it can, if the device has one.
  bool engine = true;
  /// Of width, height and bytes, as those of the codec `jpeg`.
  image_limits limits{};
  /// Turns the image as its EXIF block says.
  bool orient = true;
  /// A file that cannot be decoded becomes black and is counted; otherwise it is an error of its batch.
  bool bad_is_black = false;
};

/// Where the images of a plan were decoded, in all its runs.
struct nvjpeg_counts {
  std::uint64_t engine = 0;  ///< by the device's JPEG engine
  std::uint64_t device = 0;  ///< by the device, the Huffman code by the host
  std::uint64_t host = 0;    ///< by the host's codec
  std::uint64_t bad = 0;     ///< by nobody
};

namespace detail {

/// A column of bytes whose samples differ in length.
template <class View>
concept ragged_bytes = requires(const View& v, std::size_t i) {
  v.offsets();
  { v[i].data() } -> std::convertible_to<const void*>;
  requires sizeof(v[i][0]) == 1;
};

template <class Crop>
concept nvjpeg_crop = std::same_as<Crop, center_crop_operation> || std::same_as<Crop, random_crop_operation>;

/// What all copies of an operation know of their runs.
struct nvjpeg_account : nvjpeg_tally {
  std::atomic<int> engine_found{-1};  // whether the last run has an engine; -1 before the first
};

/// `nvjpeg` in a run.
template <pixel_format Format, class Crop>
class nvjpeg_run {
  using decoder_type = nvjpeg_decoder<Format>;

 public:
  static constexpr std::uint64_t streams = Crop::template uses_random<void> ? 1 : 0;
  template <ragged_bytes View>
  using output = std::uint8_t;
  template <class View>
  using wrong_column_for = mistakes::nvjpeg_wants_files;

  nvjpeg_run(int device, const Crop& crop, const nvjpeg_setup& setup, std::shared_ptr<nvjpeg_account> account)
      : crop_(crop),
        size_(setup.size),
        account_(std::move(account)),
        decoder_(std::make_shared<decoder_type>(device, setup, *account_)) {
    account_->engine_found = decoder_->engine() ? 1 : 0;
  }

  template <class View>
  [[nodiscard]] extents shape(const View& /*column*/, const device_batch& batch) const {
    return extents(batch.slots(), std::size_t{size_.height}, std::size_t{size_.width}, Format::channels);
  }
  template <class Stream, class View>
  void launch(Stream stream, const View& column, const device_batch& batch,
              const device_places& places) const {
    static_assert(std::is_same_v<Stream, cudaStream_t>,
                  "penstock: nvjpeg works on devices of CUDA; write pin_and_copy(cuda{}) before on_device");
    const files<View> all{column, batch, crop_, batch.slots(), places.output};
    if constexpr (std::is_same_v<Stream, cudaStream_t>) decoder_->decode(all, stream);
  }

 private:
  template <class View>
  struct files {
    const View& column;
    const device_batch& batch;
    const Crop& crop;
    std::size_t count;
    std::byte* output;

    [[nodiscard]] bool holds(std::size_t i) const { return batch.holds(i); }
    [[nodiscard]] bytes_view file(std::size_t i) const { return std::as_bytes(column[i]); }
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> corner(std::size_t i, const image_size& image) const {
      rng random = streams == 0 ? rng(0, 0, 0) : batch.random(i);
      image_places places(image);
      crop.follow(places, random);
      return {places.choice().x, places.choice().y};
    }
  };

  Crop crop_;
  image_size size_;
  std::shared_ptr<nvjpeg_account> account_;  // before the decoder, which counts in it
  std::shared_ptr<decoder_type> decoder_;
};

}  // namespace detail

/// What `nvjpeg(...)` makes: an operation for `on_device`.
template <pixel_format Format, class Crop>
class nvjpeg_operation {
 public:
  static constexpr std::uint64_t streams = Crop::template uses_random<void> ? 1 : 0;

  nvjpeg_operation(const Crop& crop, const nvjpeg_options& options)
      : crop_(crop), options_(options), account_(std::make_shared<detail::nvjpeg_account>()) {
    if (options_.threads == 0) options_.threads = detail::default_cuda_lanes();
  }

  [[nodiscard]] detail::nvjpeg_run<Format, Crop> connect(int device) const {
    const detail::nvjpeg_setup setup{.size = crop_.size(),
                                     .fill = crop_.fill(),
                                     .mode = crop_.mode(),
                                     .limits = options_.limits,
                                     .orient = options_.orient,
                                     .bad_is_black = options_.bad_is_black,
                                     .engine = options_.engine,
                                     .threads = options_.threads};
    return {device, crop_, setup, account_};
  }
  /// A copy of the numbers, also while a run works.
  [[nodiscard]] nvjpeg_counts counts() const noexcept {
    return {account_->engine, account_->device, account_->host, account_->bad};
  }
  [[nodiscard]] std::string describe() const {
    const int found = account_->engine_found;
    return detail::text({"nvjpeg(", streams == 0 ? "center_crop(" : "random_crop(", crop_.size().height, ", ",
                         crop_.size().width, ")): ",
                         found > 0                      ? "the device's JPEG engine, and "
                         : found < 0 && options_.engine ? "the device's JPEG engine if it has one, and "
                                                        : "",
                         options_.threads, " threads for the Huffman code"});
  }

 private:
  Crop crop_;
  nvjpeg_options options_;
  std::shared_ptr<detail::nvjpeg_account> account_;
};

/// Decodes JPEG files on the device with nvJPEG, the first operation of an `on_device`: what `batch` gets is
/// the encoded bytes.
///
///     const auto pixels = nvjpeg(random_crop(224), {.threads = 4});
///     auto loader = records | decode<field<"jpg", identity>> | batch(256, collate<"jpg">(ragged)) |
///                   pin_and_copy(cuda{}) | on_device<"jpg">(pixels);
///
/// In: a column of bytes, `ragged`, that are JPEG files. Out: on the device, images of bytes of shape (slots,
/// height, width, channels) in `Format`, which is `rgb8` or `gray8`. Batches need one size, so a crop is part
/// of the decoding: `center_crop(...)` or `random_crop(...)`, with the rectangle that
/// `decode<field<"jpg", jpeg>> | map<"jpg">(crop)` at this place would take, and the same random numbers.
/// Images are not resized; store them at the size that they are cropped from.
/// Who decodes: the device's JPEG engine what it can, if there is one; then the device, after the Huffman
/// code was decoded by threads of the operation's own; the host's codec what is left: files with an
/// orientation, CMYK, RGB or gray channels where others are asked for, arithmetic coding, rectangles that are
/// beyond the image, and whatever nvJPEG refuses. `counts()` says how many each.
/// Pixels: the host's codec gives those of `jpeg`, to the bit. The device's are near to those and not equal:
/// nvJPEG has another inverse DCT and another interpolation of chroma.
/// Errors: `errc::io` for the device, with the name of nvJPEG's status and what to do. A file that the host's
/// codec cannot decode either is an error of its batch, with the codec's sentence and the row;
/// `{.bad_is_black = true}` makes it black instead. `bad_samples` comes too early to see it, and damage that
/// nvJPEG does not notice becomes pixels.
/// Cost: the consumer's thread waits until the threads have decoded the Huffman code of the batch, ahead of
/// its delivery. Each thread has buffers for one image, three times; they grow to the largest, and then
/// nothing is allocated. The encoded bytes cross the bus with the batch.
/// Keeps all guarantees. Compiles with nvcc.
/// Source: nvJPEG's documentation, CUDA 13.
template <pixel_format Format = rgb8, detail::nvjpeg_crop Crop>
[[nodiscard]] nvjpeg_operation<Format, Crop> nvjpeg(const Crop& crop, const nvjpeg_options& options = {}) {
  return {crop, options};
}

}  // namespace penstock::inline v0_1
