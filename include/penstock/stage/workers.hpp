// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>

namespace penstock::inline v0_1 {

/// The number of threads that evaluate samples; with 0, the thread that requests batches evaluates them, with
/// the same bytes. An annotation: its place does not matter, the sequence does not change. Default: the
/// processors that this process may use, shared among the ranks of the node, less one if they are more than
/// two; at least one. More than 2^16 are `errc::argument`. With as many as there are processors, the thread
/// that requests batches copies samples too where it would wait for a short time, in the place of a worker,
/// if the plan only copies: it calls no function of yours there.
///
/// `{.processors, .nice}` keeps the threads of the run away from a thread that must not wait, such as the one
/// that launches kernels:
///
///     auto loader = from({1, 2, 3, 4}) | batch(2) | workers(2, {.processors = {0}, .nice = 10});
///
/// Both are for the workers and for the threads that read ahead, and never for the thread that opens the run
/// or the one that requests batches. Each thread may run on any of `processors`; without them, on those of
/// the thread that opens the run. Their number does not set `n`: n workers on fewer than n processors share
/// them.
/// With 0 workers there is nothing to bind, and both are without effect, so that you can set n to 0 to debug.
/// `processors` may also be a container of integers. A number that is listed twice or is not within 0 to
/// 1023, an empty container, and a `nice` that is not within 0 to 19 are `errc::argument` here. At `open`, so
/// are a processor that neither the opening thread nor the process's main thread may use, a `nice` below that
/// of the opening thread without permission, and both on a system other than Linux. States do not depend on
/// them.
struct workers_stage {
  using penstock_part = annotation_tag;
  static constexpr std::string_view stage_name = "workers";
  static constexpr unsigned max_workers = 1u << 16;
  unsigned value{};
  worker_options threads{};

  void apply(run_options& options, bool /*after_batch*/) const {
    options.workers = value;
    options.threads = threads;
  }
  [[nodiscard]] std::string describe() const {
    std::string line = detail::text({"workers(", value});
    if (!threads.processors.empty())
      detail::append(line, {threads.processors.size() == 1 ? ", processor " : ", processors ",
                            threads.processors.describe()});
    if (threads.nice) detail::append(line, {", nice ", *threads.nice});
    return line + ")";
  }
};

namespace detail {

[[noreturn, gnu::cold]] inline void refuse_workers(std::uint64_t threads) {
  throw error(errc::argument, {"workers(", threads, ") starts that many threads; give it at most ",
                               std::uint64_t{workers_stage::max_workers}})
      .in_stage("workers");
}
[[noreturn, gnu::cold]] inline void refuse_nice(int nice) {
  throw error(errc::argument, {"workers(n, {.nice = ", nice,
                               "}): nice goes from 0 to 19, where 19 gives way to every other thread"})
      .in_stage("workers");
}

}  // namespace detail

[[nodiscard]] constexpr workers_stage workers(any_count value, const worker_options& threads = {}) {
  const std::uint64_t count = value.of("workers");
  if (count > workers_stage::max_workers) detail::refuse_workers(count);
  if (threads.nice && (*threads.nice < 0 || *threads.nice > 19)) detail::refuse_nice(*threads.nice);
  return {static_cast<unsigned>(count), threads};
}

}  // namespace penstock::inline v0_1
