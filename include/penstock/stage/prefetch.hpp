// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/bytes.hpp>
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
/// prepared. An annotation: the sequence does not change. More than 2^20 batches, 2^32 samples or 2^48 bytes
/// are `errc::argument` when the plan is opened; bytes that the machine does not give are `errc::io`.
///
///     auto ahead = samples | decode<field<"txt", text>> | shuffle(7) | prefetch(256) | batch(32, ragged);
///     auto in_bytes = samples | decode<field<"txt", text>> | shuffle(7) | prefetch(64_MiB) | batch(32, ragged);
///
/// Where the storage's bytes have to be waited for, those samples are fetched: read by a thread of their own,
/// in the order of their use, into memory that workers take them from. Samples that lie together are one
/// read. Keeps 1.25 times what so many samples take in the mean, 8 to 256 MiB. `prefetch(64_MiB)`, before
/// `batch`, keeps that many bytes, of as many samples as they are in the mean. A sample of more than a
/// quarter of the bytes that are kept is read by its worker, in its turn. A storage with latency
/// (`latent_session`) fetches 256 samples ahead without being asked; `prefetch(0)` says no.
struct prefetch_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "prefetch";
  static constexpr std::uint64_t most_batches = std::uint64_t{1} << 20;
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 32;
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 48;
  std::uint64_t value{};
  bool in_bytes = false;

  void apply(run_options& options, bool after_batch) const;
  [[nodiscard]] std::string describe() const {
    return detail::text({"prefetch(", value, in_bytes ? " bytes)" : ")"});
  }
};

[[nodiscard]] constexpr prefetch_stage prefetch(any_count value) { return {value.of("prefetch"), false}; }
/// In bytes: `prefetch(64_MiB)`.
[[nodiscard]] constexpr prefetch_stage prefetch(byte_count bytes) { return {bytes, true}; }

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/stage/prefetch.ipp>
#endif
