// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/status.h>)
#error "penstock/storage/reads/arrow_errors.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <arrow/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// What Arrow says, as one line, without the queries of URLs, which may be signatures.
[[nodiscard]] inline std::string arrow_message(std::string_view message) {
  constexpr std::size_t longest = 300;
  std::string line;
  for (std::size_t at = 0; at < message.size() && line.size() < longest;) {
    const std::size_t end = std::min(message.find_first_of(" \t\r\n", at), message.size());
    const std::string_view word = message.substr(at, end - at);
    const std::size_t scheme = word.find("://");
    const std::size_t question = scheme == std::string_view::npos ? scheme : word.find('?', scheme);
    line += word.substr(0, question);
    if (question != std::string_view::npos) line += "?...";
    if (end < message.size()) line += ' ';
    at = end + 1;
  }
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > longest) line.resize(longest);
  return line;
}

/// The error of a status that is not OK.
[[noreturn, gnu::cold]] inline void throw_arrow(const arrow::Status& status, std::string_view path,
                                                std::optional<std::uint64_t> offset = {}) {
  if (status.IsOutOfMemory()) throw std::bad_alloc();
  const errc code = status.IsCancelled() ? errc::stopped : errc::io;
  error made = error(code, {"Arrow's file system says: ", arrow_message(status.message())})
                   .recurring(code != errc::io || !status.IsIOError());
  made.in_file(path);
  if (offset) made.at_offset(*offset);
  throw made;
}

}  // namespace penstock::inline v0_1::detail
