// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/detail/hash_bytes.hpp>
#include <penstock/source/detail/little_endian.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The three layouts of token files: what their headers say, checked against their sizes.
namespace penstock::inline v0_1 {
namespace detail {

/// Where the tokens of a file are.
struct token_range {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t count = 0;  // in tokens
};

/// What llm.c writes for tokens of type `T`.
template <class T>
struct llmc_header {
  static_assert(std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t>,
                "penstock: llm.c has files of std::uint16_t (GPT-2) and of std::uint32_t (Llama 3) only");
  static constexpr bool wide = sizeof(T) == 4;
  static constexpr std::uint32_t magic = wide ? 20240801 : 20240520;
  static constexpr std::uint32_t version = wide ? 7 : 1;
  static constexpr std::uint32_t other_magic = wide ? 20240520 : 20240801;
  static constexpr std::string_view other_type = wide ? "std::uint16_t" : "std::uint32_t";
};
inline constexpr std::uint32_t llmc_eval_magic = 20240522;
inline constexpr std::size_t llmc_header_bytes = 1024;

/// The tokens of an llm.c file of `size` bytes that begins with `head`: all of it, or its header.
/// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
template <class T>
[[nodiscard]] token_range parse_llmc(bytes_view head, std::uint64_t size, const std::string& path) {
  using header = llmc_header<T>;
  const auto fail = [&path](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  if (head.size() < 4) throw fail("the file ends within the header of an llm.c file", size);
  const auto number = [head](std::size_t i) { return little_endian<std::uint32_t>(head, 4 * i); };
  const std::uint32_t magic = number(0);
  if (magic == header::other_magic)
    throw fail(text({"the llm.c file holds tokens of another width; ask for ", header::other_type}), 0);
  if (magic == llmc_eval_magic)
    throw fail("this is an llm.c file of multiple-choice examples, not one of tokens", 0);
  if (magic != header::magic)
    throw fail(text({"this is not an llm.c token file: it begins with ", magic, " and not with ",
                     header::magic, "; a file without a header is read by raw_tokens"}),
               0);
  if (head.size() < llmc_header_bytes) throw fail("the file ends within its llm.c header", size);
  if (number(1) != header::version)
    throw fail(text({"version ", number(1), " of llm.c's token files is not known, only ", header::version}),
               4);
  const std::uint64_t count = number(2);
  const std::uint64_t present = size - llmc_header_bytes;
  if (count * sizeof(T) != present)
    throw fail(text({"the llm.c header says ", count, " tokens, which are ", count * sizeof(T),
                     " bytes, but ", present, " follow it; copy the file again if it was cut"}),
               8);
  return {llmc_header_bytes, count};
}

/// The tokens of a file without a header, as nanoGPT writes them; `head` is its beginning.
template <class T>
[[nodiscard]] token_range parse_raw(bytes_view head, std::uint64_t size, const std::string& path) {
  if (head.size() >= 8) {
    const auto magic = little_endian<std::uint32_t>(head, 0), version = little_endian<std::uint32_t>(head, 4);
    if ((magic == 20240520 && version == 1) || (magic == 20240801 && version == 7))
      throw error(errc::format,
                  "the file begins with the header of an llm.c file, which is no tokens; read it "
                  "with llmc_tokens")
          .in_file(path)
          .at_offset(0);
    if (text_of(head).starts_with("MMIDIDX"))
      throw error(errc::format,
                  "this is the index of a Megatron dataset, not its tokens; read both with megatron_tokens")
          .in_file(path)
          .at_offset(0);
  }
  if (size % sizeof(T) != 0)
    throw error(errc::format, {"the file has ", size, " bytes, which is no whole number of ", sizeof(T),
                               "-byte tokens: it was cut, or its tokens have another width"})
        .in_file(path)
        .at_offset(size - size % sizeof(T));
  return {0, size / sizeof(T)};
}

/// The index of a Megatron dataset, checked as a whole.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
class megatron_index {
 public:
  /// `bytes` is the whole index, which must outlive this.
  megatron_index(bytes_view bytes, const std::string& path) : bytes_(bytes), path_(&path) {
    if (bytes.size() < head || text_of(bytes.first(9)) != std::string_view("MMIDIDX\0\0", 9))
      throw fail("this is not the index of a Megatron dataset: it does not begin with MMIDIDX", 0);
    const auto version = little_endian<std::uint64_t>(bytes, 9);
    if (version != 1)
      throw fail(text({"version ", version, " of Megatron's indexes is not known, only 1"}), 9);
    code_ = std::to_integer<unsigned>(bytes[17]);
    sequences_ = little_endian<std::uint64_t>(bytes, 18);
    bounds_ = little_endian<std::uint64_t>(bytes, 26);
    const std::uint64_t room = bytes.size() - head;
    // divisions first: products of lengths that lie could wrap around
    const bool fits = sequences_ <= room / 12 && bounds_ <= (room - 12 * sequences_) / 8;
    const std::uint64_t rest = fits ? room - 12 * sequences_ - 8 * bounds_ : 0;
    if (!fits || (rest != 0 && rest != sequences_))  // multimodal datasets have a byte more per sequence
      throw fail(text({"the index says ", sequences_, " sequences and ", bounds_,
                       " bounds of documents, which does not fit its size of ", bytes.size(),
                       " bytes; copy it again if it was cut"}),
                 18);
  }

  [[nodiscard]] std::uint64_t documents() const noexcept { return bounds_ == 0 ? 0 : bounds_ - 1; }

  /// Compares the index with the type asked for and the size of the file of tokens, and calls
  /// `document(first token, tokens)` for each document.
  template <class T, class Document>
  [[nodiscard]] token_range read(std::uint64_t tokens_size, const std::string& tokens_path,
                                 Document&& document) const {
    if (!accepts<T>())
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
      const auto length = little_endian<std::uint32_t>(bytes_, at(head + 4 * i));
      const auto offset = little_endian<std::uint64_t>(bytes_, at(head + 4 * sequences_ + 8 * i));
      if (length > 0x7fffffffu || offset != tokens * sizeof(T))
        throw fail(text({"sequence ", i, " does not begin where the one before it ends"}),
                   head + 4 * sequences_ + 8 * i);
      tokens += length;
      close(i + 1);
    }
    if (next != bounds_) throw fail("the bounds of documents do not ascend", bounds_at() + 8 * next);
    if (tokens * sizeof(T) != tokens_size)
      throw error(errc::format, {"the index says ", tokens, " tokens, which are ", tokens * sizeof(T),
                                 " bytes, but the file has ", tokens_size, "; copy both again"})
          .in_file(tokens_path)
          .at_offset(std::min(tokens * sizeof(T), tokens_size));
    return {0, tokens};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_bytes(0x4d4d4944, bytes_); }

 private:
  static constexpr std::size_t head = 34;

  static std::size_t at(std::uint64_t place) noexcept { return static_cast<std::size_t>(place); }
  [[nodiscard]] error fail(std::string what, std::uint64_t offset) const {
    return error(errc::format, std::move(what)).in_file(*path_).at_offset(offset);
  }
  [[nodiscard]] std::uint64_t bounds_at() const noexcept { return head + 12 * sequences_; }
  [[nodiscard]] std::uint64_t bound(std::uint64_t i) const noexcept {
    return little_endian<std::uint64_t>(bytes_, at(bounds_at() + 8 * i));
  }
  static std::string_view type_name(unsigned code) noexcept {
    constexpr std::string_view names[] = {"uint8", "int8",    "int16",   "int32",
                                          "int64", "float64", "float32", "uint16"};
    return code >= 1 && code <= 8 ? names[code - 1] : "unknown";
  }
  /// Tokens are never negative: an unsigned type will do for the signed one of its width, not the other way.
  template <class T>
  [[nodiscard]] bool accepts() const noexcept {
    switch (code_) {
      case 1:
        return std::same_as<T, std::uint8_t>;
      case 2:
        return sizeof(T) == 1;
      case 3:
        return sizeof(T) == 2;
      case 4:
        return sizeof(T) == 4;
      case 5:
        return sizeof(T) == 8;
      case 8:
        return std::same_as<T, std::uint16_t>;
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

}  // namespace detail
}  // namespace penstock::inline v0_1
