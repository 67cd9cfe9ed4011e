// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>

/// What a transformer is given of a batch, row after row.
struct token_batch {
  std::span<const std::uint32_t> tokens;
  std::span<const std::int64_t> labels;     // -100: not to be learned
  std::span<const std::int32_t> starts;     // where documents begin, and the end (cu_seqlens)
  std::span<const std::int32_t> positions;  // of each token in its document
};
