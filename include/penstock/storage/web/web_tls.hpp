// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/web/web_call.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <unistd.h>

#include <arpa/inet.h>

#include <array>
#include <cstdlib>

namespace penstock::inline v0_1::detail::web {

/// Whether a host is an address; certificates name those in another way, and SNI not at all.
inline bool is_address(const std::string& host) noexcept {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// What all connections of a client trust: TLS 1.2 or newer, and the system's certificates or those of a
/// file.
/// Throws errc::argument for a file that cannot be used.
inline boost::asio::ssl::context tls_context(const std::string& ca_file, bool verify) {
  namespace ssl = boost::asio::ssl;
  ssl::context made(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(made.native_handle(), TLS1_2_VERSION);
  made.set_verify_mode(verify ? ssl::verify_peer : ssl::verify_none);
  boost::system::error_code failed;
  if (!ca_file.empty()) {
    made.load_verify_file(ca_file, failed);
    if (failed)
      throw error(errc::argument, {"http_options::ca_file cannot be used: ", failed.message(),
                                   "; it must hold certificates in the PEM format"})
          .in_file(ca_file);
    return made;
  }
  made.set_default_verify_paths(failed);
  // An OpenSSL that was not built for this system looks for certificates in a place of its own.
  if (std::getenv(X509_get_default_cert_file_env()) == nullptr &&
      ::access(X509_get_default_cert_file(), R_OK) != 0) {
    for (const char* const known : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                    "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
      if (::access(known, R_OK) != 0) continue;
      made.load_verify_file(known, failed);
      break;
    }
  }
  return made;
}

/// Names the host that the server must prove to be. The dot that ends an absolute name is in no certificate.
inline void expect_host(SSL* tls, std::string host, bool verify) {
  if (host.ends_with('.')) host.pop_back();
  const bool address = is_address(host);
  if (!address) SSL_set_tlsext_host_name(tls, host.c_str());
  if (!verify) return;
  SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const int set = address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host.c_str())
                          : SSL_set1_host(tls, host.c_str());
  if (set != 1) throw error(errc::io, "OpenSSL did not accept the host's name");
}

/// The error of a handshake: what is wrong with the certificate, or what OpenSSL says.
inline error tls_failure(const call& what, SSL* tls, const boost::system::error_code& code) {
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(code.value()));
  if (code.category() == net::error::get_ssl_category() &&
      (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
       reason == SSL_R_PACKET_LENGTH_TOO_LONG))
    return what.failure({"the server does not speak TLS at this port; write http://, or the port of https"})
        .recurring();
  const long found = SSL_get_verify_result(tls);
  // a certificate that nobody looks at is not why it failed
  if (found == X509_V_OK || SSL_get_verify_mode(tls) == SSL_VERIFY_NONE)
    return what.failure({"no connection by TLS: ", code.message()});
  std::string line = "the server's certificate is refused: ";
  switch (found) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      append(line, {"it is of another host than ", what.where.host, "; use a name that the certificate has"});
      break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      line += "it has expired; the server needs a new one, or this machine's clock is wrong";
      break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      line += "it is not valid yet; this machine's clock may be wrong";
      break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      append(line, {"nobody who is trusted has signed it (", X509_verify_cert_error_string(found),
                    "); if it is right, name its authority's certificate in http_options::ca_file"});
      break;
    default:
      line += X509_verify_cert_error_string(found);
  }
  return what.with_facts(error(errc::io, line)).recurring();
}

}  // namespace penstock::inline v0_1::detail::web
