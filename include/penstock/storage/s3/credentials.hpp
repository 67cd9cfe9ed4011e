// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/credentials.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/cpp20.hpp>

#include <openssl/crypto.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// What requests to S3 are signed with. The default is nobody: an anonymous reader, whose requests are not
/// signed.
///
///     const s3_credentials mine{"AKIAIOSFODNN7EXAMPLE", "the secret"};
///
/// They have no operator<<, and no error or description shows a part of them; what is destroyed leaves
/// neither secret nor token in its memory.
class s3_credentials {
 public:
  s3_credentials() = default;
  s3_credentials(std::string key_id, std::string secret, std::string session_token = {},
                 std::optional<std::chrono::sys_seconds> expires = std::nullopt)
      : key_id_(std::move(key_id)),
        secret_(std::move(secret)),
        token_(std::move(session_token)),
        expires_(expires) {}
  s3_credentials(const s3_credentials&) = default;
  s3_credentials(s3_credentials&& other) noexcept { swap(other); }
  s3_credentials& operator=(s3_credentials other) noexcept {
    swap(other);
    return *this;
  }
  ~s3_credentials() {
    wipe(secret_);
    wipe(token_);
  }

  [[nodiscard]] bool anonymous() const noexcept { return key_id_.empty(); }
  [[nodiscard]] const std::string& key_id() const noexcept { return key_id_; }
  [[nodiscard]] const std::string& secret() const noexcept { return secret_; }
  [[nodiscard]] const std::string& session_token() const noexcept { return token_; }
  /// Their end, if they have one.
  [[nodiscard]] const std::optional<std::chrono::sys_seconds>& expires() const noexcept { return expires_; }

  [[nodiscard]] friend bool operator==(const s3_credentials& a, const s3_credentials& b) noexcept {
    return a.key_id_ == b.key_id_ && a.secret_ == b.secret_ && a.token_ == b.token_;
  }

 private:
  void swap(s3_credentials& other) noexcept {
    key_id_.swap(other.key_id_);
    secret_.swap(other.secret_);
    token_.swap(other.token_);
    expires_.swap(other.expires_);
  }
  static void wipe(std::string& chars) noexcept { OPENSSL_cleanse(chars.data(), chars.size()); }

  std::string key_id_, secret_, token_;
  std::optional<std::chrono::sys_seconds> expires_;
};

}  // namespace penstock::inline v0_1
