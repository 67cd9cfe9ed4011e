// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/encryption.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <openssl/crypto.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace penstock::inline v0_1 {

/// A key of 256 bits, for `decrypting` and `encrypting`.
///
///     const encryption_key key(bytes_of("take the bytes from your vault!!"));
///
/// In: exactly 32 bytes; errc::argument otherwise. It has no operator<<, no error or description shows a part
/// of it, and what is destroyed leaves nothing in its memory.
class encryption_key {
 public:
  static constexpr std::size_t size = 32;

  explicit encryption_key(bytes_view bytes) {
    if (bytes.size() != size)
      throw error(errc::argument, {"an encryption key has 32 bytes, not ", bytes.size()});
    std::memcpy(bytes_.data(), bytes.data(), size);
  }
  encryption_key(const encryption_key&) = default;
  encryption_key& operator=(const encryption_key&) = default;
  ~encryption_key() { OPENSSL_cleanse(bytes_.data(), size); }

  [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

 private:
  std::array<std::byte, size> bytes_;
};

/// Finds the key of an object by its name: a function object that is a value, and that any number of threads
/// may call at once. An `error` that it throws gets the object's name, and everything passes through.
template <class F>
concept key_provider = std::copy_constructible<F> && requires(const F& f, std::string_view name) {
  { f(name) } -> std::convertible_to<encryption_key>;
};

/// One key for all objects.
class one_key {
 public:
  explicit one_key(const encryption_key& key) : key_(key) {}
  [[nodiscard]] const encryption_key& operator()(std::string_view) const noexcept { return key_; }

 private:
  encryption_key key_;
};

/// AES with a key of 256 bits in Galois/counter mode, as the cipher of `decrypting` and `encrypting`: an
/// authenticated one with keys of 32 bytes, nonces of 12 and tags of 16, of which OpenSSL knows the `name`.
struct aes_256_gcm {
  static constexpr const char* name = "AES-256-GCM";  ///< what OpenSSL calls it
};

}  // namespace penstock::inline v0_1
