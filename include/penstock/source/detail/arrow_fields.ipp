// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/arrow_fields.hpp>

#include <penstock/core/arrow_column.hpp>

#include <cstddef>
#include <string>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void add_types_of_arrow(const arrow_type& type, std::vector<std::string>& types) {
  for (const arrow_type& child : type.children)
    if (child.layout == arrow_layout::record && child.dictionary.empty())
      add_types_of_arrow(child, types);
    else
      types.push_back(child.text());
}

PENSTOCK_INLINE std::vector<source_field> fields_of_arrow(const arrow_type& root) {
  const std::vector<std::string> names = arrow_leaf_names(root);
  std::vector<std::string> types;
  add_types_of_arrow(root, types);
  std::vector<source_field> made;
  for (std::size_t i = 0; i < names.size(); ++i) made.push_back({names[i], types[i]});
  return made;
}

}  // namespace penstock::inline v0_1::detail
