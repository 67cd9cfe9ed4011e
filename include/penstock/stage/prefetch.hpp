// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

#include <optional>

namespace penstock::inline v0_1 {

/// Works `value` elements ahead at its place in the chain: before `batch`, requests the bytes of that many
/// samples before their turn (files: `posix_fadvise`); after it, prepares that many batches. An annotation:
/// the sequence does not change. More than 2^20 batches, 2^32 samples or 2^48 bytes are `errc::argument` when
/// you open the plan; running out of memory for them is `errc::io`.
///
///     auto long_ones = samples | decode<field<"txt", text>> |
///                      prefetch(64_MiB, {.coalesce_gap = 256_KiB, .max_coalesced = 32_MiB, .part_size = 8_MiB}) |
///                      batch(32, ragged);
///
/// If the storage has latency, those samples are fetched: a separate thread requests them, in the order of
/// their use, into memory that workers take them from. Samples that lie together become one request, and
/// ranges longer than 16 MiB several, which are in flight together. Keeps 1.25 times what so many samples
/// take on average, 8 to 256 MiB, or five of the largest, up to 1 GiB. `prefetch(64_MiB)`, before `batch`,
/// keeps that many bytes, for as many samples as fit on average. A sample larger than a quarter of the bytes
/// kept is read by its worker, in its turn. A storage with latency (`session_traits::latency`) fetches 256
/// samples or 32 MiB ahead by default, whichever are more samples, but at most 4096; `prefetch(0)` turns that
/// off.
/// As many requests are in flight as the store gets faster by, up to what the storage lets through (`http`:
/// 64 `connections`). All of these sizes are `request_options`, which you can give as well.
struct prefetch_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "prefetch";
  static constexpr std::uint64_t max_batches = std::uint64_t{1} << 20;
  static constexpr std::uint64_t max_samples = std::uint64_t{1} << 32;
  static constexpr std::uint64_t max_bytes = std::uint64_t{1} << 48;
  std::uint64_t value{};
  bool in_bytes = false;
  /// if given
  std::optional<request_options> requests{};

  void apply(run_options& options, bool after_batch) const;
  [[nodiscard]] std::string describe() const {
    return detail::text({"prefetch(", value, in_bytes ? " bytes)" : ")"});
  }
};

[[nodiscard]] constexpr prefetch_stage prefetch(any_count value) { return {value.of("prefetch"), false}; }
[[nodiscard]] constexpr prefetch_stage prefetch(any_count value, const request_options& requests) {
  return {value.of("prefetch"), false, requests};
}
/// In bytes: `prefetch(64_MiB)`.
[[nodiscard]] constexpr prefetch_stage prefetch(byte_count bytes) { return {bytes, true}; }
[[nodiscard]] constexpr prefetch_stage prefetch(byte_count bytes, const request_options& requests) {
  return {bytes, true, requests};
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/prefetch.ipp>
#endif
