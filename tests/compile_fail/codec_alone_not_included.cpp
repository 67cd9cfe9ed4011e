// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the header of a codec is not included; this error names it in declared_codec<...>

#include <penstock/codec/identity.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/decode.hpp>

#include <cstddef>
#include <string>
#include <vector>

int main() {
  const auto texts = penstock::from(std::vector<std::string>{"one", "two"});
#ifdef PENSTOCK_WRONG
  auto loader = texts | penstock::decode<penstock::zstd>;
#else
  auto loader = texts | penstock::decode<penstock::identity>;
#endif
  std::size_t samples = 0;
  for (auto&& x : loader) samples += sizeof(x) != 0;
  return samples == 0;
}
