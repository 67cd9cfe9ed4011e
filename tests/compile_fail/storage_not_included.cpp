// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: penstock: write #include <penstock/storage/http.hpp>, and link penstock::http

#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/file.hpp>

#include <cstddef>

int main() {
#ifdef PENSTOCK_WRONG
  const auto shards = penstock::http("http://localhost/train.tar");
#else
  const auto shards = penstock::file("train.tar");
#endif
  auto loader = penstock::webdataset(shards);
  std::size_t samples = 0;
  for (auto&& x : loader) samples += sizeof(x) != 0;
  return samples == 0;
}
