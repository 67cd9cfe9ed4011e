// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

/// Declares the device of an optional component. A program that names it without its header has an incomplete
/// type, and its compiler shows the line from here.
namespace penstock::inline v0_1 {

struct cuda;  // penstock: write #include <penstock/device/cuda.hpp>, and link penstock::cuda

}  // namespace penstock::inline v0_1
