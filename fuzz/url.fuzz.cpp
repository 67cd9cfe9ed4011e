// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// URLs and what redirects say: [bytes of the URL][URL][location]

#include <penstock/storage/url.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

void check(const ps::url& one) {
  must(!one.host.empty() && one.path.starts_with('/'), "a host and a path");
  must(one.port_number() != 0, "a port to connect to");
  must(ps::parse_url(one.text()).text() == one.text(), "what is written can be read back");
  must(one.without_secrets().find('?') ==
           (one.query.empty() ? std::string::npos : one.without_secrets().size() - 4),
       "the query is not shown");
  must(ps::without_secrets(one.text()) == one.without_secrets(), "both ways to hide it agree");
  const std::string line = one.text();
  for (const char c : line) must(c > ' ' && c < 0x7f, "no character that ends a line of a request");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto length = in.number();
  const std::string_view first = ps::text_of(in.take(length)), location = ps::text_of(in.rest());
  const std::string line = outcome([&] {
    const ps::url base = ps::parse_url(first);
    check(base);
    check(ps::resolve(base, location));
  });
  const std::size_t question = first.find('?');
  // Messages show a character that cannot be printed as a question mark, too.
  const bool printable = std::all_of(first.begin(), first.end(), [](char c) { return c >= ' ' && c < 0x7f; });
  if (printable && question != std::string_view::npos && first.size() - question > 12 &&
      !first.substr(question).starts_with("?...") && location.empty())
    must(line.find(first.substr(question)) == std::string::npos, "no message shows a query");
  touch(ps::without_secrets(location));
  return 0;
}
