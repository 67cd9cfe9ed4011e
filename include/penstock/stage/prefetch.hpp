// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// Works ahead by `value` elements of the place where it stands: before `batch`, the bytes of that many
/// samples are asked for before their turn (files: `posix_fadvise`); after it, that many batches are
/// prepared. An annotation: the sequence does not change. More than 2^20 batches are `errc::argument` when
/// the plan is opened.
struct prefetch_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "prefetch";
  static constexpr std::uint64_t most_batches = std::uint64_t{1} << 20;
  std::uint64_t value{};

  void apply(run_options& options, bool after_batch) const;
  [[nodiscard]] std::string describe() const { return detail::text({"prefetch(", value, ")"}); }
};

[[nodiscard]] constexpr prefetch_stage prefetch(std::uint64_t value) { return {value}; }

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/prefetch.ipp>
#endif
