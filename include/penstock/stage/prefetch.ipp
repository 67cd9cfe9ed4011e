// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/prefetch.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

namespace detail {

[[noreturn, gnu::cold]] inline void refuse_prefetch(std::initializer_list<piece> what) {
  throw error(errc::argument, what).in_stage("prefetch");
}

PENSTOCK_INLINE void check_requests(const request_options& requests) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 40, least_part = 64_KiB;
  constexpr std::size_t max_in_flight = 4096;
  for (const std::uint64_t size :
       {requests.coalesce_gap.value_or(0), requests.max_coalesced.value_or(0), requests.part_size})
    if (size > maximum)
      refuse_prefetch({"prefetch: a gap, a part or a request of ", size,
                       " bytes is negative or absurd; at most ", maximum,
                       ", as in {.coalesce_gap = 128_KiB, .max_coalesced = 8_MiB, .part_size = 16_MiB}"});
  if (requests.part_size != 0 && requests.part_size < least_part)
    refuse_prefetch({"prefetch: parts of ", requests.part_size,
                     " bytes cost more than they bring; give at least ", least_part,
                     ", as in {.part_size = 8_MiB}, or 0 for no parts"});
  if (requests.max_in_flight == 0u || requests.max_in_flight > max_in_flight)
    refuse_prefetch({"prefetch: .max_in_flight = ", *requests.max_in_flight, " requests; give 1 to ",
                     max_in_flight, ", as in {.max_in_flight = 32}, or write prefetch(0) to fetch nothing"});
}

}  // namespace detail

PENSTOCK_INLINE void prefetch_stage::apply(run_options& options, bool after_batch) const {
  if (requests) {
    if (after_batch)
      detail::refuse_prefetch(
          {"prefetch after batch prepares batches and requests no bytes; write its options before "
           "batch"});
    detail::check_requests(*requests);
    options.requests = *requests;
  }
  if (!after_batch) {
    if (in_bytes && value == 0)
      detail::refuse_prefetch(
          {"prefetch of 0 bytes has no room for a sample; write prefetch(0) to fetch nothing"});
    if (value > (in_bytes ? max_bytes : max_samples))
      detail::refuse_prefetch({describe(), " is negative or absurd: before batch it takes at most ",
                               in_bytes ? max_bytes : max_samples,
                               in_bytes
                                   ? " bytes; write what the machine can spare, as in prefetch(64_MiB)"
                                   : " samples; write a few hundred, as in prefetch(256), or bytes, as in "
                                     "prefetch(64_MiB)"});
    if (in_bytes)
      options.ahead_bytes = value;
    else
      options.ahead = value;
    return;
  }
  if (in_bytes)
    detail::refuse_prefetch({"prefetch(", value,
                             " bytes) after batch: there it counts batches; write it before batch, or "
                             "bound all that a run holds with memory(bytes)"});
  if (value > max_batches)
    detail::refuse_prefetch({"prefetch(", value, ") after batch holds that many batches; give it at most ",
                             max_batches, ", or write it before batch, where it counts samples"});
  options.depth = static_cast<std::size_t>(value) + 1;
}

}  // namespace penstock::inline v0_1
