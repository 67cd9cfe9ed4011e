// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/processor_set.hpp>

namespace penstock::inline v0_1 {

/// The processors this process may use: the smaller of its affinity mask and its cgroup's quota, at least
/// one.
[[nodiscard]] unsigned usable_processors();

/// The processors that the calling thread may use; none if the system does not say.
[[nodiscard]] processor_set processors_of_this_thread();

/// The processors that the calling thread or the process's main thread may use; none if the system does not
/// say.
[[nodiscard]] processor_set allowed_processors();

/// A rank's share of the usable processors, at least one.
[[nodiscard]] unsigned processors_of_rank(std::uint64_t local_ranks);

/// The default number of workers: the rank's share of the processors, less one for the training loop if they
/// are more than two.
[[nodiscard]] unsigned default_workers(std::uint64_t local_ranks);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/tuning/machine.ipp>
#endif
