// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The head of a request to the server of metrics, and pages of other ranks: [length of the head][head][pages]

#include <penstock/integration/detail/http_request.hpp>
#include <penstock/integration/detail/merged_pages.hpp>

#include "support/fuzz.hpp"

#include <cstdint>
#include <string>
#include <string_view>

using namespace penstock_fuzz;
namespace d = penstock::detail;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto length = in.number<std::uint16_t>();
  const std::string head = std::string(penstock::text_of(in.take(length))) + "\r\n\r\n";
  const d::http_head read = d::parse_http_head(head);
  must(read.refused == 0 || (read.refused >= 400 && !read.keep_alive),
       "a request that is refused is the last one");
  if (read.refused == 0) {
    must(read.request.path.starts_with('/'), "a path");
    must(read.request.path.find('?') == std::string::npos, "a path without its query");
    for (const char c : read.request.path + read.request.query)
      must(c > ' ' && c != 0x7f, "no character that ends a line");
    must(head.find("\r\n") >= read.request.path.size() + read.request.query.size(),
         "both are of the first line");
    touch(read.request.parameter("token"));
    must(d::same_secret(read.authorization, read.authorization), "a secret is itself");
    must(read.authorization.empty() || !d::same_secret(read.authorization.substr(1), read.authorization),
         "a part of a secret is not the secret");
  }
  const std::string_view pages = penstock::text_of(in.rest());
  const std::string_view first = pages.substr(0, pages.size() / 2), second = pages.substr(first.size());
  const std::string both = d::merged_pages({first, second});
  must(both.size() <= pages.size(), "nothing is there twice");
  must(d::merged_pages({both}) == both, "what is merged stays as it is");
  return 0;
}
