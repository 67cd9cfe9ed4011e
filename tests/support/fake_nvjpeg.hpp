// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// An nvJPEG without a GPU, over libjpeg and the streams of fake_cuda.hpp; include both in one source of a
// program.
//
// The host's half is done at once, the others when their turn on their stream comes: a buffer that is reused
// too early gives wrong pixels on every run. Calls are counted with those of CUDA, so that the n-th can be
// made to fail, and leaks show in `live()`.

#include "support/fake_cuda.hpp"
#include "support/plain_jpeg.hpp"

#include <nvjpeg.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

struct nvjpegHandle {
  nvjpegBackend_t backend;
};
struct nvjpegJpegDecoder {};
struct nvjpegBufferPinned {
  std::vector<std::uint8_t> pixels;
};
struct nvjpegBufferDevice {
  std::vector<std::uint8_t> pixels;
};
struct nvjpegJpegStream {
  penstock::bytes_view file;
  unsigned kind = 0;  // the second byte of the frame's marker
  unsigned components = 0;
};
struct nvjpegDecodeParams {
  nvjpegOutputFormat_t format = NVJPEG_OUTPUT_RGBI;
  int x = 0, y = 0, width = -1, height = -1;
};
struct nvjpegJpegState {
  nvjpegBufferPinned* pinned = nullptr;
  nvjpegBufferDevice* device = nullptr;
  std::size_t row_bytes = 0, rows = 0;
  int batch = 0;
  int working = 0;  // what the device has yet to do with it
  nvjpegOutputFormat_t format = NVJPEG_OUTPUT_RGBI;
};

namespace penstock_test {

/// The state of the fake; one test at a time uses it.
struct fake_nvjpeg {
  bool has_engine = false;       // of the device
  bool engine_stumbles = false;  // the engine says that it can, and cannot
  bool understands_progressive = true;
  nvjpegStatus_t fail_with = NVJPEG_STATUS_EXECUTION_FAILED;
  std::set<const void*> objects;
  bool misused = false;

  static fake_nvjpeg& get() {
    static fake_nvjpeg the_one;
    return the_one;
  }
  void reset() {
    const std::lock_guard guard(fake_cuda::get().lock);
    has_engine = engine_stumbles = misused = false;
    understands_progressive = true;
    fail_with = NVJPEG_STATUS_EXECUTION_FAILED;
  }
  [[nodiscard]] std::size_t live() {
    const std::lock_guard guard(fake_cuda::get().lock);
    return objects.size();
  }

  nvjpegStatus_t enter(const char* name) {
    fake_cuda& cuda = fake_cuda::get();
    const cudaError_t last = cuda.last;
    if (cuda.enter(name) == cudaSuccess) return NVJPEG_STATUS_SUCCESS;
    cuda.last = last;  // it is not the runtime's
    return fail_with;
  }
  template <class T>
  nvjpegStatus_t make(const char* name, T** made, T value = {}) {
    const std::lock_guard guard(fake_cuda::get().lock);
    if (const nvjpegStatus_t code = enter(name)) return code;
    *made = new T(std::move(value));
    objects.insert(*made);
    return NVJPEG_STATUS_SUCCESS;
  }
  template <class T>
  nvjpegStatus_t destroy(T* object) {
    const std::lock_guard guard(fake_cuda::get().lock);
    fake_cuda::get().finish_all();  // nothing in a queue may refer to it any more
    if (objects.erase(object) == 0) {
      misused = true;
      return NVJPEG_STATUS_INVALID_PARAMETER;
    }
    delete object;
    return NVJPEG_STATUS_SUCCESS;
  }

  struct part {
    std::vector<std::uint8_t> pixels;
    std::size_t row_bytes = 0, rows = 0;
  };
  /// A state must not be used again while the device still works with it.
  void check_idle(const nvjpegJpegState& state) noexcept {
    if (state.working != 0) misused = true;
  }

  /// What the host's half and the device's give together; no pixels for a damaged file.
  static part decode(penstock::bytes_view file, const nvjpegDecodeParams& params) {
    const std::size_t channels = params.format == NVJPEG_OUTPUT_Y ? 1 : 3;
    const auto whole = plain_jpeg::decode(file, channels);
    part made;
    if (!whole || whole->warnings != 0) return made;
    const auto x = static_cast<std::size_t>(params.x), y = static_cast<std::size_t>(params.y);
    const std::size_t width = params.width < 0 ? whole->size.width : static_cast<std::size_t>(params.width);
    made.rows = params.height < 0 ? whole->size.height : static_cast<std::size_t>(params.height);
    made.row_bytes = width * channels;
    if (x + width > whole->size.width || y + made.rows > whole->size.height) return made;
    for (std::size_t row = 0; row < made.rows; ++row) {
      const std::uint8_t* const from = whole->pixels.data() + ((y + row) * whole->size.width + x) * channels;
      made.pixels.insert(made.pixels.end(), from, from + made.row_bytes);
    }
    return made;
  }
  static void place(const std::vector<std::uint8_t>& pixels, std::size_t row_bytes, std::size_t rows,
                    const nvjpegImage_t& to) {
    for (std::size_t y = 0; y < rows; ++y)
      std::memcpy(to.channel[0] + y * to.pitch[0], pixels.data() + y * row_bytes, row_bytes);
  }
};

}  // namespace penstock_test

extern "C" {

nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t*, nvjpegPinnedAllocator_t*,
                              unsigned int, nvjpegHandle_t* handle) {
  auto& fake = penstock_test::fake_nvjpeg::get();
  if (backend == NVJPEG_BACKEND_HARDWARE && !fake.has_engine) return NVJPEG_STATUS_ARCH_MISMATCH;
  return fake.make("nvjpegCreateEx", handle, nvjpegHandle{backend});
}
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle) {
  return penstock_test::fake_nvjpeg::get().destroy(handle);
}
nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t, nvjpegJpegState_t* state) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegJpegStateCreate", state);
}
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state) {
  return penstock_test::fake_nvjpeg::get().destroy(state);
}
nvjpegStatus_t nvjpegBufferPinnedCreate(nvjpegHandle_t, nvjpegPinnedAllocator_t*,
                                        nvjpegBufferPinned_t* buffer) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegBufferPinnedCreate", buffer);
}
nvjpegStatus_t nvjpegBufferPinnedDestroy(nvjpegBufferPinned_t buffer) {
  return penstock_test::fake_nvjpeg::get().destroy(buffer);
}
nvjpegStatus_t nvjpegBufferDeviceCreate(nvjpegHandle_t, nvjpegDevAllocator_t*, nvjpegBufferDevice_t* buffer) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegBufferDeviceCreate", buffer);
}
nvjpegStatus_t nvjpegBufferDeviceDestroy(nvjpegBufferDevice_t buffer) {
  return penstock_test::fake_nvjpeg::get().destroy(buffer);
}
nvjpegStatus_t nvjpegStateAttachPinnedBuffer(nvjpegJpegState_t state, nvjpegBufferPinned_t buffer) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegStateAttachPinnedBuffer"))
    return code;
  state->pinned = buffer;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegStateAttachDeviceBuffer(nvjpegJpegState_t state, nvjpegBufferDevice_t buffer) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegStateAttachDeviceBuffer"))
    return code;
  state->device = buffer;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t, nvjpegJpegStream_t* jpeg) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegJpegStreamCreate", jpeg);
}
nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t jpeg) {
  return penstock_test::fake_nvjpeg::get().destroy(jpeg);
}
nvjpegStatus_t nvjpegJpegStreamParse(nvjpegHandle_t, const unsigned char* data, size_t length, int, int,
                                     nvjpegJpegStream_t jpeg) {
  {
    const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
    if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegJpegStreamParse"))
      return code;
  }
  *jpeg = {{reinterpret_cast<const std::byte*>(data), length}, 0, 0};
  for (std::size_t i = 2; i + 10 < length;) {
    const unsigned marker = data[i + 1];
    if (data[i] != 0xff) return NVJPEG_STATUS_BAD_JPEG;
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      jpeg->kind = marker;
      jpeg->components = data[i + 9];
      return marker > 0xc2 ? NVJPEG_STATUS_JPEG_NOT_SUPPORTED : NVJPEG_STATUS_SUCCESS;
    }
    i += 2 + (std::size_t{data[i + 2]} << 8 | data[i + 3]);
  }
  return NVJPEG_STATUS_BAD_JPEG;
}
nvjpegStatus_t nvjpegDecodeParamsCreate(nvjpegHandle_t, nvjpegDecodeParams_t* params) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegDecodeParamsCreate", params);
}
nvjpegStatus_t nvjpegDecodeParamsDestroy(nvjpegDecodeParams_t params) {
  return penstock_test::fake_nvjpeg::get().destroy(params);
}
nvjpegStatus_t nvjpegDecodeParamsSetOutputFormat(nvjpegDecodeParams_t params, nvjpegOutputFormat_t format) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code =
          penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeParamsSetOutputFormat"))
    return code;
  params->format = format;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeParamsSetROI(nvjpegDecodeParams_t params, int x, int y, int width, int height) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeParamsSetROI"))
    return code;
  *params = {params->format, x, y, width, height};
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecoderCreate(nvjpegHandle_t, nvjpegBackend_t, nvjpegJpegDecoder_t* decoder) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegDecoderCreate", decoder);
}
nvjpegStatus_t nvjpegDecoderDestroy(nvjpegJpegDecoder_t decoder) {
  return penstock_test::fake_nvjpeg::get().destroy(decoder);
}
nvjpegStatus_t nvjpegDecoderJpegSupported(nvjpegJpegDecoder_t, nvjpegJpegStream_t jpeg, nvjpegDecodeParams_t,
                                          int* is_supported) {
  auto& fake = penstock_test::fake_nvjpeg::get();
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = fake.enter("nvjpegDecoderJpegSupported")) return code;
  *is_supported = jpeg->components == 4 || (jpeg->kind == 0xc2 && !fake.understands_progressive);  // 0: yes
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecoderStateCreate(nvjpegHandle_t, nvjpegJpegDecoder_t, nvjpegJpegState_t* state) {
  return penstock_test::fake_nvjpeg::get().make("nvjpegDecoderStateCreate", state);
}
nvjpegStatus_t nvjpegDecodeJpegHost(nvjpegHandle_t, nvjpegJpegDecoder_t, nvjpegJpegState_t state,
                                    nvjpegDecodeParams_t params, nvjpegJpegStream_t jpeg) {
  {
    const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
    if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeJpegHost"))
      return code;
  }
  auto made = penstock_test::fake_nvjpeg::decode(jpeg->file, *params);
  if (made.pixels.empty()) return NVJPEG_STATUS_BAD_JPEG;
  state->pinned->pixels = std::move(made.pixels);
  state->row_bytes = made.row_bytes;
  state->rows = made.rows;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeJpegTransferToDevice(nvjpegHandle_t, nvjpegJpegDecoder_t, nvjpegJpegState_t state,
                                                nvjpegJpegStream_t, cudaStream_t stream) {
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeJpegTransferToDevice"))
    return code;
  penstock_test::fake_nvjpeg::get().check_idle(*state);
  ++state->working;
  cuda.launch(stream, [from = state->pinned, to = state->device, state] {
    to->pixels = from->pixels;
    --state->working;
  });
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeJpegDevice(nvjpegHandle_t, nvjpegJpegDecoder_t, nvjpegJpegState_t state,
                                      nvjpegImage_t* destination, cudaStream_t stream) {
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeJpegDevice"))
    return code;
  ++state->working;
  cuda.launch(stream, [from = state->device, row_bytes = state->row_bytes, rows = state->rows,
                       to = *destination, state] {
    penstock_test::fake_nvjpeg::place(from->pixels, row_bytes, rows, to);
    --state->working;
  });
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t, nvjpegJpegState_t state, int count, int,
                                             nvjpegOutputFormat_t format) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeBatchedInitialize"))
    return code;
  penstock_test::fake_nvjpeg::get().check_idle(*state);
  state->batch = count;
  state->format = format;
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeBatchedSupportedEx(nvjpegHandle_t, nvjpegJpegStream_t jpeg, nvjpegDecodeParams_t,
                                              int* is_supported) {
  const std::lock_guard guard(penstock_test::fake_cuda::get().lock);
  if (const nvjpegStatus_t code = penstock_test::fake_nvjpeg::get().enter("nvjpegDecodeBatchedSupportedEx"))
    return code;
  *is_supported = jpeg->kind != 0xc0 || jpeg->components != 3;  // 0: yes
  return NVJPEG_STATUS_SUCCESS;
}
nvjpegStatus_t nvjpegDecodeBatchedEx(nvjpegHandle_t, nvjpegJpegState_t state,
                                     const unsigned char* const* data, const size_t* lengths,
                                     nvjpegImage_t* destinations, nvjpegDecodeParams_t* params,
                                     cudaStream_t stream) {
  auto& fake = penstock_test::fake_nvjpeg::get();
  auto& cuda = penstock_test::fake_cuda::get();
  const std::lock_guard guard(cuda.lock);
  if (const nvjpegStatus_t code = fake.enter("nvjpegDecodeBatchedEx")) return code;
  if (fake.engine_stumbles) return NVJPEG_STATUS_JPEG_NOT_SUPPORTED;
  fake.check_idle(*state);
  for (int i = 0; i < state->batch; ++i) {
    auto made = penstock_test::fake_nvjpeg::decode({reinterpret_cast<const std::byte*>(data[i]), lengths[i]},
                                                   *params[i]);
    if (made.pixels.empty()) return NVJPEG_STATUS_BAD_JPEG;
    ++state->working;
    cuda.launch(stream, [made = std::move(made), to = destinations[i], state] {
      penstock_test::fake_nvjpeg::place(made.pixels, made.row_bytes, made.rows, to);
      --state->working;
    });
  }
  return NVJPEG_STATUS_SUCCESS;
}

}  // extern "C"
