// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/web/http_proxies.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <bit>
#include <cstring>

namespace penstock::inline v0_1::detail::s3 {

using digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

[[nodiscard]] inline const unsigned char* octets(std::string_view chars) noexcept {
  return reinterpret_cast<const unsigned char*>(chars.data());
}

[[nodiscard]] inline digest sha256(std::string_view chars) {
  digest out{};
  if (SHA256(octets(chars), chars.size(), out.data()) == nullptr)
    throw error(errc::state, "OpenSSL has no SHA-256 here, which requests to S3 are signed with");
  return out;
}

/// HMAC-SHA-256 of `chars` with the `length` bytes at `secret`.
[[nodiscard]] inline digest hmac_sha256(const unsigned char* secret, std::size_t length,
                                        std::string_view chars) {
  digest out{};
  unsigned int written = 0;
  if (HMAC(EVP_sha256(), secret, static_cast<int>(length), octets(chars), chars.size(), out.data(),
           &written) == nullptr ||
      written != out.size())
    throw error(errc::state, "OpenSSL has no HMAC with SHA-256 here, which requests to S3 are signed with");
  return out;
}
[[nodiscard]] inline digest hmac_sha256(const digest& secret, std::string_view chars) {
  return hmac_sha256(secret.data(), secret.size(), chars);
}

inline void append_hex(std::string& line, std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    line += digits[byte >> 4];
    line += digits[byte & 15];
  }
}

/// The SHA-256 of a request's body, as `x-amz-content-sha256` has it.
[[nodiscard]] inline std::string payload_hash(std::string_view body) {
  std::string line;
  append_hex(line, sha256(body));
  return line;
}

/// CRCs whose bits are reflected, with all ones at both ends, eight bytes at a time.
/// Source: Kounavis and Berry, "A Systematic Approach to Building High Performance, Software-based, CRC
/// Generators" (2005).
template <class Word, Word Polynomial>
class reflected_crc {
 public:
  [[nodiscard]] static Word of(bytes_view bytes) {
    static const tables all = made();
    Word crc = static_cast<Word>(~Word{0});
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, at, 8);
      if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
      eight ^= crc;
      crc = 0;
      for (std::size_t i = 0; i < 8; ++i) crc ^= all[7 - i][(eight >> (8 * i)) & 0xff];
    }
    for (; left != 0; ++at, --left)
      crc = static_cast<Word>((crc >> 8) ^ all[0][(crc ^ std::to_integer<Word>(*at)) & 0xff]);
    return static_cast<Word>(~crc);
  }

 private:
  using tables = std::array<std::array<Word, 256>, 8>;
  [[nodiscard]] static tables made() {
    tables all{};
    for (std::size_t i = 0; i < 256; ++i) {
      Word crc = static_cast<Word>(i);
      for (int bit = 0; bit < 8; ++bit)
        crc = static_cast<Word>((crc >> 1) ^ ((crc & 1) != 0 ? Polynomial : 0));
      all[0][i] = crc;
    }
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t n = 1; n < 8; ++n)
        all[n][i] = static_cast<Word>((all[n - 1][i] >> 8) ^ all[0][all[n - 1][i] & 0xff]);
    return all;
  }
};
using crc32 = reflected_crc<std::uint32_t, 0xEDB88320u>;
using crc32c = reflected_crc<std::uint32_t, 0x82F63B78u>;
using crc64nvme = reflected_crc<std::uint64_t, 0x9A6C9329AC4BC9B5u>;

/// A CRC as headers have it: base64 of its bytes, the highest first.
template <class Word>
[[nodiscard]] std::string base64_of_crc(Word crc) {
  std::array<unsigned char, sizeof(Word)> bytes{};
  for (std::size_t i = 0; i < sizeof(Word); ++i)
    bytes[i] = static_cast<unsigned char>(crc >> (8 * (sizeof(Word) - 1 - i)));
  return base64_of(bytes);
}

/// The header Content-MD5 of a body, by which every store notices one that changed on its way; empty where
/// OpenSSL has no MD5, as in FIPS mode.
[[nodiscard]] inline std::string md5_of(std::string_view body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  if (EVP_Digest(body.data(), body.size(), out.data(), &size, EVP_md5(), nullptr) != 1) return {};
  return base64_of({out.data(), size});
}

/// A checksum of a whole object that a store gave, and what it must be.
struct known_checksum {
  std::string_view name;  // as S3 calls it
  std::string_view value;
};
/// The best one among an answer's headers. A checksum of the parts' checksums, which S3 marks as COMPOSITE or
/// by "-n" at its end, tells nothing of bytes in one piece; SHA-1 and MD5 are left out too.
template <class Header>
[[nodiscard]] std::optional<known_checksum> checksum_of(Header&& header) {
  const std::string_view type = header("x-amz-checksum-type");
  if (type.empty() || type == "FULL_OBJECT") {
    for (const std::string_view name : {"crc32c", "crc32", "crc64nvme", "sha256"}) {
      const std::string_view value = trimmed(header("x-amz-checksum-" + std::string(name)));
      if (!value.empty() && value.find('-') == std::string_view::npos) return known_checksum{name, value};
    }
  }
  const std::string_view google = header("x-goog-hash");
  constexpr std::string_view wanted = "crc32c=";
  if (const std::size_t at = google.find(wanted); at != std::string_view::npos) {
    const std::string_view rest = google.substr(at + wanted.size());
    return known_checksum{"crc32c", trimmed(rest.substr(0, rest.find(',')))};
  }
  return std::nullopt;
}
/// What that checksum is of these bytes.
[[nodiscard]] inline std::string checksum_of(std::string_view name, bytes_view bytes) {
  if (name == "crc32c") return base64_of_crc(crc32c::of(bytes));
  if (name == "crc32") return base64_of_crc(crc32::of(bytes));
  if (name == "crc64nvme") return base64_of_crc(crc64nvme::of(bytes));
  return base64_of(sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

}  // namespace penstock::inline v0_1::detail::s3
