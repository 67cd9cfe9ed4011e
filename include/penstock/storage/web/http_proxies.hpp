// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/web/http_proxies.hpp needs OpenSSL: link penstock::http"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/http_error.hpp>
#include <penstock/storage/url.hpp>

#include <openssl/evp.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>

namespace penstock::inline v0_1::detail {

[[nodiscard]] inline std::string base64_of(std::span<const unsigned char> bytes) {
  std::string line((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends with a zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(line.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  line.resize(static_cast<std::size_t>(size));
  return line;
}

/// A proxy, and what its header Proxy-Authorization says; empty without a user.
struct http_proxy {
  url where;
  std::string authorization;
};

namespace proxies {

/// User and password may have percent-encoded characters.
inline std::string decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && text.size() - i > 2 ? hex_value(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(text[i + 2]);
    result += low < 0 ? text[i] : static_cast<char>(high * 16 + low);
    if (low >= 0) i += 2;
  }
  return result;
}

/// Whether a host is an address of a network, such as 10.0.0.0/8 or 2001:db8::/32.
inline bool is_in_network(const std::string& host, std::string_view network) {
  const std::size_t slash = network.find('/');
  std::string base(network.substr(0, slash));
  if (base.starts_with('[') && base.ends_with(']')) base = base.substr(1, base.size() - 2);
  const auto bits = parse_digits(network.substr(slash + 1));
  for (const int family : {AF_INET, AF_INET6}) {
    std::array<unsigned char, 16> one{}, other{};
    if (::inet_pton(family, host.c_str(), one.data()) != 1 ||
        ::inet_pton(family, base.c_str(), other.data()) != 1)
      continue;
    if (!bits || *bits > (family == AF_INET ? 32u : 128u)) return false;
    const auto whole = static_cast<std::ptrdiff_t>(*bits / 8);
    const auto at = static_cast<std::size_t>(whole);
    const unsigned rest = 0xff00u >> (*bits % 8) & 0xffu;
    return std::equal(one.begin(), one.begin() + whole, other.begin()) &&
           (rest == 0 || (one[at] & rest) == (other[at] & rest));
  }
  return false;
}

inline std::optional<http_proxy> parse(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::size_t colon = text.find("://");
  const std::string scheme = lowered(colon == std::string_view::npos ? "http" : text.substr(0, colon));
  if (colon != std::string_view::npos) text.remove_prefix(colon + 3);
  http_proxy made;
  const std::size_t at = text.rfind('@');
  const std::string_view user = at == std::string_view::npos ? "" : text.substr(0, at);
  if (at != std::string_view::npos) text.remove_prefix(at + 1);
  text = text.substr(0, text.find('/'));
  if (scheme != "http")
    throw error(errc::argument,
                {"the environment names a proxy of the scheme ", scheme, ", at ",
                 without_secrets("http://" + std::string(text)),
                 "; only http:// proxies are supported, https goes through them by CONNECT: name "
                 "one of those, put the host into no_proxy, or write {.proxies = false}"});
  try {
    made.where = parse_url("http://" + std::string(text));
  } catch (const error& e) {
    throw error(errc::argument, {"the proxy of http_proxy, https_proxy or all_proxy: ", e.message(),
                                 "; correct it, put the host into no_proxy, or write {.proxies = false}"});
  }
  if (made.where.port == 0) made.where.port = 1080;  // as curl
  if (const std::string said = decoded(user); !said.empty())
    made.authorization =
        "Basic " + base64_of({reinterpret_cast<const unsigned char*>(said.data()), said.size()});
  return made;
}

inline std::string variable(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return {};
}

}  // namespace proxies

/// The proxies that the environment names, as curl reads it: http_proxy, https_proxy, all_proxy and no_proxy.
/// All but http_proxy are also looked for in upper case; HTTP_PROXY could come from a request to a CGI
/// program. What no_proxy excepts are hosts, domains, addresses, and networks such as 10.0.0.0/8.
class http_proxies {
 public:
  http_proxies() = default;
  /// Reads the environment.
  [[nodiscard]] static http_proxies of_environment() {
    using proxies::variable;
    const std::string all = variable({"all_proxy", "ALL_PROXY"});
    const std::string plain = variable({"http_proxy"}), secure = variable({"https_proxy", "HTTPS_PROXY"});
    return {plain.empty() ? all : plain, secure.empty() ? all : secure, variable({"no_proxy", "NO_PROXY"})};
  }
  /// Empty texts are none. A proxy without a scheme is http. What is no http:// URL is an error where it
  /// would be used.
  http_proxies(std::string_view for_http, std::string_view for_https, std::string_view except)
      : http_(for_http), https_(for_https), except_(lowered(except)) {}

  /// The proxy for a URL; null if it is reached directly. Throws errc::argument, without any password, if the
  /// environment names one that is no http:// URL.
  [[nodiscard]] const http_proxy* of(const url& where) const {
    const choice& chosen = where.scheme == "http" ? http_ : https_;
    if ((!chosen.proxy && chosen.fault.empty()) || excepted(where)) return nullptr;
    if (!chosen.proxy) throw error(errc::argument, chosen.fault);
    return &*chosen.proxy;
  }

 private:
  struct choice {
    choice() = default;
    explicit choice(std::string_view text) {
      try {
        proxy = proxies::parse(text);
      } catch (const error& e) {
        fault = e.message();
      }
    }

    std::optional<http_proxy> proxy;
    std::string fault;  // why there is none although the environment names one
  };

  [[nodiscard]] bool excepted(const url& where) const {
    std::string_view rest = except_;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(", \t"), rest.size());
      std::string_view one = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (one == "*") return true;
      if (one.find('/') != std::string_view::npos) {
        if (proxies::is_in_network(where.host, one)) return true;
        continue;
      }
      const std::size_t colon = one.rfind(':');
      if (colon != std::string_view::npos &&
          (one.find(':') == colon || one.substr(0, colon).ends_with(']'))) {
        if (one.substr(colon + 1) != std::to_string(where.port_number())) continue;
        one = one.substr(0, colon);
      }
      if (one.starts_with('[') && one.ends_with(']')) one = one.substr(1, one.size() - 2);
      if (one.starts_with("*.")) one.remove_prefix(1);
      if (one.starts_with('.')) one.remove_prefix(1);
      if (one.ends_with('.')) one.remove_suffix(1);
      if (one.empty()) continue;
      std::string_view host = where.host;
      if (host.ends_with('.')) host.remove_suffix(1);
      if (host == one) return true;
      if (host.size() > one.size() && host.ends_with(one) && host[host.size() - one.size() - 1] == '.')
        return true;
    }
    return false;
  }

  choice http_, https_;
  std::string except_;
};

}  // namespace penstock::inline v0_1::detail
