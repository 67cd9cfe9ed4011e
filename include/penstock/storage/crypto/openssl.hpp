// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/crypto/openssl.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <openssl/err.h>
#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

[[noreturn, gnu::cold]] inline void openssl_refuses(const char* what) {
  throw error(errc::state,
              {"OpenSSL has no ", what, " here: is its default provider or FIPS provider loaded?"});
}

/// An object of OpenSSL, which one of its functions frees.
template <class T, auto Free>
using openssl_object = std::unique_ptr<T, freed_by<Free>>;
/// OpenSSL returns a null pointer if there is no memory.
template <auto Free, class T>
[[nodiscard]] openssl_object<T, Free> openssl_made(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return openssl_object<T, Free>(made);
}
using digest_context = openssl_object<EVP_MD_CTX, EVP_MD_CTX_free>;

/// Keeps failures that are expected from what else uses OpenSSL in this thread.
struct quiet_errors : unmovable {
  quiet_errors() noexcept { ERR_set_mark(); }
  ~quiet_errors() { ERR_pop_to_mark(); }
};

[[nodiscard]] inline unsigned char* openssl_bytes(std::byte* bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes);
}
[[nodiscard]] inline const unsigned char* openssl_bytes(const std::byte* bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes);
}
/// OpenSSL takes no null pointer, even for nothing.
[[nodiscard]] inline const unsigned char* some_bytes(bytes_view bytes) noexcept {
  static constexpr unsigned char nothing{};
  return bytes.empty() ? &nothing : openssl_bytes(bytes.data());
}

}  // namespace penstock::inline v0_1::detail
