// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nvjpeg.h>)
#error "penstock/device/image/detail/nvjpeg_decoder.hpp needs nvJPEG: link penstock::nvjpeg"
#endif

#include <penstock/codec/jpeg.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/device/detail/cuda_calls.hpp>
#include <penstock/device/detail/cuda_lanes.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/pixels.hpp>

#include <nvjpeg.h>

#include <array>
#include <atomic>
#include <memory>
#include <type_traits>

namespace penstock::inline v0_1::detail {

[[nodiscard]] inline std::string_view nvjpeg_status_name(nvjpegStatus_t code) noexcept {
  constexpr std::string_view names[] = {"NVJPEG_STATUS_SUCCESS",
                                        "NVJPEG_STATUS_NOT_INITIALIZED",
                                        "NVJPEG_STATUS_INVALID_PARAMETER",
                                        "NVJPEG_STATUS_BAD_JPEG",
                                        "NVJPEG_STATUS_JPEG_NOT_SUPPORTED",
                                        "NVJPEG_STATUS_ALLOCATOR_FAILURE",
                                        "NVJPEG_STATUS_EXECUTION_FAILED",
                                        "NVJPEG_STATUS_ARCH_MISMATCH",
                                        "NVJPEG_STATUS_INTERNAL_ERROR",
                                        "NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED",
                                        "NVJPEG_STATUS_INCOMPLETE_BITSTREAM"};
  const auto i = static_cast<std::size_t>(code);
  return i < std::size(names) ? names[i] : "a status that this version does not know";
}

/// The remedy for an error, phrased as the end of a sentence.
[[nodiscard]] inline std::string_view nvjpeg_cure(nvjpegStatus_t code) noexcept {
  switch (code) {
    case NVJPEG_STATUS_ALLOCATOR_FAILURE:
      return "lower prefetch(n) after batch or the threads of nvjpeg, or make batches smaller";
    case NVJPEG_STATUS_ARCH_MISMATCH:
      return "the library was built for other devices; install the nvJPEG of this CUDA version";
    case NVJPEG_STATUS_NOT_INITIALIZED:
      return "see whether nvidia-smi lists a device, and whether its driver is as new as nvJPEG";
    default:
      return "after a kernel fails, every later call reports it; compute-sanitizer finds the kernel";
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void nvjpeg_fail(nvjpegStatus_t code, std::string_view what) {
  throw error(errc::io, {what, " failed with ", nvjpeg_status_name(code), "; ", nvjpeg_cure(code)});
}
inline void nvjpeg_check(nvjpegStatus_t code, std::string_view what) {
  if (code != NVJPEG_STATUS_SUCCESS) nvjpeg_fail(code, what);
}

/// Whether a status speaks of the file and not of the device, so that the host's codec may do better.
[[nodiscard]] constexpr bool is_about_jpeg(nvjpegStatus_t code) noexcept {
  return code == NVJPEG_STATUS_BAD_JPEG || code == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
         code == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED || code == NVJPEG_STATUS_INCOMPLETE_BITSTREAM ||
         code == NVJPEG_STATUS_INVALID_PARAMETER;  // an odd file
}

struct nvjpeg_destroy {
  void operator()(nvjpegHandle* it) const noexcept { static_cast<void>(nvjpegDestroy(it)); }
  void operator()(nvjpegJpegState* it) const noexcept { static_cast<void>(nvjpegJpegStateDestroy(it)); }
  void operator()(nvjpegJpegStream* it) const noexcept { static_cast<void>(nvjpegJpegStreamDestroy(it)); }
  void operator()(nvjpegJpegDecoder* it) const noexcept { static_cast<void>(nvjpegDecoderDestroy(it)); }
  void operator()(nvjpegDecodeParams* it) const noexcept { static_cast<void>(nvjpegDecodeParamsDestroy(it)); }
  void operator()(nvjpegBufferPinned* it) const noexcept { static_cast<void>(nvjpegBufferPinnedDestroy(it)); }
  void operator()(nvjpegBufferDevice* it) const noexcept { static_cast<void>(nvjpegBufferDeviceDestroy(it)); }
};
/// Owns what a handle of nvJPEG, such as `nvjpegJpegState_t`, names.
template <class Handle>
using nvjpeg_owned = std::unique_ptr<std::remove_pointer_t<Handle>, nvjpeg_destroy>;

/// Calls one of the library's functions that make something: `make(arguments..., &made)`.
template <class Handle, class Make, class... Arguments>
[[nodiscard]] nvjpeg_owned<Handle> nvjpeg_made(Make make, std::string_view what, Arguments... arguments) {
  Handle made = nullptr;
  nvjpeg_check(make(arguments..., &made), what);
  return nvjpeg_owned<Handle>(made);
}

[[nodiscard]] inline nvjpeg_owned<nvjpegDecodeParams_t> make_nvjpeg_params(nvjpegHandle_t handle,
                                                                           nvjpegOutputFormat_t format) {
  auto params =
      nvjpeg_made<nvjpegDecodeParams_t>(nvjpegDecodeParamsCreate, "making parameters of nvJPEG", handle);
  nvjpeg_check(nvjpegDecodeParamsSetOutputFormat(params.get(), format), "choosing nvJPEG's format of pixels");
  return params;
}

/// What one thread decodes with: the host's half of nvJPEG's work, the Huffman code, goes to one of two
/// buffers, while the device works on what was in the other. The device's half of a file begins once that of
/// the file before has ended, as in NVIDIA's sample of the decoupled API: both have one state.
class nvjpeg_lane {
 public:
  nvjpeg_lane(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder, nvjpegOutputFormat_t format)
      : handle_(handle),
        decoder_(decoder),
        parsed_(nvjpeg_made<nvjpegJpegStream_t>(nvjpegJpegStreamCreate, "making a parser of nvJPEG", handle)),
        params_(make_nvjpeg_params(handle, format)),
        device_(nvjpeg_made<nvjpegBufferDevice_t>(nvjpegBufferDeviceCreate, "making a buffer of nvJPEG",
                                                  handle, nullptr)) {
    for (auto& half : halves_)
      half = nvjpeg_made<nvjpegBufferPinned_t>(nvjpegBufferPinnedCreate, "making a buffer of nvJPEG", handle,
                                               nullptr);
    // The last member, because it refers to the buffers.
    state_ = nvjpeg_made<nvjpegJpegState_t>(nvjpegDecoderStateCreate, "making a decoder of nvJPEG", handle,
                                            decoder);
    nvjpeg_check(nvjpegStateAttachDeviceBuffer(state_.get(), device_.get()), "giving nvJPEG a buffer");
  }

  /// Reads the markers of a file; false if the library does not understand them.
  [[nodiscard]] bool parse(bytes_view file) {
    const nvjpegStatus_t code = nvjpegJpegStreamParse(
        handle_, reinterpret_cast<const unsigned char*>(file.data()), file.size(), 0, 0, parsed_.get());
    if (is_about_jpeg(code)) return false;
    nvjpeg_check(code, "reading the markers of a jpeg file");
    return true;
  }
  [[nodiscard]] nvjpegJpegStream_t parsed() const noexcept { return parsed_.get(); }

  /// Decodes a part of the file that was parsed last to `to`, with rows of `pitch` bytes; false if the
  /// library cannot, and then `to` will not be written to.
  [[nodiscard]] bool decode(const image_part& part, std::byte* to, std::size_t pitch, cudaStream_t stream) {
    set_part(params_.get(), part);
    int refused = 0;
    nvjpegStatus_t code = nvjpegDecoderJpegSupported(decoder_, parsed_.get(), params_.get(), &refused);
    if (is_about_jpeg(code) || (code == NVJPEG_STATUS_SUCCESS && refused != 0)) return false;
    nvjpeg_check(code, "asking nvJPEG about a jpeg file");

    next_ = 1 - next_;
    nvjpeg_check(nvjpegStateAttachPinnedBuffer(state_.get(), halves_[next_].get()), "giving nvJPEG a buffer");
    code = nvjpegDecodeJpegHost(handle_, decoder_, state_.get(), params_.get(), parsed_.get());
    if (is_about_jpeg(code)) return false;
    nvjpeg_check(code, "decoding the Huffman code of a jpeg file");
    cuda_check(cudaEventSynchronize(decoded_.get()), "waiting for the image before");
    nvjpeg_check(nvjpegDecodeJpegTransferToDevice(handle_, decoder_, state_.get(), parsed_.get(), stream),
                 "copying a jpeg image's coefficients to the device");
    nvjpegImage_t image{};
    image.channel[0] = reinterpret_cast<unsigned char*>(to);
    image.pitch[0] = pitch;
    nvjpeg_check(nvjpegDecodeJpegDevice(handle_, decoder_, state_.get(), &image, stream),
                 "decoding a jpeg image on the device");
    cuda_check(cudaEventRecord(decoded_.get(), stream), "recording an event after an image");
    return true;
  }

  static void set_part(nvjpegDecodeParams_t params, const image_part& part) {
    nvjpeg_check(nvjpegDecodeParamsSetROI(params, static_cast<int>(part.x), static_cast<int>(part.y),
                                          static_cast<int>(part.width), static_cast<int>(part.height)),
                 "choosing a part of a jpeg image");
  }

 private:
  nvjpegHandle_t handle_;
  nvjpegJpegDecoder_t decoder_;
  nvjpeg_owned<nvjpegJpegStream_t> parsed_;
  nvjpeg_owned<nvjpegDecodeParams_t> params_;
  nvjpeg_owned<nvjpegBufferDevice_t> device_;
  std::array<nvjpeg_owned<nvjpegBufferPinned_t>, 2> halves_;
  cuda_event decoded_ = make_cuda_event();
  nvjpeg_owned<nvjpegJpegState_t> state_;
  std::size_t next_ = 1;
};

/// Where images were decoded; counted by any thread.
struct nvjpeg_tally {
  std::atomic<std::uint64_t> device{0}, engine{0}, host{0}, bad{0};
};

/// What a decoder is made for.
struct nvjpeg_setup {
  image_size size{};    ///< of what is decoded
  pixel_fill fill = 0;  ///< of pixels beyond an image
  padding_mode mode = padding_mode::constant;
  image_limits limits{};
  bool orient = true;
  bool bad_is_black = false;
  bool engine = true;  ///< asks for the device's JPEG engine
  unsigned threads = 1;
};

/// Decodes parts of JPEG files to equal slots in device memory.
///
/// Every file's header is read with libjpeg first, so that what is no JPEG file, and which rectangle a sample
/// becomes, is decided as on the host. Who decodes is in the documentation of `nvjpeg`.
template <pixel_format Format>
class nvjpeg_decoder : unmovable {
  static_assert(std::is_same_v<Format, gray8> || std::is_same_v<Format, rgb8>,
                "penstock: nvjpeg decodes to gray8 or rgb8");
  static constexpr nvjpegOutputFormat_t output =
      std::is_same_v<Format, gray8> ? NVJPEG_OUTPUT_Y : NVJPEG_OUTPUT_RGBI;

 public:
  nvjpeg_decoder(int device, const nvjpeg_setup& setup, nvjpeg_tally& tally)
      : setup_(setup),
        tally_(tally),
        slot_bytes_(std::size_t{setup.size.width} * setup.size.height * Format::channels) {
    const cuda_on_device here(device);
    here.check();
    make_handle();
    decoder_ = nvjpeg_made<nvjpegJpegDecoder_t>(nvjpegDecoderCreate, "making a decoder of nvJPEG",
                                                handle_.get(), NVJPEG_BACKEND_HYBRID);
    if (engine_)
      state_ =
          nvjpeg_made<nvjpegJpegState_t>(nvjpegJpegStateCreate, "making a decoder of nvJPEG", handle_.get());
    for (unsigned i = 0; i < std::max(1u, setup.threads); ++i)
      rooms_.push_back(std::make_unique<room>(handle_.get(), decoder_.get(), output));
    lanes_ = std::make_unique<cuda_lanes>(device, setup.threads);
  }
  ~nvjpeg_decoder() {
    const cuda_on_device here(lanes_->device());
    lanes_.reset();
    params_.clear();
    rooms_.clear();
    state_.reset();
    decoder_.reset();
    handle_.reset();
  }

  /// Whether the device has a JPEG engine, and it is used.
  [[nodiscard]] bool engine() const noexcept { return engine_; }
  [[nodiscard]] std::size_t threads() const noexcept { return lanes_->size(); }

  /// Decodes a batch; `stream` comes after it. `Batch` has, and any thread may call,
  ///   count            slots
  ///   output           the first slot, on the device
  ///   holds(i)         whether there is a sample; a slot without one becomes black
  ///   file(i)          its bytes
  ///   corner(i, size)  where its rectangle begins in an image of this size: {x, y}, below 0 where it is padded
  /// If it throws, nothing of it is in progress, except for what is on `stream`.
  template <class Batch>
  void decode(const Batch& batch, cudaStream_t stream) {
    if (engine_) {
      for_engine_.assign(batch.count, 0);
      while (params_.size() < batch.count) params_.push_back(make_nvjpeg_params(handle_.get(), output));
    }
    lanes_->run(batch.count, stream,
                [&](cuda_lane& lane, std::size_t i) { decode_one(batch, lane, i, true); });
    if (engine_) decode_on_engine(batch, stream);
  }

 private:
  /// What a lane has for decoding.
  struct room {
    room(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder, nvjpegOutputFormat_t format)
        : device(handle, decoder, format) {}
    nvjpeg_lane device;
    jpeg_scratch host;
    image_scratch padding;
  };

  void make_handle() {
    constexpr unsigned flags = static_cast<unsigned>(NVJPEG_FLAGS_BITSTREAM_STRICT);
    nvjpegHandle_t made = nullptr;
    if (setup_.engine) {
      const nvjpegStatus_t code = nvjpegCreateEx(NVJPEG_BACKEND_HARDWARE, nullptr, nullptr, flags, &made);
      engine_ = code == NVJPEG_STATUS_SUCCESS;
      // Most devices have none, and say so in one of these ways.
      if (!engine_ && code != NVJPEG_STATUS_ARCH_MISMATCH && code != NVJPEG_STATUS_NOT_INITIALIZED &&
          code != NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED && code != NVJPEG_STATUS_INVALID_PARAMETER)
        nvjpeg_fail(code, "opening the device's JPEG engine");
      static_cast<void>(cudaGetLastError());
    }
    if (!engine_)
      nvjpeg_check(nvjpegCreateEx(NVJPEG_BACKEND_DEFAULT, nullptr, nullptr, flags, &made), "opening nvJPEG");
    handle_.reset(made);
  }

  template <class Batch>
  void decode_one(const Batch& batch, cuda_lane& lane, std::size_t i, bool may_leave) {
    std::byte* const to = batch.output + i * slot_bytes_;
    if (!batch.holds(i)) {
      blacken(lane, to);
      return;
    }
    try {
      decode_file(batch, lane, i, to, may_leave);
    } catch (const error& e) {
      if (!depends_on_bytes(e.code())) throw;
      tally_.bad.fetch_add(1, std::memory_order_relaxed);
      if (!setup_.bad_is_black)
        throw error(e.code(), {e.message(), ", in row ", i,
                               " of its batch; nvjpeg_options{.bad_is_black = "
                               "true} uses black pixels instead"});
      blacken(lane, to);
    }
  }

  template <class Batch>
  void decode_file(const Batch& batch, cuda_lane& lane, std::size_t i, std::byte* to, bool may_leave) {
    room& own = *rooms_[lane.number];
    const bytes_view file = batch.file(i);
    const auto image =
        jpeg_as<Format>{.limits = setup_.limits, .orient = setup_.orient}.decode(file, own.host);
    const auto [x, y] = batch.corner(i, image.size());
    if (is_plain(own) && lies_within(x, y, image.size()) && own.device.parse(file)) {
      const image_part part{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), setup_.size.width,
                            setup_.size.height};
      if (engine_ && may_leave && engine_takes(own, i, part)) {
        for_engine_[i] = 1;
        return;
      }
      if (own.device.decode(part, to, std::size_t{setup_.size.width} * Format::channels, lane.stream.get())) {
        tally_.device.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
    auto* const pixels = reinterpret_cast<std::uint8_t*>(lane.staging.room(slot_bytes_));
    padded(image, x, y, setup_.size, setup_.fill, setup_.mode, own.padding)
        .write_to(destination<std::uint8_t>(
            pixels, extents(setup_.size.height, setup_.size.width, Format::channels)));
    lane.staging.send(to, slot_bytes_, lane.stream.get());
    tally_.host.fetch_add(1, std::memory_order_relaxed);
  }

  /// Whether nvJPEG means by the file's pixels what the host's codec means by them.
  [[nodiscard]] bool is_plain(room& own) const {
    const jpeg_reader& reader = own.host.reader();
    if (setup_.orient && reader.turned() != orientation::upright) return false;
    return reader.colours() == JCS_YCbCr || (Format::channels == 1 && reader.colours() == JCS_GRAYSCALE);
  }
  [[nodiscard]] bool lies_within(std::int64_t x, std::int64_t y, const image_size& image) const noexcept {
    return x >= 0 && y >= 0 && x + std::int64_t{setup_.size.width} <= std::int64_t{image.width} &&
           y + std::int64_t{setup_.size.height} <= std::int64_t{image.height};
  }
  [[nodiscard]] bool engine_takes(room& own, std::size_t i, const image_part& part) {
    nvjpeg_lane::set_part(params_[i].get(), part);
    int refused = 0;
    const nvjpegStatus_t code =
        nvjpegDecodeBatchedSupportedEx(handle_.get(), own.device.parsed(), params_[i].get(), &refused);
    if (is_about_jpeg(code)) return false;
    nvjpeg_check(code, "asking nvJPEG about a jpeg file");
    return refused == 0;
  }

  void blacken(cuda_lane& lane, std::byte* to) {
    std::memset(lane.staging.room(slot_bytes_), 0, slot_bytes_);
    lane.staging.send(to, slot_bytes_, lane.stream.get());
  }

  /// If the engine refuses the files after all, nobody knows which of them: the others' way is taken for all.
  template <class Batch>
  void decode_on_engine(const Batch& batch, cudaStream_t stream) {
    which_.clear();
    files_.clear();
    lengths_.clear();
    images_.clear();
    parts_.clear();
    for (std::size_t i = 0; i < batch.count; ++i) {
      if (for_engine_[i] == 0) continue;
      which_.push_back(i);
      files_.push_back(reinterpret_cast<const unsigned char*>(batch.file(i).data()));
      lengths_.push_back(batch.file(i).size());
      images_.emplace_back();
      images_.back().channel[0] = reinterpret_cast<unsigned char*>(batch.output + i * slot_bytes_);
      images_.back().pitch[0] = std::size_t{setup_.size.width} * Format::channels;
      parts_.push_back(params_[i].get());
    }
    if (which_.empty()) return;
    // The library does not say that a state may be used again while the engine still works with it.
    if (engine_done_ == nullptr) engine_done_ = make_cuda_event();
    cuda_check(cudaEventSynchronize(engine_done_.get()), "waiting for the device's JPEG engine");
    if (initialised_for_ != which_.size()) {
      initialised_for_ = 0;
      nvjpeg_check(nvjpegDecodeBatchedInitialize(handle_.get(), state_.get(), static_cast<int>(which_.size()),
                                                 1, output),
                   "preparing the device's JPEG engine");
      initialised_for_ = which_.size();
    }
    const nvjpegStatus_t code = nvjpegDecodeBatchedEx(handle_.get(), state_.get(), files_.data(),
                                                      lengths_.data(), images_.data(), parts_.data(), stream);
    if (code == NVJPEG_STATUS_SUCCESS) {
      cuda_check(cudaEventRecord(engine_done_.get(), stream), "recording an event after a batch");
      tally_.engine.fetch_add(which_.size(), std::memory_order_relaxed);
      return;
    }
    initialised_for_ = 0;
    if (!is_about_jpeg(code)) nvjpeg_fail(code, "decoding on the device's JPEG engine");
    lanes_->run(which_.size(), stream,
                [&](cuda_lane& lane, std::size_t i) { decode_one(batch, lane, which_[i], false); });
  }

  nvjpeg_setup setup_;
  nvjpeg_tally& tally_;
  std::size_t slot_bytes_;
  bool engine_ = false;
  nvjpeg_owned<nvjpegHandle_t> handle_;
  nvjpeg_owned<nvjpegJpegDecoder_t> decoder_;
  nvjpeg_owned<nvjpegJpegState_t> state_;
  cuda_event engine_done_;
  std::vector<std::unique_ptr<room>> rooms_;
  std::vector<nvjpeg_owned<nvjpegDecodeParams_t>> params_;  // by slot, for the engine
  std::vector<unsigned char> for_engine_;                   // by slot
  std::size_t initialised_for_ = 0;
  std::vector<std::size_t> which_;
  std::vector<const unsigned char*> files_;
  std::vector<std::size_t> lengths_;
  std::vector<nvjpegImage_t> images_;
  std::vector<nvjpegDecodeParams_t> parts_;
  std::unique_ptr<cuda_lanes> lanes_;  // last: its threads use the rest
};

}  // namespace penstock::inline v0_1::detail
