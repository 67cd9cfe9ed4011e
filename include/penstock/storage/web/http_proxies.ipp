// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/web/http_proxies.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/http_error.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace penstock::inline v0_1 {
namespace detail {

namespace proxies {

inline std::string base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      result += i + k > text.size() ? '=' : digits[bits >> (18 - 6 * k) & 63];
  }
  return result;
}

inline unsigned hex(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  return static_cast<unsigned>((c | 0x20) - 'a') + 10;
}
/// User and password may have percent-encoded characters.
inline std::string decoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdefABCDEF";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && text.size() - i > 2 && digits.find(text[i + 1]) != std::string_view::npos &&
        digits.find(text[i + 2]) != std::string_view::npos) {
      result += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
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
  const std::string scheme = lower(colon == std::string_view::npos ? "http" : text.substr(0, colon));
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
  if (!user.empty()) made.authorization = "Basic " + base64(decoded(user));
  return made;
}

inline std::string variable(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return {};
}

}  // namespace proxies

PENSTOCK_INLINE http_proxies http_proxies::of_environment() {
  using proxies::variable;
  const std::string all = variable({"all_proxy", "ALL_PROXY"});
  const std::string plain = variable({"http_proxy"}), secure = variable({"https_proxy", "HTTPS_PROXY"});
  return {plain.empty() ? all : plain, secure.empty() ? all : secure, variable({"no_proxy", "NO_PROXY"})};
}

PENSTOCK_INLINE http_proxies::http_proxies(std::string_view for_http, std::string_view for_https,
                                           std::string_view except)
    : http_(chosen(for_http)), https_(chosen(for_https)), except_(proxies::lower(except)) {}

PENSTOCK_INLINE http_proxies::choice http_proxies::chosen(std::string_view text) {
  try {
    return {proxies::parse(text), {}};
  } catch (const error& e) {
    return {std::nullopt, std::string(e.message())};
  }
}

PENSTOCK_INLINE const http_proxy* http_proxies::of(const url& where) const {
  const auto& chosen = where.scheme == "http" ? http_ : https_;
  if ((!chosen.proxy && chosen.fault.empty()) || excepted(where)) return nullptr;
  if (!chosen.proxy) throw error(errc::argument, chosen.fault);
  return &*chosen.proxy;
}

PENSTOCK_INLINE bool http_proxies::excepted(const url& where) const {
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
    if (colon != std::string_view::npos && (one.find(':') == colon || one.substr(0, colon).ends_with(']'))) {
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

}  // namespace detail
}  // namespace penstock::inline v0_1
