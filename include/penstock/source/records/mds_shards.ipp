// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/mds_shards.hpp>

#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void check_mds_codec(const mds_column& column, std::string_view codec) {
  // The encodings that a codec reads: beside `bytes`, whose content only the user knows.
  struct reads {
    std::string_view codec;
    std::array<std::string_view, 5> encodings;
  };
  constexpr std::array<reads, 16> known{{{"text", {"str", "str_int", "str_float", "str_decimal", "json"}},
                                         {"integer", {"str", "str_int"}},
                                         {"floating", {"str", "str_int", "str_float", "str_decimal"}},
                                         {"json", {"str", "json"}},
                                         {"json_field", {"str", "json"}},
                                         {"json_fields", {"str", "json"}},
                                         {"jpeg", {"jpeg"}},
                                         {"png", {"png"}},
                                         {"image", {"jpeg", "png"}},
                                         {"webp", {}},
                                         {"npy", {}},
                                         {"npy_image", {}},
                                         {"pixels", {}},
                                         {"zstd", {}},
                                         {"gzip", {}},
                                         {"lz4", {}}}};
  if (column.encoding == "pkl" || column.encoding.starts_with("pkl:"))
    throw error(errc::format, {"the column '", column.name,
                               "' holds pickles, which can run any program and are never read: write it anew "
                               "with another encoding"});
  if (column.encoding == "bytes") return;
  const auto found = std::ranges::find(known, codec, &reads::codec);
  if (found == known.end() || std::ranges::find(found->encodings, column.encoding) != found->encodings.end())
    return;
  throw error(errc::format, {"the column '", column.name, "' is of encoding '", column.encoding,
                             "', which this codec does not read; raw_number<T> reads numbers, mds_array<T> "
                             "and litdata_array<T> arrays, mds_list lists, pil_pixels images of PIL"});
}

PENSTOCK_INLINE std::string_view last_part(std::string_view name) noexcept {
  if (name.starts_with("http://") || name.starts_with("https://")) name = name.substr(0, name.find('?'));
  return name.substr(name.rfind('/') + 1);
}

PENSTOCK_INLINE mds_files::mds_files(const mds_opening& opening, storage_facts where) : kind_(&opening.kind) {
  const mds_index& index = opening.index;
  const std::span<const std::string> stored = where.names;
  const auto refuse = [](std::initializer_list<piece> why) { throw error(errc::argument, why); };
  if (stored.size() != index.shards.size())
    refuse({"the index describes ", index.shards.size(), " shards, and the storage has ", stored.size(),
            " objects"});
  if (stored.empty()) refuse({"a dataset needs at least one shard"});
  for (const std::vector<mds_column>& list : index.columns) {
    for (const mds_column& one : list)
      if (one.encoding.empty()) refuse({"the column '", one.name, "' has no encoding"});
    if (list.empty()) refuse({"a dataset needs at least one column"});
    columns_.emplace_back(list);
  }
  std::vector<manifest::shard> entries;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const mds_shard& one = index.shards[i];
    if (one.columns >= columns_.size()) refuse({"the index has no list of columns number ", one.columns});
    // A copy has the name of its shard, or that of the compressed one, and an ending.
    const std::string_view given = last_part(stored[i]);
    if (!given.starts_with(last_part(one.name)) &&
        (one.packed_name.empty() || !given.starts_with(last_part(one.packed_name))))
      refuse({"object ", i, " of the storage is called '", stored[i], "', and shard ", i, " of the index '",
              one.name, "': give them in the index's order"});
    entries.push_back({stored[i], one.bytes, one.samples, one.bytes, one.content});
    columns_of_.push_back(one.columns);
    names_.push_back(one.name);
    mark_ =
        hash_words(hash_bytes(mark_, bytes_of(one.name)), std::array{one.bytes, one.samples, one.content});
  }
  mark_ = hash_bytes(mark_, bytes_of(kind_->source_name));
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE const mds_table* mds_files::load(session_view session, std::size_t shard) const {
  const manifest::shard& said = shards.shards()[shard];
  const object_id object = this->object(shard);
  const auto number = [](const std::byte* at) { return load_little<std::uint32_t>(at); };
  const auto refuse = [](std::initializer_list<piece> what, std::uint64_t offset) {
    throw error(errc::format, what).at_offset(offset);
  };
  return new mds_table(reading_object(session, object, path(shard), [&] {
    const std::uint64_t size = session.size(object);
    const bool all_said = size == said.bytes;
    if (!all_said) {
      const object_bytes some = session.range(object, 0, std::min<std::uint64_t>(size, 64));
      if (const std::string_view known = known_format(some);
          known.starts_with("a Git LFS") || known.starts_with("an HTML"))
        throw not_a("a shard", some, {});
    }
    if (!all_said &&
        !(kind_->may_omit_table && size > said.bytes && (size - said.bytes) / 4 == said.samples + 2))
      refuse({"the shard has ", size, " bytes, and its index says ", said.bytes,
              ": if it is compressed, unpack it, or use ", kind_->source_name, "<unpack_zstd>(folder)"},
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
    if (begins.back() != size && kind_->explain != nullptr) {
      const std::uint64_t some = std::min<std::uint64_t>(size, 8);
      const object_bytes last = session.range(object, size - some, some);
      if (const auto why = kind_->explain(last); !why.empty()) refuse({why}, table_end - 4);
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
      agreed = kind_->agrees(text_of(config), fields_of(shard));
    } catch (error& e) {
      e.within("the shard's description", table_end).at_offset(table_end);
      throw;
    }
    if (!agreed) refuse({"the shard describes other columns than its index"}, table_end);
    return mds_table(std::move(begins), columns_[columns_of_[shard]]);
  }));
}

PENSTOCK_INLINE std::string mds_files::describe() const {
  std::string line = text({kind_->source_name, "(", shards.shards().size(), " shards, ", shards.bytes(),
                           " bytes): ", shards.samples(), " samples of "});
  for (const mds_column& one : fields())
    append(line, {&one == &fields().front() ? "" : ", ", one.name, " (", one.encoding, ")"});
  return line;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
