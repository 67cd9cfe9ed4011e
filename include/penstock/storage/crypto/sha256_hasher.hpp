// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/crypto/sha256_hasher.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/sha256_list.hpp>

#include <openssl/evp.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

/// The SHA-256 of bytes that come in pieces.
class sha256_hasher {
 public:
  sha256_hasher() : context_(EVP_MD_CTX_new()) {
    if (!context_) throw std::bad_alloc();
    if (EVP_DigestInit_ex2(context_.get(), EVP_sha256(), nullptr) != 1) refused();
  }

  void add(bytes_view bytes) {
    if (bytes.empty()) return;
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) refused();
  }
  /// The hash of all that was added; nothing can be added afterwards.
  [[nodiscard]] sha256_hash finish() {
    sha256_hash made;
    if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(made.bytes.data()), nullptr) != 1)
      refused();
    return made;
  }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  [[noreturn, gnu::cold]] static void refused() {
    throw error(errc::state, "OpenSSL has no SHA-256 here: is its default provider or FIPS provider loaded?");
  }

  std::unique_ptr<EVP_MD_CTX, freed> context_;
};

}  // namespace penstock::inline v0_1::detail
