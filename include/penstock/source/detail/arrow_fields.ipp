// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/arrow_fields.hpp>

#include <penstock/core/arrow_column.hpp>

#include <cstddef>
#include <string>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::vector<source_field> fields_of_arrow(const arrow_type& root) {
  const std::vector<std::string> names = arrow_leaf_names(root);
  const std::vector<const arrow_type*> types = arrow_leaf_types(root);
  std::vector<source_field> made;
  for (std::size_t i = 0; i < names.size(); ++i) made.push_back({names[i], types[i]->text()});
  return made;
}

}  // namespace penstock::inline v0_1::detail
