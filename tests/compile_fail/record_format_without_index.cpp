// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: penstock: a record_format needs a type `index`, what is kept of a file

#include <penstock/source/record_files.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

struct eights {
  static constexpr std::string_view source_name = "eights";
  struct index_of_file {
    std::uint64_t size;
    std::vector<penstock::record_field> names{{"all", "bytes"}};
    std::uint64_t records() const { return size / 8; }
    const std::vector<penstock::record_field>& fields() const { return names; }
    penstock::value_place place(std::uint64_t i, std::size_t) const { return {8 * i, 8}; }
  };
#ifndef PENSTOCK_WRONG
  using index = index_of_file;
#endif
  index_of_file read_index(penstock::session_view session, penstock::object_id file) const {
    return {session.size(file)};
  }
};

int main() {
  const auto source = penstock::record_files(eights{}, penstock::memory_files().add("x", "12345678"));
  return source.size() == 1 ? 0 : 1;
}
