// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/concepts.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// The columns of a struct and their types, with those of structs in it in their place.
[[nodiscard]] std::vector<source_field> fields_of_arrow(const arrow_type& root);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/arrow_fields.ipp>
#endif
