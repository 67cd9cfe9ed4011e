// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/crypto/segment_layout.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::inline v0_1::detail {

/// Where the bytes of an encrypted object are: a header, then segments that each end with a tag. All segments
/// but the last have one size; the header is counted to the first.
class segment_layout {
 public:
  static constexpr std::size_t salt_size = 32, prefix_size = 7;
  static constexpr std::size_t header_size = 1 + salt_size + prefix_size;
  static constexpr std::size_t tag_size = 16;
  static constexpr std::size_t least = header_size + tag_size + 1, largest = std::size_t{1} << 30;
  static constexpr std::uint64_t max_segments = std::uint64_t{1} << 32;  // the nonce has 4 bytes for them

  /// Throws errc::argument for a size that makes no sense.
  explicit segment_layout(std::size_t segment_size) : segment_(segment_size), room_(segment_ - tag_size) {
    if (segment_size < least || segment_size > largest)
      throw error(errc::argument,
                  {"segments of ", segment_size, " bytes: segment_size is from ", least, " bytes to 1 GiB"});
  }

  [[nodiscard]] std::uint64_t segment_size() const noexcept { return segment_; }
  /// The plaintext that a segment can hold.
  [[nodiscard]] std::uint64_t room(std::uint64_t segment) const noexcept {
    return segment == 0 ? room_ - header_size : room_;
  }

  /// The segments of an object of this size; none if no object has this size.
  [[nodiscard]] std::optional<std::uint64_t> segments(std::uint64_t file_size) const noexcept {
    if (file_size < header_size + tag_size) return std::nullopt;
    const std::uint64_t rest = file_size % segment_, whole = file_size / segment_;
    // A segment that is a tag alone would never be read, so cutting there would go unnoticed; no writer makes
    // it.
    if ((rest != 0 && rest <= tag_size) || whole > max_segments || (whole == max_segments && rest != 0))
      return std::nullopt;
    return whole + (rest != 0 ? 1 : 0);
  }
  [[nodiscard]] static std::uint64_t plain_size(std::uint64_t file_size, std::uint64_t segments) noexcept {
    return file_size - header_size - segments * tag_size;
  }
  /// The size of the object that a plaintext of this size becomes.
  [[nodiscard]] std::uint64_t file_size(std::uint64_t plain_size) const noexcept {
    const std::uint64_t segments = plain_size == 0 ? 1 : segment_at(plain_size - 1) + 1;
    return plain_size + header_size + segments * tag_size;
  }

  /// The segment with this byte of the plaintext.
  [[nodiscard]] std::uint64_t segment_at(std::uint64_t plain) const noexcept {
    return (plain + header_size) / room_;
  }
  [[nodiscard]] std::uint64_t plain_begin(std::uint64_t segment) const noexcept {
    return segment == 0 ? 0 : segment * room_ - header_size;
  }
  [[nodiscard]] std::uint64_t file_begin(std::uint64_t segment) const noexcept {
    return segment == 0 ? header_size : segment * segment_;
  }
  [[nodiscard]] std::uint64_t file_end(std::uint64_t segment, std::uint64_t file_size) const noexcept {
    return std::min((segment + 1) * segment_, file_size);
  }
  /// Where a byte of the plaintext is in the file, and the reverse; of other bytes, the next one.
  [[nodiscard]] std::uint64_t file_at(std::uint64_t plain) const noexcept {
    return plain + header_size + segment_at(plain) * tag_size;
  }
  [[nodiscard]] std::uint64_t plain_at(std::uint64_t file) const noexcept {
    if (file < header_size) return 0;
    const std::uint64_t segment = file / segment_;
    return segment * room_ + std::min(file % segment_, room_) - header_size;
  }

 private:
  std::uint64_t segment_;
  std::uint64_t room_;
};

}  // namespace penstock::inline v0_1::detail
