// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with the whole expression, and the header that most programs include.

#include <penstock/penstock.hpp>

#include "full_expression.hpp"
