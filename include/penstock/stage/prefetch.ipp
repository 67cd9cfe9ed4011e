// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/prefetch.hpp>

#include <penstock/core/error.hpp>

#include <cstddef>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void prefetch_stage::apply(run_options& options, bool after_batch) const {
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
