// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nvjpeg.h>)
#error "penstock/device/image/detail/nvjpeg_lane.hpp needs nvJPEG: link penstock::nvjpeg"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/device/detail/cuda_calls.hpp>
#include <penstock/device/image/detail/nvjpeg_calls.hpp>
#include <penstock/image/pixels.hpp>

#include <nvjpeg.h>

#include <array>

namespace penstock::inline v0_1::detail {

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

}  // namespace penstock::inline v0_1::detail
