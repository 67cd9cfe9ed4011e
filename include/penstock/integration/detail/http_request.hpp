// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// What a handler of `http_server` gets.
struct http_request {
  std::string path;   ///< begins with '/', as it was sent
  std::string query;  ///< what is behind the '?'

  /// A parameter of the query, decoded; empty if it is not there.
  [[nodiscard]] std::string parameter(std::string_view name) const {
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    for (std::string_view rest = query; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find('&'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (!one.starts_with(name) || one.size() <= name.size() || one[name.size()] != '=') continue;
      std::string made;
      for (std::size_t i = name.size() + 1; i < one.size(); ++i) {
        const int high = one[i] == '%' && i + 2 < one.size() ? digit(one[i + 1]) : -1;
        const int low = high < 0 ? -1 : digit(one[i + 2]);
        made.push_back(low < 0 ? one[i] : static_cast<char>(high * 16 + low));
        if (low >= 0) i += 2;
      }
      return made;
    }
    return {};
  }
};

/// A value of a parameter, as it stands in an address.
[[nodiscard]] inline std::string url_encoded(std::string_view value) {
  std::string made;
  for (const char c : value) {
    constexpr std::string_view digits = "0123456789ABCDEF", marks = "-._~";
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || marks.find(c) != marks.npos)
      made += c;
    else
      made += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return made;
}

/// The head of a request, as far as `http_server` uses it.
struct http_head {
  http_request request;
  std::string_view host, authorization;  ///< in the text of the head
  bool with_body = true;                 ///< of the answer: not for HEAD
  bool keep_alive = false;
  int refused = 0;  ///< the status that says what is wrong with it; 0 if nothing is
};

/// Whether two texts are equal, without regard to the case of ASCII letters.
[[nodiscard]] inline bool same_word(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

/// Reads the head of a request of HTTP/1.1 or 1.0, with the blank line at its end. Only GET and HEAD without
/// a body are taken.
///
/// Errors: none; what is wrong is `refused`: 400, 405 for another method, 413 for a body, 505.
[[nodiscard]] inline http_head parse_http_head(std::string_view text) {
  http_head made;
  const auto refuse = [&](int status) {
    made.refused = status;
    made.keep_alive = false;
    return made;
  };
  const auto next_line = [&] {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
    return line;
  };
  const std::string_view first = next_line();
  const std::size_t space = first.find(' '), last = first.rfind(' ');
  if (space == std::string_view::npos || space == last) return refuse(400);
  const std::string_view method = first.substr(0, space), version = first.substr(last + 1);
  std::string_view target = first.substr(space + 1, last - space - 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse(version.starts_with("HTTP/") ? 505 : 400);
  if (method != "GET" && method != "HEAD") return refuse(405);
  made.with_body = method == "GET";
  made.keep_alive = version == "HTTP/1.1";
  if (target.starts_with("http://"))  // as a proxy gets it
    target.remove_prefix(std::min(target.size(), target.find('/', 7)));
  if (!target.starts_with('/') ||
      std::any_of(target.begin(), target.end(), [](char c) { return c <= ' ' || c == 0x7f; }))
    return refuse(400);
  const std::size_t question = std::min(target.find('?'), target.size());
  made.request.path = target.substr(0, question);
  made.request.query = target.substr(std::min(target.size(), question + 1));
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line[0] == ' ' || line[0] == '\t')
      return refuse(400);
    const std::string_view name = line.substr(0, colon);
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
    if (same_word(name, "Transfer-Encoding") || (same_word(name, "Content-Length") && value != "0"))
      return refuse(413);
    if (same_word(name, "Host")) made.host = value;
    if (same_word(name, "Authorization")) made.authorization = value;
    if (same_word(name, "Connection") && same_word(value, "close")) made.keep_alive = false;
  }
  return made;
}

/// Whether a secret is the expected one, in a time that does not depend on where they differ.
[[nodiscard]] inline bool same_secret(std::string_view given, std::string_view expected) noexcept {
  volatile unsigned char differs = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    differs = static_cast<unsigned char>(
        differs | (given[i] ^ (expected.empty() ? '\1' : expected[i % expected.size()])));
  return differs == 0;
}

}  // namespace penstock::inline v0_1::detail
