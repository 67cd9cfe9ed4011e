// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/url.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// A proxy, and what its header Proxy-Authorization says; empty without a user.
struct http_proxy {
  url where;
  std::string authorization;
};

/// The proxies that the environment names, as curl reads it: http_proxy, https_proxy, all_proxy and no_proxy.
/// All but http_proxy are also looked for in upper case; HTTP_PROXY could come from a request to a CGI
/// program. What no_proxy excepts are hosts, domains, addresses, and networks such as 10.0.0.0/8.
class http_proxies {
 public:
  http_proxies() = default;
  /// Reads the environment.
  [[nodiscard]] static http_proxies of_environment();
  /// Empty texts are none. A proxy without a scheme is http. What is no http:// URL is an error where it
  /// would be used.
  http_proxies(std::string_view for_http, std::string_view for_https, std::string_view except);

  /// The proxy for a URL; null if it is reached directly. Throws errc::argument, without any password, if the
  /// environment names one that is no http:// URL.
  [[nodiscard]] const http_proxy* of(const url& where) const;

 private:
  [[nodiscard]] bool excepted(const url& where) const;

  struct choice {
    std::optional<http_proxy> proxy;
    std::string fault;  // why there is none although the environment names one
  };
  [[nodiscard]] static choice chosen(std::string_view text);

  choice http_, https_;
  std::string except_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/web/http_proxies.ipp>
#endif
