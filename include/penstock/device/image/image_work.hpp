// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/half.hpp>

#include <bit>
#include <cstring>
#include <type_traits>

// Code that the host runs too: what the kernels of kernels.cuh do to a pixel is tested without a GPU.
// Where memory is accessed for one of the two only, nvcc is told not to ask for both.
#ifdef __CUDACC__
#define PENSTOCK_DEVICE_CODE __host__ __device__
#else
#define PENSTOCK_DEVICE_CODE
#endif

struct CUstream_st;  // of the CUDA toolkit: a cudaStream_t points to one

/// What operations on images become on a device: plain data that describes one kernel, and the code of its
/// threads. It knows nothing of plans, so that nvcc can compile it.
namespace penstock::inline v0_1 {

/// The numbers that a kernel makes of pixels of 8 bits.
enum class image_number : std::uint8_t { bytes, float32, float16, brain16 };

/// Which pixels of one image the result has: its pixel (i, j) is the image's pixel (x + i, y + j), or
/// (x - i, y - j) where the image is mirrored.
struct image_choice {
  std::int64_t x = 0, y = 0;
  std::uint32_t left = 0, top = 0, right = 0, bottom = 0;  ///< the part of the result that is in the image
  std::uint32_t mirrored = 0;  ///< 1: left and right change places; 2: top and bottom
  std::uint32_t blank = 0;     ///< not 0: there is no sample, and all becomes 0
};

/// One kernel on a column of images: (height, width, channels) of 8 bits, to any numbers, interleaved or
/// plane by plane. Addresses are of the device.
struct image_work {
  const std::uint8_t* from = nullptr;
  void* to = nullptr;                     ///< dense, at a multiple of 16
  const image_choice* choices = nullptr;  ///< one for each slot; null: `all` is that of each
  image_choice all{};
  std::uint64_t slots = 0;
  std::uint64_t valid = 0;                                   ///< slots from here on become 0
  std::int64_t slot_step = 0, row_step = 0, pixel_step = 0;  ///< of the input, in bytes
  std::uint32_t width = 0, height = 0;                       ///< of the result
  std::uint32_t channels = 0;                                ///< 1 to 4
  image_number number = image_number::bytes;
  bool planes = false;  ///< (channels, height, width)
  float shift[4] = {},
        scale[4] = {};  ///< a byte v becomes (v - shift) * scale of its channel, unless it stays a byte
  std::uint32_t fill[4] = {};  ///< the bits of what is not in the image
};

/// A thread makes this many pixels, side by side.
inline constexpr std::uint32_t pixels_of_thread = 8;

/// How many such groups an image has.
[[nodiscard]] PENSTOCK_DEVICE_CODE constexpr std::uint64_t groups_of(const image_work& work) noexcept {
  return std::uint64_t{work.height} * ((std::uint64_t{work.width} + pixels_of_thread - 1) / pixels_of_thread);
}

namespace detail {

template <image_number Number>
using image_storage =
    std::conditional_t<Number == image_number::bytes, std::uint8_t,
                       std::conditional_t<Number == image_number::float32, std::uint32_t, std::uint16_t>>;

/// Writes up to 8 numbers side by side, given as bits: in the largest words that their address allows.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Access, class T>
PENSTOCK_DEVICE_CODE inline void put_numbers(T* to, const std::uint32_t* bits, std::uint32_t count) noexcept {
  constexpr std::uint32_t per_word = 4 / sizeof(T), words = 8 / per_word;
  const auto address = reinterpret_cast<std::uintptr_t>(to);
  if (count != 8 || address % 4 != 0 || !Access::packs) {
    for (std::uint32_t i = 0; i < count; ++i) Access::store(to + i, static_cast<T>(bits[i]));
    return;
  }
  std::uint32_t packed[words];
  for (std::uint32_t w = 0; w < words; ++w) {
    packed[w] = bits[w * per_word];
    for (std::uint32_t k = 1; k < per_word; ++k)
      packed[w] |= bits[w * per_word + k] << (k * 8 * static_cast<std::uint32_t>(sizeof(T)));
  }
  if (words >= 4 && address % 16 == 0) {
    for (std::uint32_t w = 0; w + 4 <= words; w += 4) Access::store_four(to + w * per_word, packed + w);
  } else if (address % 8 == 0) {
    for (std::uint32_t w = 0; w < words; w += 2) Access::store_two(to + w * per_word, packed + w);
  } else {
    for (std::uint32_t w = 0; w < words; ++w) Access::store_one(to + w * per_word, packed[w]);
  }
}

/// The bytes [at, at + 4 * Words), of which the first and the last lie in the same allocation as the word
/// around them.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Access, std::uint32_t Words>
PENSTOCK_DEVICE_CODE inline void take_words(const std::uint8_t* at, std::uint32_t* words) noexcept {
  const auto beyond = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) % 4);
  const std::uint8_t* const aligned = at - beyond;
  if (beyond == 0) {
    if (Words % 2 == 0 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
      for (std::uint32_t w = 0; w + 2 <= Words; w += 2) Access::load_two(aligned + 4 * w, words + w);
    } else {
      for (std::uint32_t w = 0; w < Words; ++w) words[w] = Access::load(aligned + 4 * w);
    }
    return;
  }
  const std::uint32_t shift = beyond * 8;
  std::uint32_t low = Access::load(aligned);
  for (std::uint32_t w = 0; w < Words; ++w) {
    const std::uint32_t high = Access::load(aligned + 4 * w + 4);
    words[w] = low >> shift | high << (32 - shift);
    low = high;
  }
}

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class Access, image_number Number>
[[nodiscard]] PENSTOCK_DEVICE_CODE inline std::uint32_t image_bits(std::uint32_t byte, float shift,
                                                                   float scale) noexcept {
  if constexpr (Number == image_number::bytes)
    return byte;
  else
    return Access::template bits<Number>((static_cast<float>(byte) - shift) * scale);
}

}  // namespace detail

/// Makes group `group` of the image in a slot. `Access` reads and writes memory, and rounds: `host_access`,
/// or that of a device.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <image_number Number, std::uint32_t Channels, bool Planes, class Access>
PENSTOCK_DEVICE_CODE inline void make_pixels(const image_work& work, std::uint64_t slot,
                                             std::uint32_t group) noexcept {
  using storage = detail::image_storage<Number>;
  constexpr std::uint32_t many = pixels_of_thread;
  const std::uint32_t across = (work.width + many - 1) / many;
  const std::uint32_t row = group / across, column = (group - row * across) * many;
  const std::uint32_t count = work.width - column < many ? work.width - column : many;
  const image_choice choice = work.choices == nullptr ? work.all : work.choices[slot];
  std::uint32_t bits[Channels][many];

  if (slot >= work.valid || choice.blank != 0) {
    for (std::uint32_t c = 0; c < Channels; ++c)
      for (std::uint32_t k = 0; k < many; ++k) bits[c][k] = 0;
  } else {
    const bool mirrored = (choice.mirrored & 1u) != 0;
    const std::int64_t y = choice.y + ((choice.mirrored & 2u) != 0 ? -std::int64_t{row} : std::int64_t{row});
    const std::int64_t x = choice.x + (mirrored ? -std::int64_t{column} : std::int64_t{column});
    const std::uint8_t* const line =
        work.from + static_cast<std::int64_t>(slot) * work.slot_step + y * work.row_step;
    const bool visible = row >= choice.top && row < choice.bottom;
    if (count == many && Access::packs && visible && column >= choice.left && column + many <= choice.right &&
        work.pixel_step == std::int64_t{Channels}) {
      std::uint32_t words[2 * Channels];
      const std::int64_t first = mirrored ? x - std::int64_t{many - 1} : x;
      detail::take_words<Access, 2 * Channels>(line + first * std::int64_t{Channels}, words);
      for (std::uint32_t k = 0; k < many; ++k)
        for (std::uint32_t c = 0; c < Channels; ++c) {
          const std::uint32_t ahead = k * Channels + c, back = (many - 1 - k) * Channels + c;
          const std::uint32_t byte =
              (mirrored ? words[back / 4] >> (back % 4 * 8) : words[ahead / 4] >> (ahead % 4 * 8)) & 0xffu;
          bits[c][k] = detail::image_bits<Access, Number>(byte, work.shift[c], work.scale[c]);
        }
    } else {
      for (std::uint32_t k = 0; k < many; ++k) {
        const bool inside = k < count && visible && column + k >= choice.left && column + k < choice.right;
        const std::int64_t begin = x + (mirrored ? -std::int64_t{k} : std::int64_t{k});
        for (std::uint32_t c = 0; c < Channels; ++c)
          bits[c][k] = inside ? detail::image_bits<Access, Number>(
                                    Access::load_byte(line + begin * work.pixel_step + std::int64_t{c}),
                                    work.shift[c], work.scale[c])
                              : work.fill[c];
      }
    }
  }

  storage* const to = static_cast<storage*>(work.to);
  if constexpr (Planes) {
    const std::uint64_t plane = std::uint64_t{work.height} * work.width;
    storage* const at = to + slot * Channels * plane + std::uint64_t{row} * work.width + column;
    for (std::uint32_t c = 0; c < Channels; ++c) detail::put_numbers<Access>(at + c * plane, bits[c], count);
  } else {
    storage* const at =
        to + ((slot * work.height + row) * std::uint64_t{work.width} + column) * std::uint64_t{Channels};
    std::uint32_t flat[many * Channels];
    for (std::uint32_t k = 0; k < many; ++k)
      for (std::uint32_t c = 0; c < Channels; ++c) flat[k * Channels + c] = bits[c][k];
    for (std::uint32_t i = 0; i < count * Channels; i += many) {
      const std::uint32_t left = count * Channels - i;
      detail::put_numbers<Access>(at + i, flat + i, left < many ? left : many);
    }
  }
}

/// Memory of the host, and its rounding.
struct host_access {
  /// Whether words have their first byte in front.
  static constexpr bool packs = std::endian::native == std::endian::little;

  template <image_number Number>
  [[nodiscard]] static std::uint32_t bits(float value) noexcept {
    if constexpr (Number == image_number::float32)
      return std::bit_cast<std::uint32_t>(value);
    else if constexpr (Number == image_number::float16)
      return half(value).bits();
    else
      return bfloat16(value).bits();
  }
  [[nodiscard]] static std::uint32_t load_byte(const std::uint8_t* at) noexcept { return *at; }
  [[nodiscard]] static std::uint32_t load(const std::uint8_t* at) noexcept {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  static void load_two(const std::uint8_t* at, std::uint32_t* words) noexcept {
    std::memcpy(words, at, 2 * sizeof *words);
  }
  template <class T>
  static void store(T* to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
  }
  static void store_one(void* to, std::uint32_t word) noexcept { std::memcpy(to, &word, sizeof word); }
  static void store_two(void* to, const std::uint32_t* words) noexcept {
    std::memcpy(to, words, 2 * sizeof *words);
  }
  static void store_four(void* to, const std::uint32_t* words) noexcept {
    std::memcpy(to, words, 4 * sizeof *words);
  }
};

/// Calls `f<number, channels, planes>()` with those of a work. False, without a call, for any other number of
/// channels.
template <class F>
bool with_types_of(const image_work& work, const F& f) {
  const auto planes = [&]<image_number Number, std::uint32_t Channels>() {
    if (work.planes)
      f.template operator()<Number, Channels, true>();
    else
      f.template operator()<Number, Channels, false>();
    return true;
  };
  const auto channels = [&]<image_number Number>() {
    switch (work.channels) {
      case 1:
        return planes.template operator()<Number, 1>();
      case 2:
        return planes.template operator()<Number, 2>();
      case 3:
        return planes.template operator()<Number, 3>();
      case 4:
        return planes.template operator()<Number, 4>();
      default:
        return false;
    }
  };
  switch (work.number) {
    case image_number::bytes:
      return channels.template operator()<image_number::bytes>();
    case image_number::float32:
      return channels.template operator()<image_number::float32>();
    case image_number::float16:
      return channels.template operator()<image_number::float16>();
    default:
      return channels.template operator()<image_number::brain16>();
  }
}

/// Does the work on the host, whose memory the addresses are: for a device that is the host, and for tests.
inline void run_image_work(const image_work& work) noexcept {
  const std::uint64_t groups = groups_of(work);
  with_types_of(work, [&]<image_number Number, std::uint32_t Channels, bool Planes>() {
    for (std::uint64_t slot = 0; slot < work.slots; ++slot)
      for (std::uint64_t group = 0; group < groups; ++group)
        make_pixels<Number, Channels, Planes, host_access>(work, slot, static_cast<std::uint32_t>(group));
  });
}

/// Puts the kernel on a stream of the current CUDA device. Defined in
/// `penstock/device/image/kernels.cuh`, which nvcc compiles: link `penstock::cuda_kernels`, or include it in
/// one .cu file of yours. A launch that
/// fails shows in cudaGetLastError().
void launch_image_work(const image_work& work, CUstream_st* stream);

}  // namespace penstock::inline v0_1
