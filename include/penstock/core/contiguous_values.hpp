// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

namespace penstock::inline v0_1::detail {

/// Numbers of samples one behind the other that lie one behind the other in memory, perhaps not aligned; null
/// if they do not.
template <class T>
struct contiguous_values {
  const std::byte* first = nullptr;
};

}  // namespace penstock::inline v0_1::detail
