// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/verb.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock/storage/web/web_head.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/version.hpp>
#include <penstock/storage/web/http_proxies.hpp>
#include <penstock/storage/web/web_boost.hpp>
#include <penstock/storage/web/web_call.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::web {

/// Writes the header of a request. `by`: the proxy that is given the whole URL, null if there is none.
inline void write_head(std::string& out, const call& what, const http_proxy* by) {
  const auto method = boost::beast::http::to_string(what.method);
  out.assign(method.data(), method.size());
  append(out, {" ", by != nullptr ? what.where.text() : what.where.target(), " HTTP/1.1\r\n"});
  const std::size_t lines = out.size();
  append(out, {"Host: ", what.where.authority(), "\r\nUser-Agent: penstock/", version_major, ".",
               version_minor, ".", version_patch, "\r\nAccept-Encoding: identity\r\n"});
  if (what.has_range())
    append(out, {"Range: bytes=", what.offset, "-", what.offset + what.into.size() - 1, "\r\n"});
  if (!what.if_match.empty()) append(out, {"If-Match: ", what.if_match, "\r\n"});
  if (!what.body.empty() || what.method == verb::put || what.method == verb::post)
    append(out, {"Content-Length: ", what.body.size(), "\r\n"});
  for (const auto& [name, value] : what.headers) {
    constexpr std::string_view breaks("\r\n\0", 3);
    if (name.find_first_of(breaks) != std::string::npos || value.find_first_of(breaks) != std::string::npos)
      throw error(errc::argument, "a header of a request has a line break in its name or value");
    append(out, {name, ": ", value, "\r\n"});
  }
  if (by != nullptr && !by->authorization.empty())
    append(out, {"Proxy-Authorization: ", by->authorization, "\r\n"});
  if (what.sign != nullptr) {
    std::string with_signature = out.substr(lines);
    what.sign(what.signer, what, with_signature);
    out.replace(lines, std::string::npos, with_signature);
  }
  out += "\r\n";
}

}  // namespace penstock::inline v0_1::detail::web
