// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/http_options.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace penstock_test {

/// Bytes of which no two ranges near each other are equal.
inline std::string web_content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
/// Options without the proxies of the environment, which are not for servers of tests.
inline penstock::http_options without_proxies(penstock::http_options options = {}) {
  options.proxies = false;
  return options;
}
/// Options with which each read is one request, and fails with it.
inline penstock::http_options once(penstock::http_options options = {}) {
  options.retries.attempts = 1;
  options.throttle.max_in_flight = 0;
  options.hedges.max_extra_requests = 0;
  return options;
}
/// Both.
inline penstock::http_options direct(penstock::http_options options = {}) {
  return once(without_proxies(std::move(options)));
}
/// The error that `f` must throw.
template <class F>
penstock::error web_error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const penstock::error& e) {
    return e;
  }
  FAIL("no error was thrown");
  throw 0;
}
inline bool says(const penstock::error& e, std::string_view part) {
  return std::string_view(e.what()).find(part) != std::string_view::npos;
}

}  // namespace penstock_test
