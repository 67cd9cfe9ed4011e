// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/url.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::uint16_t url::port_number() const noexcept {
  if (port != 0) return port;
  return scheme == "http" ? 80 : 443;
}
PENSTOCK_INLINE std::string url::authority() const {
  std::string line = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != 0 && port != (scheme == "http" ? 80 : 443)) detail::append(line, {":", port});
  return line;
}
PENSTOCK_INLINE std::string url::target() const { return query.empty() ? path : path + "?" + query; }
PENSTOCK_INLINE std::string url::text() const { return detail::text({scheme, "://", authority(), target()}); }
PENSTOCK_INLINE std::string url::without_secrets() const {
  return detail::text({scheme, "://", authority(), path, query.empty() ? "" : "?..."});
}
PENSTOCK_INLINE bool url::same_origin(const url& other) const noexcept {
  return scheme == other.scheme && host == other.host && port_number() == other.port_number();
}

namespace detail {

PENSTOCK_INLINE std::string lowered(std::string_view text) {
  std::string line(text);
  std::transform(line.begin(), line.end(), line.begin(), to_lower);
  return line;
}

namespace urls {

inline constexpr std::size_t longest = 32'768;

[[gnu::cold]] PENSTOCK_INLINE error refused(std::string_view text, std::initializer_list<piece> why) {
  constexpr std::size_t maximum = 200;
  std::string line = without_secrets(text);
  if (line.size() > maximum) line.replace(maximum, std::string::npos, "...");
  std::replace(line.begin(), line.end(), '\0', '?');  // what is said ends there otherwise
  line = "the URL \"" + line + "\" ";
  append(line, why);
  return error(errc::argument, line);
}

/// Throws unless each character may stand in a path, or in a query.
PENSTOCK_INLINE void check_characters(std::string_view text, std::string_view part, bool is_query) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '%') {
      if (part.size() - i < 3 || hex_value(part[i + 1]) < 0 || hex_value(part[i + 2]) < 0)
        throw refused(text,
                      {"has a '%' without two hexadecimal digits behind it; write a percent sign as %25"});
      i += 2;
    } else if (!is_letter(c) && !is_digit(c) &&
               std::string_view("-._~!$&'()*+,;=:@/").find(c) == std::string_view::npos &&
               !(is_query && c == '?')) {
      throw refused(text, {"has a character in its ", is_query ? "query" : "path",
                           " that no URL may have; percent-encode it, a space as %20"});
    }
  }
}

PENSTOCK_INLINE std::uint16_t to_port(std::string_view text, std::string_view digits) {
  std::uint32_t value = 0;
  for (const char c : digits) {
    if (!is_digit(c)) throw refused(text, {"has a port that is no number"});
    value = std::min<std::uint32_t>(value * 10 + static_cast<std::uint32_t>(c - '0'), 100'000);
  }
  if (value > 65'535 || (value == 0 && !digits.empty()))
    throw refused(text, {"has a port that is not between 1 and 65535"});
  return static_cast<std::uint16_t>(value);
}

PENSTOCK_INLINE void set_authority(url& into, std::string_view text, std::string_view authority) {
  if (authority.find('@') != std::string_view::npos)
    throw refused(
        text,
        {"names a user or a password; give credentials in http_options::headers or s3_options::identity, "
         "where no message can show them"});
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    std::array<unsigned char, 16> address{};
    into.host = authority.substr(1, end == std::string_view::npos ? end : end - 1);
    const bool digits = std::all_of(into.host.begin(), into.host.end(),
                                    [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; });
    if (end == std::string_view::npos || !digits ||
        ::inet_pton(AF_INET6, into.host.c_str(), address.data()) != 1)
      throw refused(text, {"has no IPv6 address in its brackets; write [::1]"});
    port = authority.substr(end + 1);
    if (!port.empty() && port.front() != ':')
      throw refused(text, {"has something between its host and its path"});
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const std::size_t colon = authority.find(':');
    into.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
    if (port.find(':') != std::string_view::npos)
      throw refused(text, {"has two colons in its host; write an IPv6 address in brackets, as [::1]"});
    if (into.host.empty()) throw refused(text, {"names no host"});
    if (into.host.size() > 253) throw refused(text, {"has a host of more than 253 characters"});
    const bool named = std::all_of(into.host.begin(), into.host.end(), [](char c) {
      return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
    });
    if (!named || into.host.front() == '.' || into.host.find("..") != std::string::npos)
      throw refused(
          text, {"has a host that is no name; write names of other scripts in their ASCII form, xn--..."});
  }
  if (into.scheme != "s3") into.host = lowered(into.host);
  into.port = to_port(text, port);
}

PENSTOCK_INLINE std::size_t end_of_scheme(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') return i == 0 ? std::string_view::npos : i;
    if (!is_letter(text[i]) &&
        (i == 0 || (!is_digit(text[i]) && text[i] != '+' && text[i] != '-' && text[i] != '.')))
      return std::string_view::npos;
  }
  return std::string_view::npos;
}

/// A path without its segments "." and "..": RFC 3986, 5.2.4.
PENSTOCK_INLINE std::string without_dots(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);  // with the slash before it
    path.remove_prefix(end);
    if (segment == "/." || segment == "/..") {
      if (segment == "/..") result.erase(std::min(result.rfind('/'), result.size()));
      if (path.empty()) result += '/';
    } else {
      result += segment;
    }
  }
  return result.empty() ? "/" : result;
}

}  // namespace urls
}  // namespace detail

PENSTOCK_INLINE url parse_url(std::string_view text) {
  namespace urls = detail::urls;
  if (text.size() > urls::longest)
    throw urls::refused(text, {"has more than ", urls::longest, " characters"});
  const std::size_t colon = urls::end_of_scheme(text);
  if (colon == std::string_view::npos || text.substr(colon, 3) != "://")
    throw urls::refused(text, {"is not absolute; write http://, https:// or s3:// and a host"});
  url made;
  made.scheme = detail::lowered(text.substr(0, colon));
  if (made.scheme != "http" && made.scheme != "https" && made.scheme != "s3")
    throw urls::refused(text, {"has another scheme than http, https and s3"});
  std::string_view rest = text.substr(colon + 3);
  if (rest.find('#') != std::string_view::npos)
    throw urls::refused(text, {"has a fragment, which names no object; write the '#' of a name as %23"});
  const std::size_t question = std::min(rest.find('?'), rest.size());
  if (question != rest.size()) made.query = rest.substr(question + 1);
  rest = rest.substr(0, question);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  urls::set_authority(made, text, rest.substr(0, slash));
  made.path = slash == rest.size() ? "/" : rest.substr(slash);
  urls::check_characters(text, made.path, false);
  urls::check_characters(text, made.query, true);
  return made;
}

PENSTOCK_INLINE url resolve(const url& base, std::string_view location) {
  namespace urls = detail::urls;
  location = location.substr(0, location.find('#'));
  if (urls::end_of_scheme(location) != std::string_view::npos) return parse_url(location);
  if (location.starts_with("//")) return parse_url(base.scheme + ":" + std::string(location));
  if (location.empty()) return base;
  const std::size_t question = std::min(location.find('?'), location.size());
  std::string path(location.substr(0, question));
  if (path.empty())
    path = base.path;
  else
    path =
        urls::without_dots(path.front() == '/' ? path : base.path.substr(0, base.path.rfind('/') + 1) + path);
  return parse_url(detail::text({base.scheme, "://", base.authority(), path, location.substr(question)}));
}

}  // namespace penstock::inline v0_1
