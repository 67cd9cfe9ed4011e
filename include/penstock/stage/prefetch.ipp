// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/prefetch.hpp>

#include <penstock/core/error.hpp>

#include <cstddef>
#include <initializer_list>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void check_requests(const request_options& requests) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40, least_part = 64_KiB;
  constexpr std::size_t most_at_once = 4096;
  const auto refuse = [](std::initializer_list<piece> what) {
    throw error(errc::argument, what).in_stage("prefetch");
  };
  for (const std::uint64_t size : {requests.gap.value_or(0), requests.together.value_or(0), requests.part})
    if (size > most)
      refuse({"prefetch: a gap, a part or a request of ", size, " bytes is negative or absurd; at most ",
              most, ", as in {.gap = 128_KiB, .together = 8_MiB, .part = 16_MiB}"});
  if (requests.part != 0 && requests.part < least_part)
    refuse({"prefetch: parts of ", requests.part, " bytes cost more than they bring; give at least ",
            least_part, ", as in {.part = 8_MiB}, or 0 for no parts"});
  if (requests.at_once == 0 || requests.at_once > most_at_once)
    refuse({"prefetch: .at_once = ", requests.at_once, " requests; give 1 to ", most_at_once,
            ", as in {.at_once = 32}, or write prefetch(0) to fetch nothing"});
}

}  // namespace detail

PENSTOCK_INLINE void prefetch_stage::apply(run_options& options, bool after_batch) const {
  if (requests) {
    if (after_batch)
      throw error(errc::argument,
                  "prefetch after batch prepares batches and requests no bytes; write its options before "
                  "batch")
          .in_stage("prefetch");
    detail::check_requests(*requests);
    options.requests = *requests;
  }
  if (!after_batch) {
    if (in_bytes && value == 0)
      throw error(errc::argument,
                  "prefetch of 0 bytes has no room for a sample; write prefetch(0) to fetch nothing")
          .in_stage("prefetch");
    if (value > (in_bytes ? most_bytes : most_samples))
      throw error(errc::argument,
                  {describe(), " is negative or absurd: before batch it takes at most ",
                   in_bytes ? most_bytes : most_samples,
                   in_bytes ? " bytes; write what the machine can spare, as in prefetch(64_MiB)"
                            : " samples; write a few hundred, as in prefetch(256), or bytes, as in "
                              "prefetch(64_MiB)"})
          .in_stage("prefetch");
    if (in_bytes)
      options.ahead_bytes = value;
    else
      options.ahead = value;
    return;
  }
  if (in_bytes)
    throw error(errc::argument, {"prefetch(", value,
                                 " bytes) after batch: there it counts batches; write it before batch, or "
                                 "bound all that a run holds with memory(bytes)"})
        .in_stage("prefetch");
  if (value > most_batches)
    throw error(errc::argument,
                {"prefetch(", value, ") after batch holds that many batches; give it at most ", most_batches,
                 ", or write it before batch, where it counts samples"})
        .in_stage("prefetch");
  options.depth = static_cast<std::size_t>(value) + 1;
}

}  // namespace penstock::inline v0_1
