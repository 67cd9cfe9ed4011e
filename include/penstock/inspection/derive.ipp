// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/derive.hpp>

#include <penstock/source/files/values_lock.hpp>

#include <sys/stat.h>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string derived_path(const std::string& path, std::string_view name) {
  struct stat status {};
  const bool folder = path.ends_with('/') || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  if (!folder) return path;
  if (name.find('/') != name.npos) {
    throw error(errc::argument, {"'", name, "' is not a file name for ", path, "; name the file itself"})
        .in_stage("derive");
  }
  return text({path, path.ends_with('/') ? "" : "/", name, ".penstock-values"});
}

/// Loads an existing index, or tells why there is none to use.
[[nodiscard]] PENSTOCK_INLINE found_index find_index(const wanted_index& wanted,
                                                     const derive_options& options) {
  const auto opened = values_file::open(wanted.path);
  if (opened.fault == values_fault::missing) return {};
  if (!opened.file) {
    if (opened.fault != values_fault::damaged || !options.rebuild) throw error(opened.why);
    return {nullptr, derived_from::damage};
  }
  const values_file& there = *opened.file;
  if (there.name() != wanted.name) {
    throw error(errc::argument, {"the derived index is called '", there.name(), "' and not '", wanted.name,
                                 "'; name another file, or delete this one"})
        .in_file(wanted.path)
        .at_offset(there.header().name_at());
  }
  check_kind(there, wanted.kind);
  if (there.header().dataset != wanted.dataset || there.header().samples != wanted.samples) {
    if (!options.rebuild) {
      throw error(errc::state,
                  "the derived index was made from another dataset, or from another state of it (the "
                  "fingerprints differ); delete it, or leave out .rebuild = false")
          .in_file(wanted.path)
          .at_offset(24);
    }
    return {nullptr, derived_from::stale};
  }
  return {opened.file, derived_from::file};
}

PENSTOCK_INLINE found_index found_or_made(const wanted_index& wanted, const derive_options& options,
                                          const deriving& pass) {
  found_index found = find_index(wanted, options);
  if (!found.file) {
    const derived_from origin = found.origin;
    const making_lock lock(wanted.path);
    found = find_index(wanted, options);
    if (!found.file) {
      const derived_values all = pass.values(pass.plan, wanted.samples);
      values_header header;
      header.kind = wanted.kind;
      header.dataset = wanted.dataset;
      write_values(wanted.path, header, wanted.name, all.values, all.texts);
      found = {find_index(wanted, {.rebuild = false}).file, origin};
    }
  }
  if (!found.file)
    throw error(errc::io, "the derived index was removed while it was being made; make it again")
        .in_file(wanted.path);
  return found;
}

}  // namespace penstock::inline v0_1::detail
