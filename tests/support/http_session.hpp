// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/http.hpp>

#include "support/web_reads.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace penstock_test {

/// The first bytes of an object.
inline std::string first_of(const penstock::http::session& session, std::size_t size = 10) {
  std::string into(size, 'x');
  session.read(0, 0, std::as_writable_bytes(std::span(into)));
  return into;
}
inline penstock::http::session session_of(const std::string& where, penstock::http_options options = {}) {
  return penstock::http({where.c_str()}, direct(std::move(options))).connect();
}

/// With these options as they are.
inline penstock::http::session session_of_all(const std::string& where, penstock::http_options options) {
  return penstock::http({where.c_str()}, std::move(options)).connect();
}

}  // namespace penstock_test
