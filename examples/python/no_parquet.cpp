// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "plans.hpp"

#include <stdexcept>

namespace penstock_loader {

opens parquet_plan(const settings&) {
  throw std::runtime_error(
      "this package was built without Parquet: install Penstock with -DPENSTOCK_ENABLE_ARROW=ON, then "
      "install "
      "the package again");
}

}  // namespace penstock_loader
