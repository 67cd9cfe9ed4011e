// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/run.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

/// Shared by the benchmarks of cold shards.
namespace bench {

inline constexpr std::size_t sample_bytes = 110'000;

/// Evicts the shards from the page cache, and checks that they are gone.
inline void make_cold(std::span<const std::string> names) {
  for (const auto& name : names) {
    const descriptor file(name);
    if (::fdatasync(file.get()) != 0 || ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
      throw std::runtime_error("cannot drop " + name + " from the page cache");
    const double resident = mapping(name).resident();
    if (resident > 0.01)
      throw std::runtime_error(name + " stays in the page cache: " + std::to_string(100 * resident) +
                               " % of it");
  }
}

template <class Loader>
std::uint64_t pass(const Loader& loader) {
  std::uint64_t sum = 0;
  for (auto&& b : loader.epoch(0))
    sum += first_words(reinterpret_cast<const std::byte*>(penstock::get<"bin">(b).data()), b.size(),
                       sample_bytes);
  return sum;
}

}  // namespace bench
