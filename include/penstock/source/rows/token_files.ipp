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

namespace penstock::inline v0_1 {
namespace detail {

// The tokens within a file.
struct token_range {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t count = 0;  // in tokens
};

inline constexpr std::size_t llmc_header_bytes = 1024;

// The tokens of an llm.c file of `size` bytes. `head` is its header, or the whole file if that is shorter.
// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
PENSTOCK_INLINE token_range parse_llmc(bytes_view head, std::uint64_t size, const std::string& path,
                                       token_type type) {
  constexpr std::uint32_t narrow_magic = 20240520, wide_magic = 20240801, eval_magic = 20240522;
  const bool wide = type.width == 4;
  const std::uint32_t known_magic = wide ? wide_magic : narrow_magic;
  const std::uint32_t known_version = wide ? 7 : 1;
  const auto fail = [&path](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  if (head.size() < 4) throw fail("the file ends within the header of an llm.c file", size);
  const auto number = [head](std::size_t i) { return load_little<std::uint32_t>(head.data() + 4 * i); };
  const std::uint32_t magic = number(0);
  if (magic == (wide ? narrow_magic : wide_magic))
    throw fail(text({"the llm.c file holds tokens of another width; ask for ",
                     wide ? "std::uint16_t" : "std::uint32_t"}),
               0);
  if (magic == eval_magic)
    throw fail("this is an llm.c file of multiple-choice examples, not one of tokens", 0);
  if (magic != known_magic)
    throw not_a("an llm.c token file", head,
                {"it begins with ", magic, " and not with ", known_magic,
                 "; a file without a header is read by raw_tokens"})
        .in_file(path);
  if (head.size() < llmc_header_bytes) throw fail("the file ends within its llm.c header", size);
  if (number(1) != known_version)
    throw fail(text({"version ", number(1), " of llm.c's token files is not known, only ", known_version}),
               4);
  const std::uint64_t count = number(2);
  const std::uint64_t present = size - llmc_header_bytes;
  if (count * type.width != present)
    throw fail(text({"the llm.c header says ", count, " tokens, which are ", count * type.width,
                     " bytes, but ", present, " follow it; copy the file again if it was cut"}),
               8);
  return {llmc_header_bytes, count};
}

// The tokens of a file without a header, as nanoGPT writes them; `head` is its beginning.
PENSTOCK_INLINE token_range parse_raw(bytes_view head, std::uint64_t size, const std::string& path,
                                      token_type type) {
  if (head.size() >= 8) {
    const auto magic = load_little<std::uint32_t>(head.data()),
               version = load_little<std::uint32_t>(head.data() + 4);
    if ((magic == 20240520 && version == 1) || (magic == 20240801 && version == 7))
      throw error(errc::format,
                  "the file begins with the header of an llm.c file, which is not tokens; read it "
                  "with llmc_tokens")
          .in_file(path)
          .at_offset(0);
    if (text_of(head).starts_with("MMIDIDX"))
      throw error(errc::format,
                  "this is the index of a Megatron dataset, not its tokens; read both with megatron_tokens")
          .in_file(path)
          .at_offset(0);
  }
  // Any bytes are tokens, so that only texts in the place of files are refused.
  if (const std::string_view known = known_format(head);
      known.starts_with("a Git LFS") || known.starts_with("an HTML"))
    throw not_a("a file of tokens", head, {}).in_file(path);
  if (size % type.width != 0)
    throw error(errc::format, {"the file has ", size, " bytes, which is not a whole number of ", type.width,
                               "-byte tokens: it was cut, or its tokens have another width"})
        .in_file(path)
        .at_offset(size - size % type.width);
  return {0, size / type.width};
}

// The tokens of a chunk of LitData: behind the number of items and the offsets of their begins, and of the
// end.
// Source: litdata, streaming/writer.py.
PENSTOCK_INLINE token_range parse_litdata(session_view session, object_id object, std::uint64_t size,
                                          const std::string& path, token_type type) {
  const auto fail = [&](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  const auto number = [&](std::uint64_t offset) {
    if (size < 4 || offset > size - 4) throw fail("the chunk ends within its table", size);
    std::array<std::byte, 4> four;
    session.read(object, offset, four);
    return std::uint64_t{load_little<std::uint32_t>(four.data())};
  };
  const std::uint64_t items = number(0), begin = 4 * (items + 2);
  if (number(4) != begin || number(begin - 4) != size)
    throw fail(
        "the chunk's table does not match its size: it is no chunk of LitData, was cut off, or is compressed",
        4);
  if ((size - begin) % type.width != 0)
    throw fail(text({"the chunk has ", size - begin, " bytes of tokens, which is not a whole number of ",
                     type.width, "-byte tokens"}),
               begin);
  return {begin, (size - begin) / type.width};
}

// The index of a Megatron dataset, checked as a whole.
// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
class megatron_index {
 public:
  // `bytes` is the whole index, which must outlive this.
  megatron_index(bytes_view bytes, const std::string& path) : bytes_(bytes), path_(&path) {
    if (bytes.size() < head || text_of(bytes.first(9)) != std::string_view("MMIDIDX\0\0", 9))
      throw not_a("the index of a Megatron dataset", bytes, {"it does not begin with MMIDIDX"}).in_file(path);
    const auto version = load_little<std::uint64_t>(bytes.data() + 9);
    if (version != 1)
      throw fail(text({"version ", version, " of Megatron's indexes is not known, only 1"}), 9);
    code_ = std::to_integer<unsigned>(bytes[17]);
    sequences_ = load_little<std::uint64_t>(bytes.data() + 18);
    bounds_ = load_little<std::uint64_t>(bytes.data() + 26);
    const std::uint64_t room = bytes.size() - head;
    // divide rather than multiply: products of false lengths could wrap around
    const bool fits = sequences_ <= room / 12 && bounds_ <= (room - 12 * sequences_) / 8;
    const std::uint64_t rest = fits ? room - 12 * sequences_ - 8 * bounds_ : 0;
    if (!fits || (rest != 0 && rest != sequences_))  // multimodal datasets have one more byte per sequence
      throw fail(text({"the index says ", sequences_, " sequences and ", bounds_,
                       " bounds of documents, which does not match its size of ", bytes.size(),
                       " bytes; copy it again if it was cut"}),
                 18);
  }

  [[nodiscard]] std::uint64_t documents() const noexcept { return bounds_ == 0 ? 0 : bounds_ - 1; }

  // Compares the index with the type asked for and the size of the file of tokens, and calls
  // `document(first token, tokens)` for each document.
  template <class Document>
  [[nodiscard]] token_range read(token_type type, std::uint64_t tokens_size, const std::string& tokens_path,
                                 Document&& document) const {
    if (!accepts(type))
      throw fail(text({"the Megatron dataset holds tokens of type ", type_name(code_),
                       ", and another type was asked for"}),
                 17);
    if (bounds_ == 0 || bound(0) != 0 || bound(bounds_ - 1) != sequences_)
      throw fail(text({"the bounds of documents do not go from 0 to the number of sequences, ", sequences_}),
                 bounds_at());
    std::uint64_t tokens = 0, begin = 0, next = 1;
    const auto close = [&](std::uint64_t sequence) {
      for (; next < bounds_ && bound(next) == sequence; ++next) {
        document(begin, tokens - begin);
        begin = tokens;
      }
    };
    close(0);
    for (std::uint64_t i = 0; i < sequences_; ++i) {
      const auto length = load_little<std::uint32_t>(bytes_.data() + at(head + 4 * i));
      const auto offset = load_little<std::uint64_t>(bytes_.data() + at(head + 4 * sequences_ + 8 * i));
      if (length > 0x7fffffffu || offset != tokens * type.width)
        throw fail(text({"sequence ", i, " does not begin where the one before it ends"}),
                   head + 4 * sequences_ + 8 * i);
      tokens += length;
      close(i + 1);
    }
    if (next != bounds_) throw fail("the bounds of documents do not ascend", bounds_at() + 8 * next);
    if (tokens * type.width != tokens_size)
      throw error(errc::format, {"the index says ", tokens, " tokens, which are ", tokens * type.width,
                                 " bytes, but the file has ", tokens_size, "; copy both again"})
          .in_file(tokens_path)
          .at_offset(std::min(tokens * type.width, tokens_size));
    return {0, tokens};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_bytes(0x4d4d4944, bytes_); }

 private:
  static constexpr std::size_t head = 34;

  static std::size_t at(std::uint64_t place) noexcept { return detail::to_size(place); }
  [[nodiscard]] error fail(std::string what, std::uint64_t offset) const {
    return error(errc::format, std::move(what)).in_file(*path_).at_offset(offset);
  }
  [[nodiscard]] std::uint64_t bounds_at() const noexcept { return head + 12 * sequences_; }
  [[nodiscard]] std::uint64_t bound(std::uint64_t i) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + at(bounds_at() + 8 * i));
  }
  static std::string_view type_name(unsigned code) noexcept {
    constexpr std::string_view names[] = {"uint8", "int8",    "int16",   "int32",
                                          "int64", "float64", "float32", "uint16"};
    return code >= 1 && code <= 8 ? names[code - 1] : "unknown";
  }
  // Tokens are never negative, so a signed file can be read as unsigned of that width, but not the other
  // way round.
  [[nodiscard]] bool accepts(token_type type) const noexcept {
    switch (code_) {
      case 1:
        return type.width == 1 && !type.is_signed;
      case 2:
        return type.width == 1;
      case 3:
        return type.width == 2;
      case 4:
        return type.width == 4;
      case 5:
        return type.width == 8;
      case 8:
        return type.width == 2 && !type.is_signed;
      default:
        return false;
    }
  }

  bytes_view bytes_;
  const std::string* path_;
  unsigned code_ = 0;
  std::uint64_t sequences_ = 0;
  std::uint64_t bounds_ = 0;
};

PENSTOCK_INLINE std::string_view token_format_name(token_format format) noexcept {
  switch (format) {
    case token_format::raw:
      return "raw";
    case token_format::llmc:
      return "llmc";
    case token_format::megatron:
      return "megatron";
    case token_format::litdata:
      break;
  }
  return "litdata";
}

PENSTOCK_INLINE std::string megatron_prefix(std::string_view name) {
  if (name.ends_with(".bin") || name.ends_with(".idx")) name.remove_suffix(4);
  return std::string(name);
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
  row = extents(window.length + window.targets);
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
    if (format == token_format::megatron) {
      const auto found = indexes.find(megatron_prefix(names[object]));
      if (found == indexes.end())
        throw error(errc::argument, "megatron_tokens: the storage names no .idx for this file")
            .in_file(names[object]);
      const object_bytes bytes = session.range(found->second, 0, session.size(found->second));
      const megatron_index index(bytes, names[found->second]);
      range = index.read(type, version.size, names[object], [&](std::uint64_t first, std::uint64_t count) {
        longest = std::max(longest, count);
        const std::uint64_t windows = windows_in(count, span, window.stride);
        if (!window.within_documents || windows == 0) return;
        first_windows.push_back(all);
        first_tokens.push_back(first);
        all += windows;
      });
      index_hash = index.hash();
    } else if (format == token_format::litdata) {
      range = parse_litdata(session, object, version.size, names[object], type);
    } else {
      const std::uint64_t head = format == token_format::raw ? 64 : llmc_header_bytes;
      const object_bytes start = session.range(object, 0, std::min(version.size, head));
      range = format == token_format::raw ? parse_raw(start, version.size, names[object], type)
                                          : parse_llmc(start, version.size, names[object], type);
    }
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
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE std::string token_files::describe() const {
  return detail::text({token_format_name(format), "_tokens(", versions.size(), " files, ", tokens,
                       " tokens): ", shards.samples(), " windows of ", window.length, " + ", window.targets,
                       " tokens, ", window.stride, " apart",
                       window.within_documents ? ", within documents" : ""});
}

}  // namespace detail
}  // namespace penstock::inline v0_1
