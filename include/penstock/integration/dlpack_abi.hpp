// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/half.hpp>

#include <complex>
#include <concepts>

/// The structs of DLPack, with which libraries exchange tensors without copying them. They have the layout of
/// those in dlpack.h: a pointer to one may be cast to a pointer to the other. This library has its own so
/// that it depends on no other, and a program may include both.
///
/// Source: dmlc/dlpack, include/dlpack/dlpack.h, version 1.1.
namespace penstock::inline v0_1::dlpack {

/// kDLCPU and so on.
enum class device_type : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,
  opencl = 4,
  vulkan = 7,
  metal = 8,
  vpi = 9,
  rocm = 10,
  rocm_host = 11,
  ext_dev = 12,
  cuda_managed = 13,
  one_api = 14,
  web_gpu = 15,
  hexagon = 16,
  maia = 17,
  trainium = 18
};

/// kDLInt and so on: how the bits of a value are read.
enum class type_code : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  boolean = 6
};

struct device {
  device_type type = device_type::cpu;
  std::int32_t id = 0;  ///< 0 unless the memory belongs to one of several devices

  friend bool operator==(const device&, const device&) = default;
};

struct data_type {
  type_code code = type_code::opaque;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;  ///< more than 1: a vector per element

  friend bool operator==(const data_type&, const data_type&) = default;
};

struct tensor {
  void* data = nullptr;  ///< null if there are no elements
  dlpack::device device;
  std::int32_t ndim = 0;
  dlpack::data_type dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: row-major without gaps
  std::uint64_t byte_offset = 0;    ///< from `data` to the first element
};

/// A tensor with the function that releases it, as libraries exchanged it before version 1.0.
struct managed_tensor {
  tensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(managed_tensor* self) = nullptr;
};

struct version {
  std::uint32_t major = 1, minor = 1;
};

/// Bits of `managed_tensor_versioned::flags`.
inline constexpr std::uint64_t read_only = 1, is_copied = 2;

/// A tensor with the function that releases it; what the capsule `dltensor_versioned` of Python holds.
struct managed_tensor_versioned {
  dlpack::version version;
  void* manager_ctx = nullptr;
  void (*deleter)(managed_tensor_versioned* self) = nullptr;
  std::uint64_t flags = 0;
  tensor dl_tensor;
};

static_assert(sizeof(void*) != 8 || (sizeof(tensor) == 48 && offsetof(tensor, dtype) == 20 &&
                                     sizeof(managed_tensor) == 64 && sizeof(managed_tensor_versioned) == 80 &&
                                     offsetof(managed_tensor_versioned, dl_tensor) == 32),
              "the layout is that of dlpack.h");

namespace detail {

template <class T>
inline constexpr bool is_complex = false;
template <std::floating_point T>
inline constexpr bool is_complex<std::complex<T>> = sizeof(T) <= 8;

}  // namespace detail

/// The values that DLPack has a type for: numbers, `bool`, bytes and characters.
template <class T>
concept exchanged_value =
    std::integral<T> || std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, half> ||
    std::same_as<T, bfloat16> || std::same_as<T, std::byte> || detail::is_complex<T>;

/// How DLPack calls a type. Bytes and characters are unsigned integers of 8 bits.
template <exchanged_value T>
inline constexpr data_type data_type_of = [] {
  constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
  if constexpr (std::same_as<T, bool>)
    return data_type{type_code::boolean, bits};
  else if constexpr (std::same_as<T, std::byte> || std::same_as<T, char> || std::unsigned_integral<T>)
    return data_type{type_code::unsigned_integer, bits};
  else if constexpr (std::signed_integral<T>)
    return data_type{type_code::signed_integer, bits};
  else if constexpr (std::same_as<T, bfloat16>)
    return data_type{type_code::bfloat, bits};
  else if constexpr (detail::is_complex<T>)
    return data_type{type_code::complex, bits};
  else
    return data_type{type_code::floating, bits};
}();

}  // namespace penstock::inline v0_1::dlpack
