// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/temp_dir.hpp"

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace penstock_test {

/// What a server of a test shows: a certificate that nobody trusts.
class self_signed {
 public:
  self_signed() : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    const std::string files = test_authority(folder_.path()).make(certificate::self_signed).string();
    REQUIRE(SSL_CTX_use_certificate_file(get(), (files + ".pem").c_str(), SSL_FILETYPE_PEM) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(get(), (files + ".key").c_str(), SSL_FILETYPE_PEM) == 1);
  }
  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }

 private:
  temp_dir folder_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
};

}  // namespace penstock_test
