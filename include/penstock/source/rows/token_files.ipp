// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/token_files.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/file_names.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace penstock::inline v0_1::detail {

// What an llm.c file of tokens of 2 or 4 bytes begins with.
struct llmc_mark {
  std::uint32_t magic, version;

  friend bool operator==(const llmc_mark&, const llmc_mark&) = default;
};
inline constexpr llmc_mark llmc_narrow{20240520, 1}, llmc_wide{20240801, 7};

PENSTOCK_INLINE std::size_t llmc_width(bytes_view head) noexcept {
  if (head.size() < 8) return 0;
  const llmc_mark mark{load_little<std::uint32_t>(head.data()), load_little<std::uint32_t>(head.data() + 4)};
  return mark == llmc_narrow ? 2 : mark == llmc_wide ? 4 : 0;
}

// The tokens within a file.
struct token_range {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t count = 0;  // in tokens
};

inline constexpr std::size_t llmc_header_bytes = 1024;

// The tokens of an llm.c file of `size` bytes. `head` is its header, or the whole file if that is shorter.
// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
PENSTOCK_INLINE token_range parse_llmc(bytes_view head, std::uint64_t size, token_type type) {
  constexpr std::uint32_t eval_magic = 20240522;
  const bool wide = type.width == 4;
  const llmc_mark known = wide ? llmc_wide : llmc_narrow;
  if (head.size() < 4) refuse_tokens({"the file ends within the header of an llm.c file"}, size);
  const auto number = [head](std::size_t i) { return load_little<std::uint32_t>(head.data() + 4 * i); };
  const std::uint32_t magic = number(0);
  if (magic == (wide ? llmc_narrow : llmc_wide).magic)
    refuse_tokens(
        {"the llm.c file holds tokens of another width; ask for ", wide ? "std::uint16_t" : "std::uint32_t"},
        0);
  if (magic == eval_magic)
    refuse_tokens({"this is an llm.c file of multiple-choice examples, not one of tokens"}, 0);
  if (magic != known.magic)
    throw not_a("an llm.c token file", head,
                {"it begins with ", magic, " and not with ", known.magic,
                 "; a file without a header is read by raw_tokens"});
  if (head.size() < llmc_header_bytes) refuse_tokens({"the file ends within its llm.c header"}, size);
  if (number(1) != known.version)
    refuse_tokens({"version ", number(1), " of llm.c's token files is not known, only ", known.version}, 4);
  const std::uint64_t count = number(2);
  const std::uint64_t present = size - llmc_header_bytes;
  if (count * type.width != present)
    refuse_tokens({"the llm.c header says ", count, " tokens, which are ", count * type.width, " bytes, but ",
                   present, " follow it; copy the file again if it was cut"},
                  8);
  return {llmc_header_bytes, count};
}

// The tokens of a file without a header, as nanoGPT writes them; `head` is its beginning.
PENSTOCK_INLINE token_range parse_raw(bytes_view head, std::uint64_t size, token_type type) {
  if (llmc_width(head) != 0)
    refuse_tokens({"the file begins with the header of an llm.c file, which is not tokens; read it with "
                   "llmc_tokens"},
                  0);
  if (text_of(head).starts_with("MMIDIDX"))
    refuse_tokens({"this is the index of a Megatron dataset, not its tokens; read both with megatron_tokens"},
                  0);
  if (text_of(head).starts_with("\x93NUMPY"))
    refuse_tokens({"the file begins with the header of an npy file, which is not tokens; write them with "
                   "numpy's tofile"},
                  0);
  // Any bytes are tokens, so that only texts in the place of files are refused.
  if (const std::string_view known = known_format(head);
      known.starts_with("a Git LFS") || known.starts_with("an HTML"))
    throw not_a("a file of tokens", head, {});
  if (size % type.width != 0)
    refuse_tokens({"the file has ", size, " bytes, which is not a whole number of ", type.width,
                   "-byte tokens: it was cut, or its tokens have another width"},
                  size - size % type.width);
  return {0, size / type.width};
}

// The tokens of a chunk of LitData: behind the number of items and the offsets of their begins, and of the
// end.
// Source: litdata, streaming/writer.py.
PENSTOCK_INLINE token_range parse_litdata(session_view session, object_id object, std::uint64_t size,
                                          token_type type) {
  const auto number = [&](std::uint64_t offset) {
    if (size < 4 || offset > size - 4) refuse_tokens({"the chunk ends within its table"}, size);
    std::array<std::byte, 4> four;
    session.read(object, offset, four);
    return std::uint64_t{load_little<std::uint32_t>(four.data())};
  };
  const std::uint64_t items = number(0), begin = 4 * (items + 2);
  if (number(4) != begin || number(begin - 4) != size)
    refuse_tokens({"the chunk's table does not match its size: it is no chunk of LitData, was cut off, or is "
                   "compressed"},
                  4);
  if ((size - begin) % type.width != 0)
    refuse_tokens({"the chunk has ", size - begin, " bytes of tokens, which is not a whole number of ",
                   type.width, "-byte tokens"},
                  begin);
  return {begin, (size - begin) / type.width};
}

PENSTOCK_INLINE std::string_view token_format_name(token_format format) noexcept {
  return enum_name({"raw", "llmc", "megatron", "litdata"}, format);
}

PENSTOCK_INLINE std::vector<std::string> megatron_names(std::string_view pattern) {
  std::vector<std::string> names;
  for (const std::string& name : file_names(pattern)) {
    const std::string prefix = megatron_prefix(name);
    if (name.ends_with(".idx") && !names.empty() && names.back() == name) continue;  // `prefix*` matches both
    names.push_back(prefix + ".bin");
    names.push_back(prefix + ".idx");
  }
  return names;
}

PENSTOCK_INLINE token_files::token_files(window_layout wanted, token_format kind)
    : window(wanted), format(kind) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 40;
  if (window.stride == 0) window.stride = window.length;
  if (window.length == 0)
    throw error(errc::argument,
                {token_format_name(format), "_tokens: windows need a length of at least one token"});
  if (window.length > maximum || window.targets > maximum)
    throw error(errc::argument,
                {token_format_name(format), "_tokens: windows of ", window.length, " + ", window.targets,
                 " tokens are too long; length and targets go up to 2^40 each"});
  if (window.within_documents && format != token_format::megatron)
    throw error(errc::argument, {token_format_name(format),
                                 "_tokens: these files do not say where documents end, so windows "
                                 "cannot stay within them; Megatron's index does"});
  if (window.numbered && format != token_format::megatron)
    throw error(errc::argument,
                {token_format_name(format),
                 "_tokens: these files do not say where documents end, so with_document_ids cannot; where a "
                 "token ends each, document_rows(tokens, eot) finds them in a batch"});
  row = extents(window.length + window.targets);
}

PENSTOCK_INLINE void token_files::number_documents(const manifest::place& at,
                                                   std::int32_t* to) const noexcept {
  std::size_t document = 0;
  const std::uint64_t first = number(at, document);
  const auto begin = document_begins.begin() + static_cast<std::ptrdiff_t>(first_documents[at.shard]);
  const auto end = document_begins.begin() + static_cast<std::ptrdiff_t>(first_documents[at.shard + 1]);
  auto next = std::upper_bound(begin, end, first);
  std::int32_t id = 0;
  for (std::uint64_t i = 0; i < row.elements(); ++i) {
    if (next != end && *next == first + i) {
      ++next;
      ++id;
    }
    to[i] = id;
  }
}

PENSTOCK_INLINE void token_files::read(storage_facts where, session_view session, token_type type) {
  const auto& names = where.names;
  std::unordered_map<std::string, object_id> indexes;  // Megatron's indexes by prefix
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (format == token_format::megatron && names[i].ends_with(".idx"))
      indexes.emplace(megatron_prefix(names[i]), static_cast<object_id>(i));
    else
      objects.push_back(static_cast<object_id>(i));
  }
  width = type.width;
  row_bytes = row.elements() * width;
  const std::uint64_t span = row.elements();
  std::vector<manifest::shard> entries;
  std::uint64_t all = 0, longest = 0;
  for (const object_id object : objects) {
    const object_version version = session.version(object);
    const std::uint64_t before = all;
    token_range range;
    std::uint64_t index_hash = 0;
    if (window.numbered) first_documents.push_back(document_begins.size());
    if (format == token_format::megatron) {
      const auto found = indexes.find(megatron_prefix(names[object]));
      if (found == indexes.end())
        throw error(errc::argument, "megatron_tokens: the storage names no .idx for this file")
            .in_file(names[object]);
      const object_bytes bytes = session.range(found->second, 0, session.size(found->second));
      in_file(names[found->second], [&] {
        const megatron_index index(bytes);
        range.count = index.read(
            type,
            [&](std::uint64_t first, std::uint64_t count) {
              longest = std::max(longest, count);
              if (window.numbered && count != 0) document_begins.push_back(first);
              const std::uint64_t windows = windows_in(count, span, window.stride);
              if (!window.within_documents || windows == 0) return;
              first_windows.push_back(all);
              first_tokens.push_back(first);
              all += windows;
            },
            [](std::uint64_t, std::uint64_t) {});
        index_hash = index.hash();
      });
    }
    in_file(names[object], [&] {
      if (format == token_format::litdata) range = parse_litdata(session, object, version.size, type);
      if (format == token_format::raw || format == token_format::llmc) {
        const bool raw = format == token_format::raw;
        const std::uint64_t head = raw ? 64 : llmc_header_bytes;
        const object_bytes start = session.range(object, 0, std::min(version.size, head));
        range = raw ? parse_raw(start, version.size, type) : parse_llmc(start, version.size, type);
      }
      if (const std::uint64_t bytes = range.count * type.width;
          format == token_format::megatron && bytes != version.size)
        refuse_tokens({"the index says ", range.count, " tokens, which are ", bytes,
                       " bytes, but the file has ", version.size, "; copy both again"},
                      std::min(bytes, version.size));
    });
    if (!window.within_documents) {
      longest = std::max(longest, range.count);
      all += windows_in(range.count, span, window.stride);
    }
    const std::uint64_t hash = hash_of_file(session, object, version.size);
    learn_ends(object, hash);
    const std::uint64_t content = hash ^ index_hash;
    entries.push_back(
        {names[object], version.size, all - before, range.count * type.width,
         penstock::fingerprint{}.add(content, span, window.stride, window.within_documents).value()});
    versions.push_back(version);
    begins.push_back(range.begin);
    tokens += range.count;
  }
  if (all == 0)
    throw error(errc::argument,
                {token_format_name(format), "_tokens: no ", window.within_documents ? "document" : "file",
                 " has the ", span, " tokens of a window; the longest has ", longest})
        .in_file(objects.empty() ? "" : names[objects.front()]);
  first_windows.push_back(all);
  if (window.numbered) first_documents.push_back(document_begins.size());
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE std::string token_files::describe() const {
  return detail::text({token_format_name(format), "_tokens(", versions.size(), " files, ", tokens,
                       " tokens): ", shards.samples(), " windows of ", window.length, " + ", window.targets,
                       " tokens, ", window.stride, " apart",
                       window.within_documents ? ", within documents" : ""});
}

}  // namespace penstock::inline v0_1::detail
