// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/load.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string loaded_name(std::string_view folder, std::string_view path,
                                        const load_options& options) {
  const bool outside = path.starts_with('/') || path.find("://") != path.npos;
  bool leaves = outside || path.empty() || path.find('\0') != path.npos;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    leaves = leaves || path.substr(begin, end - begin) == "..";
    begin = end + 1;
  }
  if (path.empty() || (leaves && !options.allow_outside))
    throw error(errc::argument,
                {"the path '", path, "' ", path.empty() ? "is empty" : "leads out of the folder '",
                 path.empty() ? "" : folder,
                 path.empty() ? "" : "'; load_options{.allow_outside = true} reads it nevertheless"});
  std::string made(outside ? std::string_view() : folder);
  if (!made.empty() && !made.ends_with('/')) made += '/';
  return made.append(path);
}

PENSTOCK_INLINE std::string load_folder(std::span<const std::string> names) {
  if (names.size() != 1)
    throw error(errc::argument,
                {"load is given the storage of one folder, as in load<\"path\">(file(\"data\"), jpeg{}), "
                 "and this one names ",
                 names.size(), " objects"});
  return names.front();
}

PENSTOCK_INLINE void too_long_to_load(std::uint64_t size, const load_options& options) {
  throw error(errc::limit,
              {"the file has ", size, " bytes, and load_options::max_bytes is ", options.max_bytes});
}

}  // namespace penstock::inline v0_1::detail
