// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/forward_listing.hpp"
#include "support/stored.hpp"

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace penstock_test {

/// The samples of an indexed source, as lines.
template <class Source>
std::vector<std::string> indexed_listing(const Source& data) {
  std::vector<std::string> lines;
  const auto reader = data.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < data.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& s) { lines.push_back(line_of(s)); });
  return lines;
}

/// The samples of the archive "t.tar" in memory, or the error that reading it throws. Every kind of store
/// must give the same.
inline std::vector<std::string> listing_in_stores(const std::string& bytes) {
  const penstock::webdataset_options options{.index = penstock::index_policy::transient};
  std::vector<std::string> lines;
  std::exception_ptr failed;
  try {
    lines = indexed_listing(penstock::webdataset(penstock::memory_files().add("t.tar", bytes), options));
  } catch (const penstock::error&) {
    failed = std::current_exception();
  }
  put_in_each_store({{"t.tar", bytes}}, [&](const std::string& kind, const stored& where) {
    INFO(kind);
    try {
      const auto found = indexed_listing(penstock::webdataset(where, options));
      CHECK(found == lines);
      CHECK(failed == nullptr);
    } catch (const penstock::error& e) {
      INFO(e.what());
      REQUIRE(failed != nullptr);
      CHECK(e.file() == where.names()[0]);
      try {
        std::rethrow_exception(failed);
      } catch (const penstock::error& expected) {
        CHECK((e.code() == expected.code()));
        CHECK(e.message() == expected.message());
        CHECK(e.offset() == expected.offset());
        CHECK(e.key() == expected.key());
      }
    }
  });
  if (failed) std::rethrow_exception(failed);
  return lines;
}

}  // namespace penstock_test
