// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/mds_shards.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

// Source: mosaicml-streaming, streaming/base/format/mds/{reader,writer}.py.
namespace penstock::inline v0_1 {
namespace detail {

// The part of a name behind its folders, without a URL's query: folders of files may have a question mark.
PENSTOCK_INLINE std::string_view last_part(std::string_view name) noexcept {
  if (name.starts_with("http://") || name.starts_with("https://")) name = name.substr(0, name.find('?'));
  return name.substr(name.rfind('/') + 1);
}

PENSTOCK_INLINE mds_files::mds_files(const mds_index& index, std::span<const std::string> stored,
                                     const mds_kind& which)
    : kind(&which) {
  const auto refuse = [](std::initializer_list<piece> why) { throw error(errc::argument, why); };
  if (stored.size() != index.shards.size())
    refuse({"the index describes ", index.shards.size(), " shards, and the storage has ", stored.size(),
            " objects"});
  if (stored.empty()) refuse({"a dataset needs at least one shard"});
  for (const std::vector<mds_column>& list : index.columns) {
    for (const mds_column& one : list)
      if (one.encoding.empty()) refuse({"the column '", one.name, "' has no encoding"});
    if (list.empty()) refuse({"a dataset needs at least one column"});
    columns.emplace_back(list);
  }
  std::vector<manifest::shard> entries;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const mds_shard& one = index.shards[i];
    if (one.columns >= columns.size()) refuse({"the index has no list of columns number ", one.columns});
    // A copy has the name of its shard, or that of the compressed one, and an ending.
    const std::string_view given = last_part(stored[i]);
    if (!given.starts_with(last_part(one.name)) &&
        (one.packed_name.empty() || !given.starts_with(last_part(one.packed_name))))
      refuse({"object ", i, " of the storage is called '", stored[i], "', and shard ", i, " of the index '",
              one.name, "': give them in the index's order"});
    entries.push_back({stored[i], one.bytes, one.samples, one.bytes, one.content});
    columns_of.push_back(one.columns);
    names.push_back(one.name);
    mark = hash_words(hash_bytes(mark, bytes_of(one.name)), std::array{one.bytes, one.samples, one.content});
  }
  mark = hash_bytes(mark, bytes_of(which.source_name));
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE const mds_table* mds_files::read_table(session_view session, std::size_t shard) const {
  const manifest::shard& said = shards.shards()[shard];
  const object_id object = this->object(shard);
  const auto number = [](const std::byte* at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(at[i]) << (8 * i);
    return value;
  };
  const auto refuse = [](std::initializer_list<piece> what, std::uint64_t offset) {
    throw error(errc::format, what).at_offset(offset);
  };
  try {
    const std::uint64_t size = session.size(object);
    const bool all_said = size == said.bytes;
    if (!all_said) {
      const object_bytes some = session.range(object, 0, std::min<std::uint64_t>(size, 64));
      if (const std::string_view known = known_format(some);
          known.starts_with("a Git LFS") || known.starts_with("an HTML"))
        throw not_a("a shard", some, {});
    }
    if (!all_said &&
        !(kind->may_omit_table && size > said.bytes && (size - said.bytes) / 4 == said.samples + 2))
      refuse({"the shard has ", size, " bytes, and its index says ", said.bytes,
              ": if it is compressed, unpack it, or use ", kind->source_name, "<unpack_zstd>(folder)"},
             0);
    const std::uint64_t table_end = 4 * (said.samples + 2);
    if (said.samples >= size / 4 || table_end > size)
      refuse({"the shard of ", size, " bytes cannot have the ", said.samples, " samples that its index says"},
             0);
    // Most descriptions are short, and then come with the table.
    constexpr std::uint64_t usual = 4_KiB;
    object_bytes bytes = session.range(object, 0, std::min(size, table_end + usual));
    bytes_view head = bytes;
    if (number(head.data()) != said.samples)
      refuse({"the shard has ", number(head.data()), " samples, and its index says ", said.samples}, 0);
    std::vector<std::uint32_t> begins;
    for (std::uint64_t at = 4; at != table_end; at += 4) {
      const std::uint32_t begin = number(head.data() + at);
      if (begin < (begins.empty() ? table_end : begins.back()) || begin > size)
        refuse({"sample ", begins.size(), " of the shard begins at ", begin,
                ", which is not behind the one before it"},
               at);
      begins.push_back(begin);
    }
    if (begins.back() != size && kind->explain != nullptr) {
      const std::uint64_t some = std::min<std::uint64_t>(size, 8);
      const object_bytes last = session.range(object, size - some, some);
      if (const auto why = kind->explain(last); !why.empty()) refuse({why}, table_end - 4);
    }
    if (begins.back() != size)
      refuse({"the shard's last sample ends at ", begins.back(), ", and the shard at ", size}, table_end - 4);
    const std::uint64_t described = begins.front();
    constexpr std::uint64_t maximum = 1_MiB;
    if (described - table_end > maximum)
      throw error(errc::limit, {"the shard's description of its columns has ", described - table_end,
                                " bytes; the limit is 1 MiB"})
          .at_offset(table_end);
    if (described > head.size()) {
      bytes = session.range(object, 0, described, std::move(bytes));
      head = bytes;
    }
    const bytes_view config = head.subspan(to_size(table_end), to_size(described - table_end));
    bool agreed = false;
    try {
      agreed = kind->agrees(text_of(config), columns[columns_of[shard]].all);
    } catch (error& e) {
      e.within("the shard's description", table_end).at_offset(table_end);
      throw;
    }
    if (!agreed) refuse({"the shard describes other columns than its index"}, table_end);
    session.confirm(object);
    return new mds_table{std::move(begins)};
  } catch (error& e) {
    session.confirm(object);
    e.in_file(path(shard));
    throw;
  }
}

PENSTOCK_INLINE mds_tables::mds_tables(shared<const mds_files> files)
    : files_(std::move(files)),
      loaded_(new loaded_once<mds_table>(files_->names.size(), files_->shards.starts()->size() - 1)) {}
PENSTOCK_INLINE mds_tables::mds_tables(mds_tables&&) noexcept = default;
PENSTOCK_INLINE mds_tables::~mds_tables() = default;

PENSTOCK_INLINE const mds_table& mds_tables::load(session_view session, std::size_t shard) const {
  return loaded_->get(shard, [&] { return files_->read_table(session, shard); });
}

PENSTOCK_INLINE void mds_tables::get_ready(session_view session, std::span<const position> samples) const {
  loaded_->get_ready(
      samples, [&](std::uint64_t index) { return files_->locate(index).shard; },
      [&](std::size_t shard) { (void)get(session, shard); });
}

}  // namespace detail
}  // namespace penstock::inline v0_1
