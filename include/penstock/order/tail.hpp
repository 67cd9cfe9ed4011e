// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

/// What happens to the last global step of an epoch if it is not full.
enum class tail : std::uint8_t {
  drop,  ///< it is left out on all ranks
  pad,   ///< every rank gets a batch of the usual size; slots without a sample are marked invalid
  keep,  ///< its positions are divided among the ranks; a rank may get an empty batch
};

/// The name of a policy, spelled as in the enum.
[[nodiscard]] constexpr std::string_view to_string(tail policy) noexcept {
  return detail::enum_name({"drop", "pad", "keep"}, policy);
}

}  // namespace penstock::inline v0_1
