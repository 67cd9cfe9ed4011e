// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The headers that nearly every test includes, parsed once for all test programs.

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
