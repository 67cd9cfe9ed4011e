// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/audio/lazy_sound.hpp>
#include <penstock/core/bytes.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

/// FLAC sounds from their beginning, in about half of libFLAC's time. Whatever is unusual or damaged is left
/// to libFLAC, which also says what is wrong with it. Source: RFC 9639.
namespace penstock::inline v0_1::detail {

/// Bits from the highest of each byte on. Behind the end they are 0, and `bad()`.
class flac_bits {
 public:
  explicit flac_bits(bytes_view file, std::size_t at) noexcept
      : next_(file.data() + at), end_(file.data() + file.size()) {}

  /// Up to 32.
  [[nodiscard]] std::uint32_t take(std::uint32_t n) noexcept {
    if (count_ < n) refill();
    if (n == 0 || !has(n)) return 0;
    const auto value = static_cast<std::uint32_t>(cache_ >> (64 - n));
    drop(n);
    return value;
  }
  [[nodiscard]] std::int32_t take_signed(std::uint32_t n) noexcept {
    return n == 0 ? 0 : static_cast<std::int32_t>(take(n) << (32 - n)) >> (32 - n);
  }
  /// How many zeros come before a one.
  [[nodiscard]] std::uint32_t take_unary() noexcept {
    for (std::uint32_t zeros = 0;;) {
      refill();
      if (!has(1)) return 0;
      const std::uint32_t more = std::min(static_cast<std::uint32_t>(std::countl_zero(cache_)), count_);
      zeros += more;
      if (more < count_) {
        drop(more + 1);
        return zeros;
      }
      drop(more);
    }
  }
  /// Numbers in Rice's code with that parameter.
  void take_rice(std::int32_t* to, std::size_t n, std::uint32_t parameter) noexcept {
    flac_bits at = *this;  // in registers
    const auto one = [&](std::int32_t& into) {
      std::uint32_t high = static_cast<std::uint32_t>(std::countl_zero(at.cache_)), low = 0;
      if (const std::uint32_t length = high + 1 + parameter; length <= at.count_) [[likely]] {
        low = static_cast<std::uint32_t>((at.cache_ << high << 1) >> 1 >> (63 - parameter));
        at.drop(length);
      } else {
        high = at.take_unary();
        low = at.take(parameter);
      }
      const std::uint32_t folded = high << parameter | low;
      into = static_cast<std::int32_t>(folded >> 1 ^ (0u - (folded & 1)));
    };
    constexpr std::size_t each = 3;  // for which 56 bits are mostly enough
    std::size_t i = 0;
    for (; n - i >= each; i += each) {
      at.refill();
      for (std::size_t k = 0; k < each; ++k) one(to[i + k]);
    }
    for (; i < n; ++i) one(to[i]);
    *this = at;
  }
  /// Leaves what is left of a byte, and tells where the next one is.
  [[nodiscard]] const std::byte* next_byte() noexcept {
    drop(count_ % 8);
    return next_ - count_ / 8;
  }
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  /// At least 56 bits, unless the file ends. Those of the cache beyond `count_` are right or 0.
  void refill() noexcept {
    if (end_ - next_ >= 8) [[likely]] {
      std::uint64_t word = 0;
      for (std::size_t i = 0; i < 8; ++i) word = word << 8 | std::to_integer<std::uint64_t>(next_[i]);
      cache_ |= word >> count_;
      next_ += (63 - count_) >> 3;
      count_ |= 56;
    } else {
      for (; count_ < 56 && next_ != end_; count_ += 8)
        cache_ |= std::to_integer<std::uint64_t>(*next_++) << (56 - count_);
    }
  }
  [[nodiscard]] bool has(std::uint32_t n) noexcept {
    bad_ = bad_ || count_ < n;
    return !bad_;
  }
  void drop(std::uint32_t n) noexcept {
    cache_ <<= n;
    count_ -= n;
  }

  const std::byte *next_, *end_;
  std::uint64_t cache_ = 0;
  std::uint32_t count_ = 0;
  bool bad_ = false;
};

/// Of CRC-16 with the polynomial 0x8005: `tables[n]` has what a byte does that n others follow.
inline constexpr auto flac_crc_tables = [] {
  std::array<std::array<std::uint16_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value << 1 ^ (value >> 15 != 0 ? 0x8005u : 0)) & 0xffff;
    tables[0][byte] = static_cast<std::uint16_t>(value);
  }
  for (std::size_t n = 1; n < tables.size(); ++n)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[n - 1][byte];
      tables[n][byte] = static_cast<std::uint16_t>(value << 8 ^ tables[0][value >> 8]);
    }
  return tables;
}();

/// 0 for a frame with its checksum.
[[nodiscard]] inline std::uint32_t flac_crc(const std::byte* at, const std::byte* end) noexcept {
  const auto& t = flac_crc_tables;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(at[i]); };
  std::uint32_t crc = 0;
  for (; end - at >= 8; at += 8)
    crc = t[7][byte(0) ^ crc >> 8] ^ t[6][byte(1) ^ (crc & 255)] ^ t[5][byte(2)] ^ t[4][byte(3)] ^
          t[3][byte(4)] ^ t[2][byte(5)] ^ t[1][byte(6)] ^ t[0][byte(7)];
  for (; at != end; ++at) crc = (crc << 8 & 0xffff) ^ t[0][crc >> 8 ^ byte(0)];
  return crc;
}

/// Adds to each residual what is predicted from the samples before it.
template <std::size_t... Taps>
void flac_predict(std::int32_t* s, std::size_t n, const std::int32_t* taps, std::uint32_t shift,
                  std::index_sequence<Taps...> /*all but the first*/) noexcept {
  constexpr std::size_t order = sizeof...(Taps) + 1;
  const auto tap = [&](std::size_t k) { return static_cast<std::uint32_t>(taps[k]); };
  const std::array<std::uint32_t, order> c{tap(0), tap(Taps + 1)...};
  auto last = static_cast<std::uint32_t>(s[order - 1]);  // in a register: the next sample waits for it
  for (std::size_t i = order; i < n; ++i) {
    const std::uint32_t others = (0u + ... + (c[Taps + 1] * static_cast<std::uint32_t>(s[i - 2 - Taps])));
    const std::int32_t predicted = static_cast<std::int32_t>(others + c[0] * last) >> shift;
    last = static_cast<std::uint32_t>(s[i]) + static_cast<std::uint32_t>(predicted);
    s[i] = static_cast<std::int32_t>(last);
  }
}
inline void flac_predict(std::int32_t* s, std::size_t n, const std::int32_t* taps, std::uint32_t order,
                         std::uint32_t shift, bool narrow) noexcept {
  const bool found = narrow && [&]<std::size_t... Before>(std::index_sequence<Before...>) {
    return ((order == Before + 1 &&
             (flac_predict(s, n, taps, shift, std::make_index_sequence<Before>{}), true)) ||
            ...);
  }(std::make_index_sequence<12>{});
  if (found) return;
  for (std::size_t i = order; i < n; ++i) {
    std::int64_t sum = 0;
    for (std::uint32_t k = 0; k < order; ++k) sum += std::int64_t{taps[k]} * s[i - 1 - k];
    s[i] = static_cast<std::int32_t>(s[i] + (sum >> shift));
  }
}

/// Residuals behind the first `order` samples. Whether they are as the format wants them.
[[nodiscard]] inline bool flac_residuals(flac_bits& in, std::int32_t* s, std::size_t n, std::uint32_t order) {
  const std::uint32_t method = in.take(2), partitions = in.take(4);
  const std::size_t each = n >> partitions;
  if (method > 1 || each << partitions != n || each < order) return false;
  const std::uint32_t bits = 4 + method, escape = (1u << bits) - 1;
  for (std::size_t at = order, end = each; end <= n; at = end, end += each) {
    const std::uint32_t parameter = in.take(bits);
    if (parameter != escape) {
      in.take_rice(s + at, end - at, parameter);
    } else {
      const std::uint32_t raw = in.take(5);
      for (std::size_t i = at; i < end; ++i) s[i] = in.take_signed(raw);
    }
    if (in.bad()) return false;
  }
  return true;
}

/// The samples of a channel, of so many bits each.
[[nodiscard]] inline bool flac_subframe(flac_bits& in, std::int32_t* s, std::size_t n, std::uint32_t bits) {
  const std::uint32_t type = in.take(7), wasted = in.take(1) != 0 ? in.take_unary() + 1 : 0;
  if (wasted >= bits) return false;
  bits -= wasted;
  if (type == 0) {
    std::fill_n(s, n, in.take_signed(bits));
  } else if (type == 1) {
    for (std::size_t i = 0; i < n; ++i) s[i] = in.take_signed(bits);
  } else {
    const bool fixed = type >= 8 && type <= 12;
    if (!fixed && (type < 32 || type > 63)) return false;
    const std::uint32_t order = fixed ? type - 8 : type - 31;
    if (order > n) return false;
    for (std::uint32_t i = 0; i < order; ++i) s[i] = in.take_signed(bits);
    constexpr std::int32_t fixed_taps[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
    std::array<std::int32_t, 32> taps{};
    std::uint32_t precision = 4, shift = 0;
    if (fixed) {
      std::copy_n(fixed_taps[order], 4, taps.begin());
    } else {
      precision = in.take(4) + 1;
      shift = in.take(5);
      if (precision == 16 || shift > 15) return false;
      for (std::uint32_t i = 0; i < order; ++i) taps[i] = in.take_signed(precision);
    }
    if (!flac_residuals(in, s, n, order)) return false;
    if (order != 0)
      flac_predict(s, n, taps.data(), order, shift,
                   bits + precision <= 1 + static_cast<std::uint32_t>(std::countl_zero(order)));
  }
  for (std::size_t i = 0; wasted != 0 && i < n; ++i)
    s[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(s[i]) << wasted);
  return !in.bad();
}

/// Decodes a file of 16 or 24 bits from its beginning, and tells whether there were as many frames as wanted.
[[nodiscard]] inline bool read_flac(bytes_view file, std::uint32_t channels, std::uint64_t wanted,
                                    const sound_place& place, buffer& room) {
  constexpr std::size_t stream_info = 8, first_block = 4;
  if (file.size() < stream_info + 34) return false;
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(file[at]); };
  const std::uint32_t bits = ((byte(20) & 1) << 4 | byte(21) >> 4) + 1;
  if (channels != (byte(20) >> 1 & 7) + 1 || (bits != 16 && bits != 24)) return false;
  const float unit = bits == 16 ? 0x1p-15f : 0x1p-23f;
  std::size_t at = first_block;
  for (bool more = true; more;) {
    if (file.size() - at < 4) return false;
    more = byte(at) >> 7 == 0;
    const std::size_t length = byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    if (file.size() - at - 4 < length) return false;
    at += 4 + length;
  }
  for (std::uint64_t done = 0, blocks = 0; done < wanted; ++blocks) {
    flac_bits in(file, at);
    if (in.take(15) != 0x7ffc) return false;
    const bool by_samples = in.take(1) != 0;  // or blocks of one size, which are counted
    const std::uint32_t size_code = in.take(4), rate_code = in.take(4), layout = in.take(4),
                        depth = in.take(3);
    if (in.take(1) != 0 || (depth != 0 && depth != (bits == 16 ? 4u : 6u))) return false;
    if (layout < 8 ? layout + 1 != channels : layout > 10 || channels != 2) return false;
    // The number of the block, as UTF-8 has numbers.
    const std::uint32_t head = in.take(8);
    int ones = std::countl_one(static_cast<std::uint8_t>(head));
    std::uint64_t number = head & (0x7fu >> ones);
    for (; ones > 1; --ones) number = number << 6 | (in.take(8) & 63);
    if (number != (by_samples ? done : blocks)) return false;
    const std::size_t n = size_code == 0   ? 0
                          : size_code == 1 ? 192
                          : size_code < 6  ? std::size_t{576} << (size_code - 2)
                          : size_code < 8  ? std::size_t{in.take(size_code == 6 ? 8 : 16)} + 1
                                           : std::size_t{256} << (size_code - 8);
    if (n == 0 || rate_code == 15) return false;
    if (rate_code > 11) static_cast<void>(in.take(rate_code == 12 ? 8 : 16));
    static_cast<void>(in.take(8));  // the header's own checksum: that of the frame covers it, too
    room.resize_for_overwrite(n * channels * sizeof(std::int32_t));
    auto* const samples = reinterpret_cast<std::int32_t*>(room.data());
    for (std::uint32_t c = 0; c < channels; ++c) {
      const bool side = (layout == 9 && c == 0) || ((layout == 8 || layout == 10) && c == 1);
      if (!flac_subframe(in, samples + c * n, n, bits + (side ? 1 : 0))) return false;
    }
    const std::size_t end = static_cast<std::size_t>(in.next_byte() - file.data()) + 2;
    if (end > file.size() || flac_crc(file.data() + at, file.data() + end) != 0) return false;
    at = end;

    const std::size_t taken = static_cast<std::size_t>(std::min<std::uint64_t>(n, wanted - done));
    const auto put = [&](std::size_t c, const auto& value) {
      float* const to = place.channel(c) + done;
      for (std::size_t i = 0; i < taken; ++i)
        to[i] = static_cast<float>(static_cast<std::int32_t>(value(i))) * unit;
    };
    // Without overflow, whatever the samples are.
    const auto left = [&](std::size_t i) { return static_cast<std::uint32_t>(samples[i]); };
    const auto right = [&](std::size_t i) { return static_cast<std::uint32_t>(samples[n + i]); };
    // The middle has lost its lowest bit, which is that of the side.
    const auto twice = [&](std::size_t i) { return left(i) * 2 | (right(i) & 1); };
    const auto half = [](std::uint32_t sum) { return static_cast<std::int32_t>(sum) >> 1; };
    if (layout == 8) {
      put(0, left);
      put(1, [&](std::size_t i) { return left(i) - right(i); });
    } else if (layout == 9) {
      put(0, [&](std::size_t i) { return left(i) + right(i); });
      put(1, right);
    } else if (layout == 10) {
      put(0, [&](std::size_t i) { return half(twice(i) + right(i)); });
      put(1, [&](std::size_t i) { return half(twice(i) - right(i)); });
    } else {
      for (std::uint32_t c = 0; c < channels; ++c) put(c, [&](std::size_t i) { return samples[c * n + i]; });
    }
    done += taken;
  }
  return true;
}

}  // namespace penstock::inline v0_1::detail
