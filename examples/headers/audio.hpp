// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include <penstock/audio/resample.hpp>
#include <penstock/audio/speed.hpp>
