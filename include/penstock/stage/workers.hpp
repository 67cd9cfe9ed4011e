// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {
[[noreturn, gnu::cold]] void refuse_workers(std::uint64_t threads);
}  // namespace detail

/// The number of threads that evaluate samples; with 0, the thread that requests batches evaluates them, with
/// the same bytes. An annotation: its place does not matter, the sequence does not change. Default: the
/// processors that this process may use, shared among the ranks of the node, less one, but at least one. More
/// than 2^16 are `errc::argument`.
struct workers_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "workers";
  static constexpr unsigned most = 1u << 16;
  unsigned value{};

  void apply(run_options& options, bool /*after_batch*/) const { options.workers = value; }
  [[nodiscard]] std::string describe() const { return detail::text({"workers(", value, ")"}); }
};

[[nodiscard]] constexpr workers_stage workers(any_count value) {
  const std::uint64_t threads = value.of("workers");
  if (threads > workers_stage::most) detail::refuse_workers(threads);
  return {static_cast<unsigned>(threads)};
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/workers.ipp>
#endif
