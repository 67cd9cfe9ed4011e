// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/line_files.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/hash_bytes.hpp>
#include <penstock/source/detail/packed_format.hpp>
#include <penstock/source/detail/parallel.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE line_table::line_table(std::string_view text) {
  constexpr std::size_t few = 128, room = 4096;
  constexpr std::uint64_t most = 64;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count % group == 0) {
      begins.push_back(at);
      if (begins.size() > few && group < most && begins.size() > at / room) thin_out();
    }
    at = end_of(text, at);
  }
  begins.shrink_to_fit();
}

PENSTOCK_INLINE void line_table::thin_out() {
  for (std::size_t i = 0; 2 * i < begins.size(); ++i) begins[i] = begins[2 * i];
  begins.resize((begins.size() + 1) / 2);
  group *= 2;
}

// Refuses a compressed file, whose bytes would also make lines. Text may begin with the magic letters of
// bzip2 and lzip, so these two are checked further.
PENSTOCK_INLINE void refuse_packed_lines(bytes_view all) {
  const std::string_view format = tar::compression_of(all.first(std::min<std::size_t>(all.size(), 4096)));
  const std::string_view rest = text_of(all).substr(std::min<std::size_t>(all.size(), 4));
  if (format.empty() || (format == "bzip2" && !rest.starts_with("1AY&SY")) ||
      (format == "lzip" && !rest.starts_with('\1')))
    return;
  throw error(errc::format, tar::packed_advice(format, "lines(mapped_file(unpacked<",
                                               ">(...))), which is in <penstock/source/unpacked.hpp>"))
      .at_offset(0);
}

PENSTOCK_INLINE void line_files::read(storage_facts where, session_view session, std::size_t threads) {
  const std::span<const std::string> names = where.names;
  signatures.resize(names.size());
  tables.resize(names.size());
  ends.resize(names.size());
  std::vector<manifest::shard> entries(names.size());
  tar::for_each_in_parallel(names.size(), threads, [&](std::size_t i) {
    const auto object = static_cast<object_id>(i);
    const object_signature signature = session.signature(object);
    const bytes_view all = session.view(object, 0, signature.size);
    line_table& table = tables[i];
    std::uint64_t content = 0;
    try {
      refuse_packed_lines(all);
      table = line_table(text_of(all));
      ends[i] = hash_of_file(session, object, signature.size);
      content = hash_words(ends[i] ^ table.count, table.begins);
      session.confirm(object);
    } catch (error& e) {
      session.confirm(object);
      e.in_file(names[i]);
      throw;
    }
    entries[i] = {names[i], signature.size, table.count, signature.size, content};
    signatures[i] = signature;
  });
  shards = manifest(std::move(entries));
  if (shards.samples() == 0)
    throw error(errc::argument, "lines: the files are empty, there are no lines in them")
        .in_file(names.empty() ? "" : names.front());
}

}  // namespace detail
}  // namespace penstock::inline v0_1
