/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The part of nvJPEG that penstock uses, for builds without the library: its declarations, with the library's
   values. What the functions do is in ../fake_nvjpeg.hpp. */

#include <cuda_runtime_api.h>
#include <stddef.h>

#define NVJPEG_MAX_COMPONENT 4
#define NVJPEG_FLAGS_DEFAULT 0
#define NVJPEG_FLAGS_BITSTREAM_STRICT 1 << 2
#define NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION 1 << 5

typedef enum {
  NVJPEG_STATUS_SUCCESS = 0,
  NVJPEG_STATUS_NOT_INITIALIZED = 1,
  NVJPEG_STATUS_INVALID_PARAMETER = 2,
  NVJPEG_STATUS_BAD_JPEG = 3,
  NVJPEG_STATUS_JPEG_NOT_SUPPORTED = 4,
  NVJPEG_STATUS_ALLOCATOR_FAILURE = 5,
  NVJPEG_STATUS_EXECUTION_FAILED = 6,
  NVJPEG_STATUS_ARCH_MISMATCH = 7,
  NVJPEG_STATUS_INTERNAL_ERROR = 8,
  NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED = 9,
  NVJPEG_STATUS_INCOMPLETE_BITSTREAM = 10
} nvjpegStatus_t;
typedef enum { NVJPEG_OUTPUT_Y = 2, NVJPEG_OUTPUT_RGBI = 5 } nvjpegOutputFormat_t;
typedef enum {
  NVJPEG_BACKEND_DEFAULT = 0,
  NVJPEG_BACKEND_HYBRID = 1,
  NVJPEG_BACKEND_HARDWARE = 3
} nvjpegBackend_t;
typedef struct {
  unsigned char* channel[NVJPEG_MAX_COMPONENT];
  size_t pitch[NVJPEG_MAX_COMPONENT];
} nvjpegImage_t;
typedef struct nvjpegDevAllocator nvjpegDevAllocator_t;
typedef struct nvjpegPinnedAllocator nvjpegPinnedAllocator_t;
typedef struct nvjpegHandle* nvjpegHandle_t;
typedef struct nvjpegJpegState* nvjpegJpegState_t;
typedef struct nvjpegBufferPinned* nvjpegBufferPinned_t;
typedef struct nvjpegBufferDevice* nvjpegBufferDevice_t;
typedef struct nvjpegJpegStream* nvjpegJpegStream_t;
typedef struct nvjpegDecodeParams* nvjpegDecodeParams_t;
typedef struct nvjpegJpegDecoder* nvjpegJpegDecoder_t;

extern "C" {
nvjpegStatus_t nvjpegCreateEx(nvjpegBackend_t backend, nvjpegDevAllocator_t* device,
                              nvjpegPinnedAllocator_t* pinned, unsigned int flags, nvjpegHandle_t* handle);
nvjpegStatus_t nvjpegDestroy(nvjpegHandle_t handle);
nvjpegStatus_t nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t* state);
nvjpegStatus_t nvjpegJpegStateDestroy(nvjpegJpegState_t state);
nvjpegStatus_t nvjpegBufferPinnedCreate(nvjpegHandle_t handle, nvjpegPinnedAllocator_t* pinned,
                                        nvjpegBufferPinned_t* buffer);
nvjpegStatus_t nvjpegBufferPinnedDestroy(nvjpegBufferPinned_t buffer);
nvjpegStatus_t nvjpegBufferDeviceCreate(nvjpegHandle_t handle, nvjpegDevAllocator_t* device,
                                        nvjpegBufferDevice_t* buffer);
nvjpegStatus_t nvjpegBufferDeviceDestroy(nvjpegBufferDevice_t buffer);
nvjpegStatus_t nvjpegStateAttachPinnedBuffer(nvjpegJpegState_t state, nvjpegBufferPinned_t buffer);
nvjpegStatus_t nvjpegStateAttachDeviceBuffer(nvjpegJpegState_t state, nvjpegBufferDevice_t buffer);
nvjpegStatus_t nvjpegJpegStreamCreate(nvjpegHandle_t handle, nvjpegJpegStream_t* jpeg);
nvjpegStatus_t nvjpegJpegStreamDestroy(nvjpegJpegStream_t jpeg);
nvjpegStatus_t nvjpegJpegStreamParse(nvjpegHandle_t handle, const unsigned char* data, size_t length,
                                     int save_metadata, int save_stream, nvjpegJpegStream_t jpeg);
nvjpegStatus_t nvjpegDecodeParamsCreate(nvjpegHandle_t handle, nvjpegDecodeParams_t* params);
nvjpegStatus_t nvjpegDecodeParamsDestroy(nvjpegDecodeParams_t params);
nvjpegStatus_t nvjpegDecodeParamsSetOutputFormat(nvjpegDecodeParams_t params, nvjpegOutputFormat_t format);
nvjpegStatus_t nvjpegDecodeParamsSetROI(nvjpegDecodeParams_t params, int x, int y, int width, int height);
nvjpegStatus_t nvjpegDecoderCreate(nvjpegHandle_t handle, nvjpegBackend_t backend,
                                   nvjpegJpegDecoder_t* decoder);
nvjpegStatus_t nvjpegDecoderDestroy(nvjpegJpegDecoder_t decoder);
nvjpegStatus_t nvjpegDecoderJpegSupported(nvjpegJpegDecoder_t decoder, nvjpegJpegStream_t jpeg,
                                          nvjpegDecodeParams_t params, int* is_supported);
nvjpegStatus_t nvjpegDecoderStateCreate(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder,
                                        nvjpegJpegState_t* state);
nvjpegStatus_t nvjpegDecodeJpegHost(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder,
                                    nvjpegJpegState_t state, nvjpegDecodeParams_t params,
                                    nvjpegJpegStream_t jpeg);
nvjpegStatus_t nvjpegDecodeJpegTransferToDevice(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder,
                                                nvjpegJpegState_t state, nvjpegJpegStream_t jpeg,
                                                cudaStream_t stream);
nvjpegStatus_t nvjpegDecodeJpegDevice(nvjpegHandle_t handle, nvjpegJpegDecoder_t decoder,
                                      nvjpegJpegState_t state, nvjpegImage_t* destination,
                                      cudaStream_t stream);
nvjpegStatus_t nvjpegDecodeBatchedInitialize(nvjpegHandle_t handle, nvjpegJpegState_t state, int count,
                                             int threads, nvjpegOutputFormat_t format);
nvjpegStatus_t nvjpegDecodeBatchedSupportedEx(nvjpegHandle_t handle, nvjpegJpegStream_t jpeg,
                                              nvjpegDecodeParams_t params, int* is_supported);
nvjpegStatus_t nvjpegDecodeBatchedEx(nvjpegHandle_t handle, nvjpegJpegState_t state,
                                     const unsigned char* const* data, const size_t* lengths,
                                     nvjpegImage_t* destinations, nvjpegDecodeParams_t* params,
                                     cudaStream_t stream);
}
