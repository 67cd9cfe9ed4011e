// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: each storage of any_of<...> needs static constexpr std::string_view schemes[]

#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const penstock::any_of<penstock::file, penstock::memory_files> shards("a.tar");
#else
  const penstock::any_of<penstock::file> shards("a.tar");
#endif
  return shards.names().size() == 1 ? 0 : 1;
}
