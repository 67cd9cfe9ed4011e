// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/workers.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void refuse_workers(std::uint64_t threads) {
  throw error(errc::argument, {"workers(", threads, ") starts that many threads; give it at most ",
                               std::uint64_t{workers_stage::max_workers}})
      .in_stage("workers");
}

PENSTOCK_INLINE void refuse_nice(int nice) {
  throw error(errc::argument, {"workers(n, {.nice = ", nice,
                               "}): nice goes from 0 to 19, where 19 gives way to every other thread"})
      .in_stage("workers");
}

}  // namespace detail

PENSTOCK_INLINE std::string workers_stage::describe() const {
  std::string line = detail::text({"workers(", value});
  if (!threads.processors.empty())
    detail::append(line, {threads.processors.size() == 1 ? ", processor " : ", processors ",
                          threads.processors.describe()});
  if (threads.nice) detail::append(line, {", nice ", *threads.nice});
  return line + ")";
}

}  // namespace penstock::inline v0_1
