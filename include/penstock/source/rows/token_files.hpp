// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/rows/megatron_index.hpp>

#include <algorithm>
#include <bit>
#include <concepts>

/// The layouts of token files, with their headers checked against their sizes.
namespace penstock::inline v0_1::detail {

enum class token_format { raw, llmc, megatron, litdata };

/// The windows to cut; see `token_windows`.
struct window_layout {
  std::uint64_t length, targets, stride;
  bool within_documents;
  bool numbered = false;  // whether windows have the numbers of their documents
};

/// The width of the tokens of an llm.c file that begins like this; 0 if it is none.
[[nodiscard]] std::size_t llmc_width(bytes_view head) noexcept;

/// The number of windows of `span` tokens, `stride` apart, that fit in `tokens`.
[[nodiscard]] constexpr std::uint64_t windows_in(std::uint64_t tokens, std::uint64_t span,
                                                 std::uint64_t stride) noexcept {
  return tokens < span ? 0 : (tokens - span) / stride + 1;
}

/// The `.bin` and `.idx` of each name of a pattern, given with either extension or with none.
[[nodiscard]] std::vector<std::string> megatron_names(std::string_view pattern);

/// The files of a dataset of tokens, and where their windows are.
struct token_files : known_files {
  token_files(window_layout wanted, token_format kind);

  window_layout window;
  token_format format;
  extents row;  // the tokens of a window
  std::uint64_t row_bytes = 0;
  std::uint64_t tokens = 0;
  std::size_t width = 0;              // bytes of a token
  std::vector<std::uint64_t> begins;  // by shard: where the tokens begin, in bytes
  // only if windows stay within documents; for each document that has a window: the number of its first
  // window, and its first token in the file
  std::vector<std::uint64_t> first_windows;
  std::vector<std::uint64_t> first_tokens;

  // only if documents are numbered: where each that is not empty begins in its file, and by shard, and at
  // last, the first of them
  std::vector<std::uint64_t> document_begins;
  std::vector<std::size_t> first_documents;

  /// Reads the headers of all files, or Megatron's indexes.
  void read(storage_facts where, session_view session, token_type type);

  /// A window's first token within its file. `document` remembers the last document found, because samples
  /// are often consecutive.
  [[nodiscard]] std::uint64_t number(const manifest::place& at, std::size_t& document) const noexcept {
    if (!window.within_documents) return at.sample * window.stride;
    const std::uint64_t index = at.first + at.sample;
    if (index < first_windows[document] || index >= first_windows[document + 1])
      document =
          static_cast<std::size_t>(std::upper_bound(first_windows.begin(), first_windows.end(), index) -
                                   first_windows.begin()) -
          1;
    return first_tokens[document] + (index - first_windows[document]) * window.stride;
  }
  [[nodiscard]] std::uint64_t offset(const manifest::place& at, std::uint64_t number) const noexcept {
    return begins[at.shard] + number * width;
  }
  /// The number of the document of each token of a window, from 0 for the first one.
  void number_documents(const manifest::place& at, std::int32_t* to) const noexcept;
  [[nodiscard]] static constexpr bool swapped(std::size_t) noexcept {
    return std::endian::native != std::endian::little;
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(shards.fingerprint() ^ row.elements());
  }
  [[nodiscard]] std::string describe() const;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/token_files.ipp>
#endif
