// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/components.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/device/device_array.hpp>
#include <penstock/device/host.hpp>
#include <penstock/device/image/image_places.hpp>
#include <penstock/device/image/image_values.hpp>
#include <penstock/device/image/image_work.hpp>
#include <penstock/device/image/operations.hpp>
#include <penstock/device/numa.hpp>
#include <penstock/device/pin_and_copy_stage.hpp>
#include <penstock/device/simulated.hpp>
