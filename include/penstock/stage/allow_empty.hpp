// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <string_view>

namespace penstock::inline v0_1 {

/// Allows a plan whose epochs are known to have no batch, because the source is empty or `tail::drop` drops
/// everything. Without it `open` throws `errc::argument` and says why there is none. After `batch_by`, where
/// epochs differ in their batches, the epoch where the run begins counts. An annotation: write it anywhere.
///
///     auto maybe_nothing = from(names) | batch(8, tail::drop, ragged) | allow_empty;
struct allow_empty_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "allow_empty";

  void apply(run_options& options, bool /*after_batch*/) const { options.allow_empty = true; }
};

inline constexpr allow_empty_stage allow_empty{};

}  // namespace penstock::inline v0_1
