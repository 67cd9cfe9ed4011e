// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/ed25519.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/crypto/openssl.hpp>
#include <penstock/storage/file.hpp>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A key of OpenSSL, which copies share; OpenSSL wipes a private one when the last of them is destroyed.
using owned_key = std::shared_ptr<EVP_PKEY>;

/// A key out of a text, read by a function of OpenSSL; null if there is none.
template <class Read>
[[nodiscard]] owned_key read_pem(std::string_view text, Read&& read) {
  constexpr std::size_t maximum = 64 << 10;
  if (text.size() > maximum) return {};
  const quiet_errors quiet;
  const auto in =
      openssl_made<BIO_free>(BIO_new_mem_buf(text.empty() ? "" : text.data(), static_cast<int>(text.size())));
  // Without this, OpenSSL would ask for a passphrase at the terminal, and wait.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return {read(in.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free};
}
/// Throws errc::format with one of the sentences for no key, and for one of another algorithm.
[[nodiscard]] inline owned_key must_be_ed25519(owned_key key, const char* none, const char* other) {
  if (!key) throw error(errc::format, none);
  if (EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) throw error(errc::format, other);
  return key;
}
[[nodiscard]] inline owned_key public_key_of(std::string_view text) {
  return must_be_ed25519(
      read_pem(text, PEM_read_bio_PUBKEY),
      "this has no PUBLIC KEY in the PEM format; write it with 'openssl pkey -in key.pem -pubout'",
      "this is the public key of another algorithm; make one of Ed25519 with 'openssl genpkey "
      "-algorithm ed25519', and write its public key");
}
[[nodiscard]] inline owned_key private_key_of(std::string_view text) {
  return must_be_ed25519(
      read_pem(text, PEM_read_bio_PrivateKey),
      "this has no PRIVATE KEY in the PEM format, or one with a passphrase; take it off with 'openssl "
      "pkey -in key.pem', or make one with 'openssl genpkey -algorithm ed25519'",
      "this is the private key of another algorithm; make one with 'openssl genpkey -algorithm ed25519'");
}
/// A key of 32 bytes, made by a function of OpenSSL.
template <class Make>
[[nodiscard]] owned_key raw_key(bytes_view bytes, std::string_view what, Make&& make) {
  if (bytes.size() != 32) throw error(errc::argument, {what, " of Ed25519 has 32 bytes, not ", bytes.size()});
  owned_key key(make(EVP_PKEY_ED25519, nullptr, openssl_bytes(bytes.data()), bytes.size()), EVP_PKEY_free);
  if (!key) openssl_refuses("Ed25519");
  return key;
}
/// The bytes of the public key, of either.
[[nodiscard]] inline std::array<std::byte, 32> public_bytes(const owned_key& key) {
  std::array<std::byte, 32> made;
  std::size_t written = made.size();
  if (EVP_PKEY_get_raw_public_key(key.get(), openssl_bytes(made.data()), &written) != 1)
    openssl_refuses("Ed25519");
  return made;
}

/// What `read` makes of the text of a file, which is wiped afterwards.
template <class Read>
[[nodiscard]] auto key_file(const std::string& path, Read&& read) {
  struct wiped {
    std::string text;
    ~wiped() { OPENSSL_cleanse(text.data(), text.size()); }
  } all;
  const auto session = file(std::vector<std::string>{path}, {.access = file_access::read}).connect();
  const std::uint64_t size = session.size(0);
  constexpr std::uint64_t maximum = 64 << 10;
  if (size > maximum) throw error(errc::format, {"a key has at most ", maximum, " bytes"}).in_file(path);
  all.text.resize(to_size(size));
  session.read(0, 0, {reinterpret_cast<std::byte*>(all.text.data()), all.text.size()});
  return in_file(path, [&] { return read(std::string_view(all.text)); });
}

}  // namespace detail

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
    const auto context = detail::openssl_made<EVP_MD_CTX_free>(EVP_MD_CTX_new());
    const detail::quiet_errors quiet;
    if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1)
      detail::openssl_refuses("Ed25519");
    return EVP_DigestVerify(context.get(), detail::openssl_bytes(signature.bytes.data()),
                            signature.bytes.size(), detail::some_bytes(bytes), bytes.size()) == 1;
  }
  [[nodiscard]] std::array<std::byte, size> bytes() const { return detail::public_bytes(key_); }

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
    const auto context = detail::openssl_made<EVP_MD_CTX_free>(EVP_MD_CTX_new());
    const detail::quiet_errors quiet;
    ed25519_signature made;
    std::size_t written = made.bytes.size();
    if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), detail::openssl_bytes(made.bytes.data()), &written,
                       detail::some_bytes(bytes), bytes.size()) != 1 ||
        written != made.bytes.size())
      detail::openssl_refuses("Ed25519");
    return made;
  }
  [[nodiscard]] verifying_key public_key() const { return verifying_key(detail::public_bytes(key_)); }

 private:
  explicit signing_key(detail::owned_key key) noexcept : key_(std::move(key)) {}

  detail::owned_key key_;
};

}  // namespace penstock::inline v0_1
