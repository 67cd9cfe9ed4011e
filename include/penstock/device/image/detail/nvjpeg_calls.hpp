// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nvjpeg.h>)
#error "penstock/device/image/detail/nvjpeg_calls.hpp needs nvJPEG: link penstock::nvjpeg"
#endif

#include <penstock/core/error.hpp>

#include <nvjpeg.h>

#include <memory>
#include <type_traits>

/// The calls of nvJPEG: its errors as sentences, and owners of what it makes.
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

}  // namespace penstock::inline v0_1::detail
