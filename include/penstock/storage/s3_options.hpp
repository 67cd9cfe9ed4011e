// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3_options.hpp needs Boost.Beast, OpenSSL and pugixml: link penstock::s3"
#endif

#include <penstock/storage/http_options.hpp>
#include <penstock/storage/s3/credential_chain.hpp>
#include <penstock/storage/s3/endpoint.hpp>
#include <penstock/storage/s3/environment.hpp>

#include <optional>

namespace penstock::inline v0_1 {

/// Options of `s3` and `s3_writer`. None of them changes the bytes.
///
///     const s3_options open_data{.place = {.region = "us-west-2"},
///                                .identity = {.credentials = s3_credentials()}};
struct s3_options {
  /// Where the store is; what is left empty comes from the environment and the profile.
  s3_place place = {};
  /// As whom it is asked; left alone, credentials are looked for where the tools of AWS do.
  s3_identity identity = {};
  /// Whether you pay for requests to a bucket whose owner wants that. Without it, such a bucket refuses.
  bool requester_pays = false;
  /// Whether objects that are read whole are compared with the checksums that the store keeps of them.
  bool verify_checksums = true;
  /// Connections, time-outs, certificates, proxies; retries, limit and second requests.
  http_options connection = {};
  /// These variables instead of the process's, for a program that has several stores.
  std::optional<s3_environment> environment = std::nullopt;
};

}  // namespace penstock::inline v0_1
