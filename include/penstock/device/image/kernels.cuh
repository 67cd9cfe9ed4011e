// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cuda_runtime.h>)
#error "penstock/device/image/kernels.cuh needs the CUDA toolkit: link penstock::cuda"
#endif

#include <penstock/device/image/image_work.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/// The kernels of `on_device` for images: the definition of `launch_image_work`. Include it in one .cu file
/// of a program that does not link penstock::cuda_kernels.
namespace penstock::inline v0_1 {

/// Memory of a device, and its rounding, which is that of the host.
struct cuda_access {
  static constexpr bool packs = true;

  template <image_number Number>
  [[nodiscard]] static __device__ std::uint32_t bits(float value) {
    if constexpr (Number == image_number::float32)
      return __float_as_uint(value);
    else if constexpr (Number == image_number::float16)
      return __half_as_ushort(__float2half_rn(value));
    else
      return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
  [[nodiscard]] static __device__ std::uint32_t load_byte(const std::uint8_t* at) { return __ldg(at); }
  [[nodiscard]] static __device__ std::uint32_t load(const std::uint8_t* at) {
    return __ldg(reinterpret_cast<const unsigned*>(at));
  }
  static __device__ void load_two(const std::uint8_t* at, std::uint32_t* words) {
    const uint2 two = __ldg(reinterpret_cast<const uint2*>(at));
    words[0] = two.x;
    words[1] = two.y;
  }
  template <class T>
  static __device__ void store(T* to, T value) {
    *to = value;
  }
  // Intrinsics, because nvcc would merge the three kinds and store words one by one.
  static __device__ void store_one(void* to, std::uint32_t word) { __stcs(static_cast<unsigned*>(to), word); }
  static __device__ void store_two(void* to, const std::uint32_t* words) {
    __stcs(static_cast<uint2*>(to), make_uint2(words[0], words[1]));
  }
  static __device__ void store_four(void* to, const std::uint32_t* words) {
    __stcs(static_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
  }
};

template <image_number Number, std::uint32_t Channels, bool Planes>
__global__ void __launch_bounds__(256) image_kernel(const image_work work, std::uint32_t groups) {
  // Images one after another along y, so that offsets in an image are of 32 bits and all others of 64.
  for (std::uint64_t slot = blockIdx.y; slot < work.slots; slot += gridDim.y)
    for (std::uint64_t group = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; group < groups;
         group += std::uint64_t{gridDim.x} * blockDim.x)
      make_pixels<Number, Channels, Planes, cuda_access>(work, slot, static_cast<std::uint32_t>(group));
}

void launch_image_work(const image_work& work, CUstream_st* stream) {
  const std::uint64_t groups = groups_of(work);
  if (groups == 0 || work.slots == 0) return;
  const auto threads = static_cast<unsigned>(groups < 256 ? (groups + 31) / 32 * 32 : 256);
  const dim3 blocks(static_cast<unsigned>((groups + threads - 1) / threads),
                    static_cast<unsigned>(work.slots < 65'535 ? work.slots : 65'535));
  with_types_of(work, [&]<image_number Number, std::uint32_t Channels, bool Planes>() {
    image_kernel<Number, Channels, Planes>
        <<<blocks, threads, 0, stream>>>(work, static_cast<std::uint32_t>(groups));
  });
}

}  // namespace penstock::inline v0_1
