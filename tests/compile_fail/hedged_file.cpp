// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: penstock: hedged needs a storage that reads in the background

#include <penstock/storage/file.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/retrying.hpp>

int main() {
  const penstock::file shards({"a.tar"});
#ifdef PENSTOCK_WRONG
  const penstock::hedged safe(shards);
#else
  const penstock::retrying safe(shards);
#endif
  return safe.names().empty() ? 1 : 0;
}
