// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/token_value.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/rows/numbered_rows.hpp>
#include <penstock/source/rows/row_source.hpp>
#include <penstock/source/rows/token_files.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

/// Windows whose length is part of the type: `Length` tokens and `Targets` more, so that the targets are the
/// inputs shifted by one. Even the first batch of them is written in place.
template <std::uint64_t Length, std::uint64_t Targets = 1>
struct token_window {
  static_assert(Length > 0 && Length + Targets < (std::uint64_t{1} << 40),
                "penstock: token_window<Length, Targets> needs windows of at least one token");
  static constexpr std::uint64_t length = Length;
  static constexpr std::uint64_t targets = Targets;
  /// The distance from the beginning of one window to that of the next; 0: `length`.
  std::uint64_t stride = 0;
  /// Whether a window must lie within one document, for files whose index lists documents.
  bool within_documents = false;
};

/// Windows whose length is known at run time.
struct token_windows {
  std::uint64_t length = 1024;
  std::uint64_t targets = 1;
  std::uint64_t stride = 0;
  bool within_documents = false;
};

/// Windows whose tokens have the numbers of their documents, which Megatron's index knows: samples are then
/// records of "tokens" and "document_ids", an `std::int32_t` for each token, from 0 for the first document of
/// the window. FlexAttention's block masks compare them, and `document_rows_of(get<"document_ids">(b))` has
/// `cu_seqlens`, position ids and labels.
///
///     auto text = megatron_tokens<std::uint16_t>("openwebtext_text_document",
///                                                with_document_ids{token_window<1024>{}});
template <class Window>
struct with_document_ids : Window {};
template <class Window>
with_document_ids(Window) -> with_document_ids<Window>;

namespace detail {

template <class W>
inline constexpr bool is_token_window = std::same_as<W, token_windows>;
template <std::uint64_t Length, std::uint64_t Targets>
inline constexpr bool is_token_window<token_window<Length, Targets>> = true;
template <class W>
inline constexpr bool is_token_window<with_document_ids<W>> = is_token_window<W>;

template <class W>
inline constexpr bool has_document_ids = false;
template <class W>
inline constexpr bool has_document_ids<with_document_ids<W>> = true;

template <class W>
struct token_shape : row_shape<> {};
template <std::uint64_t Length, std::uint64_t Targets>
struct token_shape<token_window<Length, Targets>> : row_shape<Length + Targets> {};
template <class W>
struct token_shape<with_document_ids<W>> : token_shape<W> {};

/// `Rows`, or with the numbers of documents.
template <class Window, class Files, class Rows>
using token_rows =
    std::conditional_t<has_document_ids<Window>, numbered_rows<Files, token_shape<Window>, Rows>, Rows>;

/// Windows of tokens, for `record_files`.
template <class T, class Window>
struct token_layout {
  static constexpr std::string_view source_name = "tokens";

  struct files : token_files {
    files(const token_layout& chosen, storage_facts where, session_view session)
        : token_files({chosen.window.length, chosen.window.targets, chosen.window.stride,
                       chosen.window.within_documents, has_document_ids<Window>},
                      chosen.format) {
      read(where, session, token_type::of<T>());
    }
  };
  template <class Session>
  using opened = token_rows<Window, files, array_rows<files, T, token_shape<Window>, Session>>;

  Window window;
  token_format format;
};

}  // namespace detail

/// The source that `raw_tokens`, `llmc_tokens`, `megatron_tokens` and `litdata_tokens` make: windows of the
/// tokens of files.
template <token_value T, class Window, storage Storage>
class token_source
    : public record_files<detail::token_layout<T, Window>, Storage, token_source<T, Window, Storage>> {
  static_assert(detail::is_token_window<Window>,
                "penstock: tokens need token_window<1024>{} or token_windows{.length = 1024}");

 public:
  /// Reads the headers and indexes of the files, which have that format.
  token_source(Storage where, Window window, detail::token_format format)
      : token_source::record_files({window, format}, std::move(where)) {}

  /// The number of tokens in all files, including those in no window.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return this->known().tokens; }
};

/// Token files without a header, such as nanoGPT's `train.bin`.
///
///     auto text = raw_tokens<std::uint16_t>("train.bin", token_window<1024>{}) | shuffle | batch(32);
///     auto some = raw_tokens<std::uint32_t>("part-{00..63}.bin", token_windows{.length = 2048, .stride = 512});
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage; all its files form one
/// dataset. Out: an array expression of `length + targets` consecutive tokens, a view of the mapping until it
/// is written to its slot. With `token_window<...>` the shape is part of the type, with `token_windows` it is
/// known at run time. A window begins every `stride` tokens and lies entirely in one file; tokens after a
/// file's last whole window are in none.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. The place of a window is computed:
/// there is no table of windows, and a plan takes about 60 bytes per file.
/// Cost per sample: a binary search among the files and one copy of the row, or one read if the storage has
/// no views; no allocation. Making the plan reads the ends of each file.
/// Threads: any number at once.
/// Where documents end is not known; if a token ends each, `document_rows` finds them in a batch.
/// Throws `errc::format`, with file and offset, for a file that is not a whole number of tokens or has a
/// header; `errc::argument` if no file is as long as a window; `errc::io`, also for a file that was changed
/// after the plan was made. For a file that shrinks while it is mapped see `mapped_file_options`.
/// Source: nanoGPT, data/openwebtext/prepare.py.
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> raw_tokens(Storage where, Window window) {
  return {std::move(where), window, detail::token_format::raw};
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> raw_tokens(detail::mapped_paths paths, Window window) {
  return raw_tokens<T>(std::move(paths).files(), window);
}

/// Token files of llm.c, which have a header of 1024 bytes: GPT-2's hold `std::uint16_t` and Llama 3's
/// `std::uint32_t`. Everything else is as for `raw_tokens`.
///
/// Also throws `errc::format` for another magic number or version, and if the header's number of tokens is
/// not the number that follows.
/// Source: llm.c, dev/data/data_common.py and llmc/dataloader.h.
///
///     auto web = llmc_tokens<std::uint16_t>("fineweb_train_{000001..000103}.bin", token_window<1024>{});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> llmc_tokens(Storage where, Window window) {
  static_assert(std::same_as<T, std::uint16_t> || std::same_as<T, std::uint32_t>,
                "penstock: llm.c has only files of std::uint16_t (GPT-2) and of std::uint32_t (Llama 3)");
  return {std::move(where), window, detail::token_format::llmc};
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> llmc_tokens(detail::mapped_paths paths, Window window) {
  return llmc_tokens<T>(std::move(paths).files(), window);
}

/// Megatron's datasets, pairs of `PREFIX.bin` and `PREFIX.idx`. The pattern gives the prefixes, with or
/// without one of the extensions; a storage must name both files of each pair. Everything else is as for
/// `raw_tokens`.
///
/// With `within_documents` no window crosses the end of a document, and documents shorter than a window are
/// left out; this takes 16 bytes for each document that has a window, and a binary search among them. Without
/// it documents are joined in file order; `with_document_ids` tells where they end, for 8 bytes each. Making
/// the plan reads each index once.
/// Also throws `errc::format` for an index with another magic number, version or token type, one that does
/// not match its own size or that of its tokens, and one whose sequences are not consecutive;
/// `errc::argument` for a storage that names only one file of a pair.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
///
///     auto text = megatron_tokens<std::uint16_t>("openwebtext_text_document",
///                                                token_window<1024>{.within_documents = true});
template <token_value T, storage Storage, class Window>
[[nodiscard]] token_source<T, Window, Storage> megatron_tokens(Storage where, Window window) {
  return {std::move(where), window, detail::token_format::megatron};
}
template <token_value T, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> megatron_tokens(std::string_view pattern, Window window) {
  return megatron_tokens<T>(mapped_file(detail::megatron_names(pattern)), window);
}

}  // namespace penstock::inline v0_1
