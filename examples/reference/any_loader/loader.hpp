// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/any_loader.hpp>

#include <cstdint>
#include <span>

/// What the training loop sees of a batch.
struct my_batch {
  std::span<const float> values;
  std::span<const std::uint64_t> labels;
};

/// The plan is written in loader.cpp, and compiled there only.
penstock::any_loader<my_batch> make_loader(std::uint64_t samples);
