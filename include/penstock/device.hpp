// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/concepts.hpp>
#include <penstock/device/host.hpp>
#include <penstock/device/numa.hpp>
#include <penstock/device/pin_and_copy_stage.hpp>
#include <penstock/device/simulated.hpp>
