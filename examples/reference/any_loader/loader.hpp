// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/any_loader.hpp>

#include <cstdint>
#include <span>

/// The part of a batch that the training loop sees.
struct my_batch {
  std::span<const float> values;
  std::span<const std::uint64_t> labels;
};

/// Only loader.cpp has the plan and compiles it.
penstock::any_loader<my_batch> make_loader(std::uint64_t samples);
