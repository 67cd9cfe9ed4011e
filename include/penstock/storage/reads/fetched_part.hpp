// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

namespace detail {
struct stored_read;
}

/// A range of an object that was read ahead for one sample.
struct fetched_part {
  const void* session = nullptr;
  std::uint64_t offset = 0, size = 0;  ///< in the object
  const std::byte* bytes = nullptr;    ///< valid once `from` has ended
  detail::stored_read* from = nullptr;
  object_id object = 0;
};

}  // namespace penstock::inline v0_1
