// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

namespace {

const auto loader = penstock::from({1, 2, 3, 4, 5}) | penstock::batch(2);
auto run = loader.open();
const made_up_shards files("of_observers", 1, 1);  // a folder for what they write

}  // namespace
