// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/memory_files.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cstddef>
#include <unordered_map>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void memory_files::session::check(object_id id) const {
  if (id >= table_->contents.size()) throw error(errc::argument, {"there is no object ", id});
  if (table_->absent[id])
    throw error(errc::io, "no such object was added").recurring().in_file(table_->names[id]);
}
PENSTOCK_INLINE void memory_files::session::refuse(object_id id, std::uint64_t offset,
                                                   std::uint64_t size) const {
  throw error(errc::format,
              {"the object ends at ", content(id).size(), ", but ", size, " bytes were requested"})
      .in_file(table_->names[id])
      .at_offset(offset);
}
PENSTOCK_INLINE memory_files& memory_files::add(std::string_view name, bytes_view bytes) & {
  std::shared_ptr<buffer> copy(new buffer(bytes.size()));
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  const bytes_view kept = copy->view();
  insert(name, kept, std::move(copy));
  return *this;
}
PENSTOCK_INLINE memory_files& memory_files::add_view(std::string_view name, bytes_view bytes) & {
  insert(name, bytes, nullptr);
  return *this;
}

PENSTOCK_INLINE memory_files memory_files::with_names(std::vector<std::string> names) const {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < table_->names.size(); ++i) places.emplace(table_->names[i], i);
  std::shared_ptr<table> found(new table());
  found->names = std::move(names);
  for (const std::string& name : found->names) {
    const auto place = places.find(name);
    const bool there = place != places.end();
    found->contents.push_back(there ? table_->contents[place->second] : bytes_view());
    found->owned.push_back(there ? table_->owned[place->second] : nullptr);
    found->absent.push_back(!there);
  }
  memory_files made;
  made.table_ = std::move(found);
  return made;
}
PENSTOCK_INLINE std::string memory_files::describe() const {
  return detail::text({"memory_files(", names().size(), " objects)"});
}

PENSTOCK_INLINE void memory_files::insert(std::string_view name, bytes_view bytes,
                                          std::shared_ptr<const buffer> owner) {
  for (const std::string& known : table_->names) {
    if (known == name) throw error(errc::argument, "an object with this name already exists").in_file(name);
  }
  // Sessions and copies of this value may be using the table, so a shared one is replaced, not changed.
  std::shared_ptr<table> grown(new table(*table_));
  grown->names.emplace_back(name);
  grown->contents.push_back(bytes);
  grown->owned.push_back(std::move(owner));
  if (!grown->absent.empty()) grown->absent.push_back(false);
  table_ = std::move(grown);
}

}  // namespace penstock::inline v0_1
