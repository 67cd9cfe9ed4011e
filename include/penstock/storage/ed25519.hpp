// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/ed25519.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/crypto/pem.hpp>

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// An Ed25519 signature, as RFC 8032 and `openssl pkeyutl -sign -rawin` write it.
struct ed25519_signature {
  static constexpr std::size_t size = 64;
  std::array<std::byte, size> bytes{};
  friend bool operator==(const ed25519_signature&, const ed25519_signature&) = default;
};

/// A public key of Ed25519, which tells whether bytes were signed with its private key.
///
///     const auto key = verifying_key::from_pem(
///         "-----BEGIN PUBLIC KEY-----\n"
///         "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
///         "-----END PUBLIC KEY-----\n");
///     const bool signed_by_it = key.verifies(bytes_of(""), ed25519_signature{});
///
/// In: 32 bytes, or "PUBLIC KEY" in the PEM format, a text or a file, as `openssl pkey -pubout` writes it.
/// Errors: errc::argument for another number of bytes; errc::format for what is no such key, errc::io for a
/// file that cannot be read, with its name and what to do.
/// Threads: any number may use a key; copies share it.
class verifying_key {
 public:
  static constexpr std::size_t size = 32;

  explicit verifying_key(bytes_view bytes)
      : key_(detail::raw_key(bytes, "a public key", EVP_PKEY_new_raw_public_key)) {}
  [[nodiscard]] static verifying_key from_pem(std::string_view text) {
    return verifying_key(detail::public_key_of(text));
  }
  [[nodiscard]] static verifying_key from_file(const std::string& path) {
    return detail::key_file(path, [](std::string_view text) { return from_pem(text); });
  }

  /// Whether the signature is one of these bytes with the private key of this one.
  [[nodiscard]] bool verifies(bytes_view bytes, const ed25519_signature& signature) const {
    const detail::signing_context context;
    const detail::quiet_errors quiet;
    if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1) detail::no_ed25519();
    return EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.bytes.data()),
                            signature.bytes.size(), detail::some_bytes(bytes), bytes.size()) == 1;
  }
  [[nodiscard]] std::array<std::byte, size> bytes() const {
    std::array<std::byte, size> made;
    std::size_t written = made.size();
    if (EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(made.data()), &written) != 1)
      detail::no_ed25519();
    return made;
  }

 private:
  explicit verifying_key(detail::owned_key key) noexcept : key_(std::move(key)) {}

  detail::owned_key key_;
};

/// A private key of Ed25519, to publish signed manifests and lists of hashes.
///
///     const signing_key key(bytes_of("take the bytes from your vault!!"));
///     const ed25519_signature made = key.sign(bytes_of("a manifest"));
///     const bool right = key.public_key().verifies(bytes_of("a manifest"), made);
///
/// In: the 32 bytes that RFC 8032 calls the private key, or "PRIVATE KEY" in the PEM format, a text or a
/// file, as `openssl genpkey -algorithm ed25519` writes it. One that is encrypted with a passphrase is
/// refused.
/// It has no operator<<, no error shows a part of it, and what is destroyed leaves nothing in its memory.
/// Errors, threads: as `verifying_key`.
class signing_key {
 public:
  static constexpr std::size_t size = 32;

  explicit signing_key(bytes_view bytes)
      : key_(detail::raw_key(bytes, "a private key", EVP_PKEY_new_raw_private_key)) {}
  [[nodiscard]] static signing_key from_pem(std::string_view text) {
    return signing_key(detail::private_key_of(text));
  }
  [[nodiscard]] static signing_key from_file(const std::string& path) {
    return detail::key_file(path, [](std::string_view text) { return from_pem(text); });
  }

  [[nodiscard]] ed25519_signature sign(bytes_view bytes) const {
    const detail::signing_context context;
    const detail::quiet_errors quiet;
    ed25519_signature made;
    std::size_t written = made.bytes.size();
    if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.bytes.data()), &written,
                       detail::some_bytes(bytes), bytes.size()) != 1 ||
        written != made.bytes.size())
      detail::no_ed25519();
    return made;
  }
  [[nodiscard]] verifying_key public_key() const {
    std::array<std::byte, verifying_key::size> made;
    std::size_t written = made.size();
    if (EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(made.data()), &written) != 1)
      detail::no_ed25519();
    return verifying_key(made);
  }

 private:
  explicit signing_key(detail::owned_key key) noexcept : key_(std::move(key)) {}

  detail::owned_key key_;
};

}  // namespace penstock::inline v0_1
