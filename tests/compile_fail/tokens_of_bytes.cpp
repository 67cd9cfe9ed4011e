// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bpe_as<Token> gives tokens as std::uint32_t (which is bpe), std::uint16_t, std::int32_t or
// std::int64_t

#include <penstock/codec/bpe.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  using tokenizer = penstock::bpe_as<std::uint8_t>;
#else
  using tokenizer = penstock::bpe_as<std::uint16_t>;
#endif
  return sizeof(tokenizer) == 0;
}
