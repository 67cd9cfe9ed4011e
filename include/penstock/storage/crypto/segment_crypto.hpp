// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/crypto/openssl.hpp>
#include <penstock/storage/encryption.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

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

/// A cipher of OpenSSL, looked up once: it is slow to find.
class cipher_handle {
 public:
  explicit cipher_handle(const char* name)
      : found_(EVP_CIPHER_fetch(nullptr, name, nullptr), EVP_CIPHER_free) {
    if (!found_) openssl_refuses(name);
  }
  [[nodiscard]] const EVP_CIPHER* get() const noexcept { return found_.get(); }

 private:
  std::shared_ptr<EVP_CIPHER> found_;
};

/// HKDF with SHA-256: the key of one object.
[[nodiscard]] inline encryption_key derived_key(const encryption_key& key, bytes_view salt,
                                                std::string_view associated) {
  const openssl_object<EVP_KDF, EVP_KDF_free> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (!hkdf) openssl_refuses("HKDF");
  const auto context = openssl_made<EVP_KDF_CTX_free>(EVP_KDF_CTX_new(hkdf.get()));
  char digest[] = "SHA256";
  const auto octets = [](const char* name, bytes_view bytes) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<unsigned char*>(some_bytes(bytes)),
                                             bytes.size());
  };
  const OSSL_PARAM chosen[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                               octets(OSSL_KDF_PARAM_KEY, key.bytes()), octets(OSSL_KDF_PARAM_SALT, salt),
                               octets(OSSL_KDF_PARAM_INFO, bytes_of(associated)), OSSL_PARAM_construct_end()};
  std::array<std::byte, encryption_key::size> made;
  const int done = EVP_KDF_derive(context.get(), openssl_bytes(made.data()), made.size(), chosen);
  if (done != 1) openssl_refuses("HKDF with SHA-256");
  encryption_key derived{made};
  OPENSSL_cleanse(made.data(), made.size());
  return derived;
}

/// The key of an object; an error of the provider gets its name.
template <key_provider Keys>
[[nodiscard]] encryption_key key_of(const Keys& keys, std::string_view name) {
  return in_file(name, [&]() -> encryption_key { return keys(name); });
}

/// What the segments of one object have in common.
struct object_cipher {
  object_cipher(const std::array<std::byte, segment_layout::header_size>& header, const encryption_key& from,
                std::string_view associated)
      : key(derived_key(from, bytes_view(header).subspan(1, segment_layout::salt_size), associated)) {
    std::memcpy(prefix.data(), header.data() + 1 + segment_layout::salt_size, prefix.size());
  }

  encryption_key key;
  std::array<std::byte, segment_layout::prefix_size> prefix;

  [[nodiscard]] std::array<std::byte, 12> nonce(std::uint64_t segment, bool last) const noexcept {
    std::array<std::byte, 12> made;
    std::memcpy(made.data(), prefix.data(), prefix.size());
    for (unsigned i = 0; i < 4; ++i) made[7 + i] = static_cast<std::byte>(segment >> (24 - 8 * i));
    made[11] = last ? std::byte{1} : std::byte{0};
    return made;
  }
};

/// A context of OpenSSL that seals or opens segments of one object at a time.
class segment_context {
 public:
  void decrypt_with(const cipher_handle& cipher, const encryption_key& key) { begin(cipher, key, 0); }
  void encrypt_with(const cipher_handle& cipher, const encryption_key& key) { begin(cipher, key, 1); }

  /// Decrypts a segment, whose tag is at its end, to `into`, which has the other bytes' size. Whether the tag
  /// is right; if it is not, what is in `into` is worth nothing.
  [[nodiscard]] bool open(const std::array<std::byte, 12>& nonce, bytes_view sealed, std::byte* into) {
    EVP_CIPHER_CTX* const context = context_.get();
    const std::size_t size = sealed.size() - segment_layout::tag_size;
    auto* const tag = const_cast<std::byte*>(sealed.data() + size);
    std::byte unused[16];
    int count = 0;
    if (EVP_DecryptInit_ex2(context, nullptr, nullptr, openssl_bytes(nonce.data()), nullptr) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, int{segment_layout::tag_size}, tag) != 1)
      refused();
    if (size != 0 && EVP_DecryptUpdate(context, openssl_bytes(into), &count, openssl_bytes(sealed.data()),
                                       static_cast<int>(size)) != 1)
      refused();
    const quiet_errors quiet;
    return EVP_DecryptFinal_ex(context, openssl_bytes(unused), &count) == 1;
  }

  /// Encrypts a segment to `into`, and puts its tag behind it.
  void seal(const std::array<std::byte, 12>& nonce, bytes_view plain, std::byte* into) {
    EVP_CIPHER_CTX* const context = context_.get();
    std::byte unused[16];
    int count = 0;
    if (EVP_EncryptInit_ex2(context, nullptr, nullptr, openssl_bytes(nonce.data()), nullptr) != 1) refused();
    if (!plain.empty() && EVP_EncryptUpdate(context, openssl_bytes(into), &count, openssl_bytes(plain.data()),
                                            static_cast<int>(plain.size())) != 1)
      refused();
    if (EVP_EncryptFinal_ex(context, openssl_bytes(unused), &count) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, int{segment_layout::tag_size},
                            into + plain.size()) != 1)
      refused();
  }

 private:
  void begin(const cipher_handle& cipher, const encryption_key& key, int encrypts) {
    const auto* const bytes = openssl_bytes(key.bytes().data());
    if (EVP_CipherInit_ex2(context_.get(), cipher.get(), bytes, nullptr, encrypts, nullptr) != 1) refused();
  }
  [[noreturn, gnu::cold]] static void refused() {
    throw error(errc::state, "OpenSSL could not run the cipher of this object");
  }

  openssl_object<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> context_ =
      openssl_made<EVP_CIPHER_CTX_free>(EVP_CIPHER_CTX_new());
};

inline void fill_randomly(mutable_bytes into) {
  if (RAND_bytes(openssl_bytes(into.data()), static_cast<int>(into.size())) != 1)
    throw error(errc::state, "OpenSSL has no random numbers here");
}

}  // namespace penstock::inline v0_1::detail
