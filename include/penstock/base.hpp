// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/cold_copy.hpp>
#include <penstock/base/duration_counts.hpp>
#include <penstock/base/fixed_array.hpp>
#include <penstock/base/flat_json.hpp>
#include <penstock/base/name_list.hpp>
#include <penstock/base/numpy_random_state.hpp>
#include <penstock/base/owned.hpp>
#include <penstock/base/prefetch_lines.hpp>
#include <penstock/base/shared.hpp>
