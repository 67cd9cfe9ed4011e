// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: two storages of this any_of<...> have the same scheme

#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  const penstock::any_of<penstock::file, penstock::mapped_file> shards("a.tar");
#else
  const penstock::any_of<penstock::mapped_file> shards("a.tar");
#endif
  return shards.names().size() == 1 ? 0 : 1;
}
