// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/image/image_work.hpp>

#include "support/catch.hpp"

#include <penstock/core/half.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace device_image_image_work_test {

namespace ps = penstock;

namespace {

/// Memory whose ends a sanitizer watches: whole words, as a device has them.
struct pixels {
  explicit pixels(std::size_t bytes, std::uint64_t seed) : all((bytes + 7) / 8) {
    ps::rng random(seed, 0, 0);
    for (std::uint64_t& word : all) word = random();
  }
  [[nodiscard]] const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(all.data()); }
  std::vector<std::uint64_t> all;
};

std::size_t size_of(ps::image_number number) {
  return number == ps::image_number::bytes ? 1 : number == ps::image_number::float32 ? 4 : 2;
}

/// The bits of one number of the result, pixel by pixel as the words say it.
std::uint32_t expected(const ps::image_work& w, std::uint64_t slot, std::uint32_t i, std::uint32_t j,
                       std::uint32_t c) {
  const ps::image_choice choice = w.choices != nullptr ? w.choices[slot] : w.all;
  if (slot >= w.valid || choice.blank != 0) return 0;
  if (i < choice.left || i >= choice.right || j < choice.top || j >= choice.bottom) return w.fill[c];
  const std::int64_t x = choice.x + ((choice.mirrored & 1u) != 0 ? -std::int64_t{i} : std::int64_t{i});
  const std::int64_t y = choice.y + ((choice.mirrored & 2u) != 0 ? -std::int64_t{j} : std::int64_t{j});
  const std::uint8_t byte =
      w.from[static_cast<std::int64_t>(slot) * w.slot_step + y * w.row_step + x * w.pixel_step + c];
  const float value = (static_cast<float>(byte) - w.shift[c]) * w.scale[c];
  switch (w.number) {
    case ps::image_number::bytes:
      return byte;
    case ps::image_number::float32:
      return std::bit_cast<std::uint32_t>(value);
    case ps::image_number::float16:
      return ps::half(value).bits();
    default:
      return ps::bfloat16(value).bits();
  }
}

std::uint32_t bits_at(const ps::image_work& w, std::uint64_t slot, std::uint32_t i, std::uint32_t j,
                      std::uint32_t c) {
  const std::uint64_t at = w.planes ? ((slot * w.channels + c) * w.height + j) * w.width + i
                                    : ((slot * w.height + j) * w.width + i) * w.channels + c;
  const auto* const to = static_cast<const std::byte*>(w.to);
  std::uint32_t bits = 0;
  if (size_of(w.number) == 1) {
    std::uint8_t one = 0;
    std::memcpy(&one, to + at, 1);
    bits = one;
  } else if (size_of(w.number) == 2) {
    std::uint16_t one = 0;
    std::memcpy(&one, to + at * 2, 2);
    bits = one;
  } else {
    std::memcpy(&bits, to + at * 4, 4);
  }
  return bits;
}

}  // namespace

TEST_CASE("device/image/image_work: every number of a batch, for any sizes, steps and choices") {
  ps::rng random(11, 0, 0);
  std::size_t numbers = 0, wrong = 0;
  for (int round = 0; round < 600; ++round) {
    ps::image_work w;
    w.channels = static_cast<std::uint32_t>(1 + random.below(4));
    w.number = static_cast<ps::image_number>(random.below(4));
    w.planes = random.chance(0.5);
    w.slots = 1 + random.below(3);
    w.valid = random.below(w.slots + 1);
    const std::int64_t width = 1 + static_cast<std::int64_t>(random.below(40));
    const std::int64_t height = 1 + static_cast<std::int64_t>(random.below(6));
    w.pixel_step = w.channels + (random.chance(0.2) ? 3 : 0);
    w.row_step = width * w.pixel_step + static_cast<std::int64_t>(random.below(4));
    w.slot_step = height * w.row_step + static_cast<std::int64_t>(random.below(9));
    const pixels from(static_cast<std::size_t>(w.slot_step) * w.slots, random());
    w.from = from.data();
    w.width = static_cast<std::uint32_t>(1 + random.below(44));
    w.height = static_cast<std::uint32_t>(1 + random.below(6));
    for (std::uint32_t c = 0; c < 4; ++c) {
      w.shift[c] = static_cast<float>(random.uniform(0, 255));
      w.scale[c] = static_cast<float>(random.uniform(0, 0.1));
      w.fill[c] = static_cast<std::uint32_t>(random.below(200));
    }
    std::vector<ps::image_choice> choices(w.slots);
    for (ps::image_choice& one : choices) {
      // A part of the image, mirrored or not, anywhere in the result.
      const auto wide = static_cast<std::uint32_t>(
          1 + random.below(std::min<std::uint64_t>(w.width, static_cast<std::uint64_t>(width))));
      const auto high = static_cast<std::uint32_t>(
          1 + random.below(std::min<std::uint64_t>(w.height, static_cast<std::uint64_t>(height))));
      one.left = static_cast<std::uint32_t>(random.below(w.width - wide + 1));
      one.top = static_cast<std::uint32_t>(random.below(w.height - high + 1));
      one.right = one.left + wide;
      one.bottom = one.top + high;
      one.mirrored = static_cast<std::uint32_t>(random.below(4));
      const auto x = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(width - wide + 1)));
      const auto y = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(height - high + 1)));
      one.x = (one.mirrored & 1u) != 0 ? x + one.right - 1 : x - one.left;
      one.y = (one.mirrored & 2u) != 0 ? y + one.bottom - 1 : y - one.top;
      one.blank = random.chance(0.1) ? 1 : 0;
    }
    if (random.chance(0.5)) {
      w.choices = choices.data();
    } else {
      w.all = choices.front();
    }
    const std::size_t made = w.slots * w.width * w.height * w.channels * size_of(w.number);
    std::vector<std::uint64_t> to((made + 7) / 8 + 2, 0xa5a5a5a5a5a5a5a5u);
    w.to = to.data();
    ps::run_image_work(w);
    for (std::uint64_t slot = 0; slot < w.slots; ++slot)
      for (std::uint32_t j = 0; j < w.height; ++j)
        for (std::uint32_t i = 0; i < w.width; ++i)
          for (std::uint32_t c = 0; c < w.channels; ++c, ++numbers)
            wrong += bits_at(w, slot, i, j, c) != expected(w, slot, i, j, c);
    const auto* const end = reinterpret_cast<const std::byte*>(to.data()) + made;
    wrong += *end != std::byte{0xa5} || to.back() != 0xa5a5a5a5a5a5a5a5u;  // nothing is written behind it
  }
  CHECK(numbers > 100'000);
  CHECK(wrong == 0);
}

TEST_CASE("device/image/image_work: all bytes become the numbers of the host") {
  std::array<std::uint8_t, 256> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  ps::image_work w;
  w.from = all.data();
  w.slots = w.valid = 1;
  w.width = w.all.right = 256;
  w.height = w.all.bottom = 1;
  w.channels = 1;
  w.pixel_step = 1;
  w.shift[0] = 0.485f * 255;
  w.scale[0] = 1 / (0.229f * 255);
  std::array<ps::half, 256> made{};
  alignas(16) std::array<std::uint16_t, 256> bits{};
  w.to = bits.data();
  w.number = ps::image_number::float16;
  ps::run_image_work(w);
  for (std::size_t i = 0; i < all.size(); ++i)
    made[i] = ps::half((static_cast<float>(all[i]) - w.shift[0]) * w.scale[0]);
  CHECK(std::memcmp(made.data(), bits.data(), sizeof made) == 0);
}

#if defined(__linux__)
TEST_CASE("device/image/image_work: slots beyond 2^31 numbers are where they belong") {
  // Room for the numbers of slot 2^28 and the one before it; only the pages that are written exist.
  constexpr std::uint64_t slot = std::uint64_t{1} << 28, per_slot = 3 * 8;
  constexpr std::size_t bytes = (slot + 1) * per_slot * sizeof(std::uint16_t);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    WARN("not run: there is no address space for it");
    return;
  }
  const pixels from(24, 5);
  ps::image_work w;
  w.from = from.data();  // every slot is this image
  w.to = memory;
  w.slots = w.valid = slot + 1;
  w.width = w.all.right = 8;
  w.height = w.all.bottom = 1;
  w.channels = 3;
  w.pixel_step = 3;
  w.planes = true;
  w.number = ps::image_number::float16;
  w.scale[0] = w.scale[1] = w.scale[2] = 1;
  for (const std::uint64_t one : {slot, std::uint64_t{0}, (std::uint64_t{1} << 31) / per_slot})
    ps::make_pixels<ps::image_number::float16, 3, true, ps::host_access>(w, one, 0);
  std::size_t wrong = 0;
  for (const std::uint64_t one : {slot, std::uint64_t{0}, (std::uint64_t{1} << 31) / per_slot})
    for (std::uint32_t i = 0; i < 8; ++i)
      for (std::uint32_t c = 0; c < 3; ++c) wrong += bits_at(w, one, i, 0, c) != expected(w, one, i, 0, c);
  CHECK(wrong == 0);
  ::munmap(memory, bytes);
}
#endif

}  // namespace device_image_image_work_test
