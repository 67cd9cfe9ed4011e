// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include <penstock/run/lockfree.hpp>

namespace {

const std::vector<int> samples(100, 1);
const auto loader = penstock::from(samples) | penstock::global_batch(32);

}  // namespace
