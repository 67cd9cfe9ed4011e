// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/crypto/pem.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/file.hpp>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

[[noreturn, gnu::cold]] inline void no_ed25519() {
  throw error(errc::state, "OpenSSL has no Ed25519 here: is its default provider loaded?");
}

/// A key of OpenSSL, which copies share; OpenSSL wipes a private one when the last of them is destroyed.
class owned_key {
 public:
  owned_key() noexcept = default;
  explicit owned_key(EVP_PKEY* key) noexcept : key_(key) {}
  owned_key(const owned_key& other) noexcept : key_(other.key_) {
    if (key_ != nullptr) EVP_PKEY_up_ref(key_);
  }
  owned_key(owned_key&& other) noexcept : key_(std::exchange(other.key_, nullptr)) {}
  owned_key& operator=(owned_key other) noexcept {
    std::swap(key_, other.key_);
    return *this;
  }
  ~owned_key() { EVP_PKEY_free(key_); }
  [[nodiscard]] EVP_PKEY* get() const noexcept { return key_; }
  [[nodiscard]] explicit operator bool() const noexcept { return key_ != nullptr; }

 private:
  EVP_PKEY* key_ = nullptr;
};

/// What one signature is made or verified with.
class signing_context {
 public:
  signing_context() : context_(EVP_MD_CTX_new()) {
    if (!context_) throw std::bad_alloc();
  }
  [[nodiscard]] EVP_MD_CTX* get() const noexcept { return context_.get(); }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, freed> context_;
};

/// Keeps failures that are expected from what else uses OpenSSL in this thread.
struct quiet_errors {
  quiet_errors() noexcept { ERR_set_mark(); }
  quiet_errors(const quiet_errors&) = delete;
  quiet_errors& operator=(const quiet_errors&) = delete;
  ~quiet_errors() { ERR_pop_to_mark(); }
};

/// OpenSSL takes no null pointer, even for nothing.
[[nodiscard]] inline const unsigned char* some_bytes(bytes_view bytes) noexcept {
  static constexpr unsigned char nothing{};
  return bytes.empty() ? &nothing : reinterpret_cast<const unsigned char*>(bytes.data());
}

/// A key out of a text, read by a function of OpenSSL; null if there is none.
template <class Read>
[[nodiscard]] owned_key read_pem(std::string_view text, Read&& read) {
  constexpr std::size_t maximum = 64 << 10;
  if (text.size() > maximum) return {};
  struct freed {
    void operator()(BIO* in) const noexcept { BIO_free(in); }
  };
  const quiet_errors quiet;
  const std::unique_ptr<BIO, freed> in(
      BIO_new_mem_buf(text.empty() ? "" : text.data(), static_cast<int>(text.size())));
  if (!in) throw std::bad_alloc();
  // Without this, OpenSSL would ask for a passphrase at the terminal, and wait.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return owned_key(read(in.get(), nullptr, no_passphrase, nullptr));
}
/// A key of 32 bytes, made by a function of OpenSSL.
template <class Make>
[[nodiscard]] owned_key raw_key(bytes_view bytes, std::string_view what, Make&& make) {
  if (bytes.size() != 32) throw error(errc::argument, {what, " of Ed25519 has 32 bytes, not ", bytes.size()});
  owned_key key(
      make(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  if (!key) no_ed25519();
  return key;
}
[[nodiscard]] inline bool is_ed25519(const owned_key& key) noexcept {
  return EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_ED25519;
}

[[nodiscard]] inline owned_key public_key_of(std::string_view text) {
  owned_key key = read_pem(text, PEM_read_bio_PUBKEY);
  if (!key)
    throw error(errc::format,
                "this has no PUBLIC KEY in the PEM format; write it with 'openssl pkey -in key.pem -pubout'");
  if (!is_ed25519(key))
    throw error(errc::format,
                "this is the public key of another algorithm; make one of Ed25519 with 'openssl genpkey "
                "-algorithm ed25519', and write its public key");
  return key;
}
[[nodiscard]] inline owned_key private_key_of(std::string_view text) {
  owned_key key = read_pem(text, PEM_read_bio_PrivateKey);
  if (!key)
    throw error(
        errc::format,
        "this has no PRIVATE KEY in the PEM format, or one with a passphrase; take it off with 'openssl "
        "pkey -in key.pem', or make one with 'openssl genpkey -algorithm ed25519'");
  if (!is_ed25519(key))
    throw error(
        errc::format,
        "this is the private key of another algorithm; make one with 'openssl genpkey -algorithm ed25519'");
  return key;
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

}  // namespace penstock::inline v0_1::detail
