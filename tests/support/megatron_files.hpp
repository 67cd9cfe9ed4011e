// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/oracle_files.hpp"

namespace penstock_test {

/// A dataset that Megatron has written, `made`; the cache of a GPTDataset of it, and what others give,
/// `cases.txt`: see tools/megatron_oracles.py.
inline constexpr oracle_file megatron_oracles[] = {
#include "source/oracles/megatron.inc"
};

/// One of these files.
[[nodiscard]] constexpr std::string_view megatron_oracle(std::string_view path) {
  for (const oracle_file& one : megatron_oracles)
    if (one.path == path) return one.bytes;
  return {};
}

}  // namespace penstock_test
