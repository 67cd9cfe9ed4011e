// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/host.hpp>
#include <penstock/device/pin_and_copy_stage.hpp>

namespace penstock::inline v0_1 {

/// Delivers batches where they will be used: `pin_and_copy` on the host, `pin_and_copy(device)` there. See
/// `pin_and_copy_stage`. A device can have a spelling of its own: `cuda::pin_and_copy`.
inline constexpr pin_and_copy_stage<host> pin_and_copy{};

}  // namespace penstock::inline v0_1
