// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/sidecar.hpp>

#include <cstddef>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string sidecar::of(std::string_view name) const {
  if (instead) {
    const std::size_t slash = name.rfind('/');
    const std::size_t second = slash == std::string_view::npos ? 1 : slash + 2;
    name = name.substr(0, name.find('.', second));
  }
  return std::string(name).append(suffix);
}

}  // namespace penstock::inline v0_1
