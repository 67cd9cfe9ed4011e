// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nvjpeg.h>)
#error "penstock/device/image/detail/nvjpeg_decoder.hpp needs nvJPEG: link penstock::nvjpeg"
#endif

#include <penstock/codec/jpeg.hpp>
#include <penstock/device/detail/cuda_lanes.hpp>
#include <penstock/device/image/detail/nvjpeg_lane.hpp>
#include <penstock/image/padded.hpp>

#include <nvjpeg.h>

#include <atomic>

namespace penstock::inline v0_1::detail {

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
/// becomes, is decided as on the host. Then the device's JPEG engine decodes what it can, all at once; of the
/// rest nvJPEG decodes what it can, the Huffman code on threads of the decoder's and everything else on the
/// device; and the host's codec what is left, in the same threads, to pinned memory.
template <pixel_format Format>
class nvjpeg_decoder {
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
  nvjpeg_decoder(const nvjpeg_decoder&) = delete;
  nvjpeg_decoder& operator=(const nvjpeg_decoder&) = delete;
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
    work<Batch> all{this, &batch, nullptr};
    run(all, batch.count, stream);
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
  template <class Batch>
  struct work {
    nvjpeg_decoder* self;
    const Batch* batch;
    const std::vector<std::size_t>* which;  // null: all, of which some are left to the engine
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
  void run(work<Batch>& what, std::size_t count, cudaStream_t stream) {
    cuda_lane_job job;
    job.self = &what;
    job.count = count;
    job.sample = [](void* given, cuda_lane& lane, std::size_t i) {
      const auto& of = *static_cast<work<Batch>*>(given);
      of.self->decode_one(*of.batch, lane, of.which == nullptr ? i : (*of.which)[i], of.which == nullptr);
    };
    lanes_->start(job, stream);
    lanes_->finish(job, stream);
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
    work<Batch> rest{this, &batch, &which_};
    run(rest, which_.size(), stream);
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
