// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/loaded_once.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Covers where the values of all records are, and those that the index has.
template <class Index>
[[nodiscard]] std::uint64_t mark_of(const Index& index) {
  if constexpr (requires { index.mark(); }) {
    return index.mark();
  } else {
    std::uint64_t mark = index.records();
    const auto add = [&](const value_place& one) {
      mark = hash_words(mark, std::array{one.begin, one.size});
      if (one.in_memory != nullptr) mark = hash_bytes(mark, {one.in_memory, to_size(one.size)});
    };
    for (std::uint64_t i = 0; i < index.records(); ++i)
      if constexpr (places_values<Index>)
        for (std::size_t field = 0; field < index.fields().size(); ++field) add(index.place(i, field));
      else
        add(index.record(i));
    return mark;
  }
}

/// The bytes of values in a file of that size.
template <class Index>
[[nodiscard]] std::uint64_t payload_of(const Index& index, std::uint64_t size) {
  if constexpr (requires { index.payload(); })
    return index.payload();
  else
    return size;
}

/// The files of a format as part of a plan, with all their indexes.
template <class Format>
struct indexed_files : known_files {
  using index_type = typename Format::index;
  std::vector<owned<const index_type>> indexes;  // by shard

  indexed_files(const Format& format, storage_facts where, session_view session)
      : indexes(where.names.size()) {
    read_each(where, session, [&](std::size_t i, object_version version) {
      indexes[i] = owned(new const index_type(format.read_index(session, static_cast<object_id>(i))));
      const index_type& index = *indexes[i];
      return file_facts{index.records(), payload_of(index, version.size), mark_of(index)};
    });
    for (std::size_t i = 1; i < indexes.size(); ++i)
      if (!(indexes[i]->fields() == fields()))
        throw error(errc::format, {"the file has other fields than the first one, '", path(0), "'"})
            .in_file(path(i));
  }

  [[nodiscard]] const auto& fields() const noexcept { return indexes.front()->fields(); }
  [[nodiscard]] const auto& fields_of(std::size_t) const noexcept { return fields(); }
  void append_key(std::string& to, std::size_t shard, const index_type& index, std::uint64_t record) const {
    if constexpr (requires { index.key(record); })
      append(to, {std::string_view(index.key(record))});
    else
      append(to, {path(shard).substr(path(shard).rfind('/') + 1), ":", record});
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    if constexpr (requires { Format::mark; })
      return mix64(shards.fingerprint() ^ Format::mark);
    else
      return mix64(shards.fingerprint() ^ hash_bytes(0, bytes_of(Format::source_name)));
  }
  [[nodiscard]] std::string describe() const {
    std::string line =
        text({Format::source_name, "(", indexes.size(), indexes.size() == 1 ? " file, " : " files, ",
              shards.bytes(), " bytes): ", shards.samples(), " samples of "});
    for (std::size_t i = 0; i < fields().size(); ++i)
      append(line, {i == 0 ? "" : ", ", fields()[i].name, " (", fields()[i].type, ")"});
    return line;
  }
  template <class Field>
  static void check_codec(const Field& field, std::string_view codec)
    requires requires { Format::check_codec(field, codec); }
  {
    Format::check_codec(field, codec);
  }
};

}  // namespace penstock::inline v0_1::detail
