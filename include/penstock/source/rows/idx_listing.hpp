// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/idx.hpp>

/// IDX files among what is listed, for the formats that read them.
namespace penstock::inline v0_1::detail {

template <class T, class>
using idx_source_of = idx_source<T>;

/// Whether the header matches the size.
[[nodiscard]] bool is_idx(const listed_files& some);
[[noreturn, gnu::cold]] void several_idx_files(const dataset_listing& there);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/idx_listing.ipp>
#endif
