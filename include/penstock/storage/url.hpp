// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/file_names.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// The parts of an absolute URL of an object, as `parse_url` makes them.
///
/// The query may be a signature that grants access, so a `url` has no `operator<<`: show `without_secrets()`.
struct url {
  std::string scheme;      ///< http, https or s3
  std::string host;        ///< in lower case; an IPv6 address without its brackets
  std::uint16_t port = 0;  ///< 0: the scheme's own
  std::string path;        ///< begins with '/', percent-encoded as it was given
  std::string query;       ///< without its '?', as it was given

  /// The port to connect to: `port`, or 80 for http and 443 for https and s3.
  [[nodiscard]] std::uint16_t port_number() const noexcept;
  /// Host and port, as the header `Host` shows them: the port only where it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
  /// Path and query, as the first line of a request shows them.
  [[nodiscard]] std::string target() const;
  /// The whole URL, its query included.
  [[nodiscard]] std::string text() const;
  /// The whole URL for messages: a query is shown as `?...`.
  [[nodiscard]] std::string without_secrets() const;
  /// Whether scheme, host and port are equal, so that one connection can serve both.
  [[nodiscard]] bool same_origin(const url& other) const noexcept;

  friend bool operator==(const url&, const url&) = default;
};

namespace detail {

// The functions of <cctype> depend on the locale.
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c | 0x20) : c;
}
[[nodiscard]] constexpr bool is_letter(char c) noexcept { return to_lower(c) >= 'a' && to_lower(c) <= 'z'; }
/// The value of a hexadecimal digit; -1 if it is none.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  c = to_lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
[[nodiscard]] std::string lowered(std::string_view text);

namespace urls {

/// Where a scheme ends, its colon; npos if the text begins with none.
std::size_t end_of_scheme(std::string_view text) noexcept;

}  // namespace urls
}  // namespace detail

/// Takes an absolute URL of an object apart.
///
///     const url one = parse_url("https://[2001:db8::1]:8443/train-0000.tar?version=3");
///     const bool right = one.host == "2001:db8::1" && one.port == 8443 && one.target().ends_with("?version=3");
///
/// In: `http://`, `https://` or `s3://`, a host (a name, an IPv4 address, or an IPv6 address in brackets),
/// perhaps a port, a path and a query. Scheme and host become lower case, the host of s3 (its bucket) as it
/// is; an empty path becomes "/"; everything else stays as it was given.
/// Errors: errc::argument, with what to write instead, for any other text: another scheme, no host, a port
/// that is none, a user or password (`user:password@`), a fragment (`#...`), and characters that must be
/// percent-encoded.
/// No message shows a user, a password or a query.
/// Source: RFC 3986; the host is what the Domain Name System can resolve.
[[nodiscard]] url parse_url(std::string_view text);

/// The URL that a redirect leads to: `location` is absolute, or relative to `base`. A fragment is dropped.
/// Errors: those of `parse_url`.
/// Source: RFC 3986, 5.2.
[[nodiscard]] url resolve(const url& base, std::string_view location);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/url.ipp>
#endif
