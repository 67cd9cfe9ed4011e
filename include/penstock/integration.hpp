// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/any_loader.hpp>
#include <penstock/integration/dlpack_abi.hpp>
#include <penstock/integration/dlpack_tensor.hpp>
#include <penstock/integration/from_dlpack.hpp>
#include <penstock/integration/to_arrow.hpp>
#include <penstock/integration/to_dlpack.hpp>
