// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "penstock/storage/s3/requests/hash.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

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

}  // namespace penstock::inline v0_1::detail::s3
