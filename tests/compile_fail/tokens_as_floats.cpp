// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: spm_as<Token> gives tokens as std::uint32_t (which is spm)

#include <penstock/codec/sentencepiece.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  using tokenizer = penstock::spm_as<float>;
#else
  using tokenizer = penstock::spm_as<std::int64_t>;
#endif
  return sizeof(tokenizer) == 0;
}
