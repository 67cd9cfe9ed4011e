// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/pipe.hpp>

/// `| seed(7)`, the seed of a plan; the stages that take a seed include it, too.
namespace penstock::inline v0_1 {}
