// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// IDX files packed with gzip: [file]

#include <penstock/source/idx_gz.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  constexpr std::uint64_t limit = 1 << 20;
  file.write(input(data, size).rest());
  outcome([&] {
    const ps::buffer content = ps::detail::read_gzip_file(file.path(), limit);
    must(content.size() <= limit, "content keeps to its limit");
    touch(content.view());
  });
  outcome([&] {
    const auto rows = ps::idx_gz(file.path(), limit);
    const auto reader = rows.connect();
    decltype(rows.connect())::worker worker;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(rows.size(), 100); ++i)
      reader.evaluate({0, i}, worker, [](const auto& row) { (void)row.finish(); });
  });
  return 0;
}
