// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/penstock.hpp>

#include <string_view>

std::string_view version_seen_by_other();
std::string_view version_seen_by_other() { return penstock::version; }
