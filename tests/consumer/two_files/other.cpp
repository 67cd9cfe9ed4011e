// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/version.hpp>
#ifdef CONSUMER_HAS_ZSTD
#include <penstock/codec/zstd.hpp>
#endif

#include <string_view>

std::string_view version_seen_by_other();
std::string_view version_seen_by_other() { return penstock::version; }
