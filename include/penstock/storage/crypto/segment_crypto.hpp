// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/crypto/segment_layout.hpp>
#include <penstock/storage/encryption.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::detail {

[[noreturn, gnu::cold]] inline void openssl_refuses(const char* what) {
  throw error(errc::state,
              {"OpenSSL has no ", what, " here: is its default provider or FIPS provider loaded?"});
}

[[nodiscard]] inline unsigned char* openssl_bytes(std::byte* bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes);
}
[[nodiscard]] inline const unsigned char* openssl_bytes(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}

/// A cipher of OpenSSL, looked up once: it is slow to find.
class cipher_handle {
 public:
  explicit cipher_handle(const char* name) : found_(EVP_CIPHER_fetch(nullptr, name, nullptr)) {
    if (found_ == nullptr) openssl_refuses(name);
  }
  cipher_handle(const cipher_handle& other) noexcept : found_(other.found_) { EVP_CIPHER_up_ref(found_); }
  cipher_handle& operator=(cipher_handle other) noexcept {
    std::swap(found_, other.found_);
    return *this;
  }
  ~cipher_handle() { EVP_CIPHER_free(found_); }
  [[nodiscard]] const EVP_CIPHER* get() const noexcept { return found_; }

 private:
  EVP_CIPHER* found_;
};

/// HKDF with SHA-256: the key of one object.
[[nodiscard]] inline encryption_key derived_key(const encryption_key& key, bytes_view salt,
                                                std::string_view associated) {
  struct freed {
    void operator()(EVP_KDF* kdf) const noexcept { EVP_KDF_free(kdf); }
    void operator()(EVP_KDF_CTX* context) const noexcept { EVP_KDF_CTX_free(context); }
  };
  const std::unique_ptr<EVP_KDF, freed> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  if (!hkdf) openssl_refuses("HKDF");
  const std::unique_ptr<EVP_KDF_CTX, freed> context(EVP_KDF_CTX_new(hkdf.get()));
  if (!context) throw std::bad_alloc();
  char digest[] = "SHA256";
  const auto octets = [](const char* name, bytes_view bytes) {
    static std::byte nothing{};  // OpenSSL takes no null pointer
    return OSSL_PARAM_construct_octet_string(
        name, bytes.empty() ? &nothing : const_cast<std::byte*>(bytes.data()), bytes.size());
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
  try {
    return keys(name);
  } catch (error& failed) {
    failed.in_file(name);
    throw;
  }
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
  segment_context() : context_(EVP_CIPHER_CTX_new()) {
    if (!context_) throw std::bad_alloc();
  }

  void decrypt_with(const cipher_handle& cipher, const encryption_key& key) {
    const auto* const bytes = openssl_bytes(key.bytes().data());
    if (EVP_DecryptInit_ex2(context_.get(), cipher.get(), bytes, nullptr, nullptr) != 1) refused();
  }
  void encrypt_with(const cipher_handle& cipher, const encryption_key& key) {
    const auto* const bytes = openssl_bytes(key.bytes().data());
    if (EVP_EncryptInit_ex2(context_.get(), cipher.get(), bytes, nullptr, nullptr) != 1) refused();
  }

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
    ERR_set_mark();  // a wrong tag is no news for what else uses OpenSSL in this thread
    const bool right = EVP_DecryptFinal_ex(context, openssl_bytes(unused), &count) == 1;
    ERR_pop_to_mark();
    return right;
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
  struct freed {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
  };
  [[noreturn, gnu::cold]] static void refused() {
    throw error(errc::state, "OpenSSL could not run the cipher of this object");
  }

  std::unique_ptr<EVP_CIPHER_CTX, freed> context_;
};

/// Fills with bytes that nobody can guess.
inline void fill_randomly(mutable_bytes into) {
  if (RAND_bytes(openssl_bytes(into.data()), static_cast<int>(into.size())) != 1)
    throw error(errc::state, "OpenSSL has no random numbers here");
}

}  // namespace penstock::inline v0_1::detail
