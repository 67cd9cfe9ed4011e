// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/concepts.hpp>
#include <penstock/device/host.hpp>
#include <penstock/device/simulated.hpp>
