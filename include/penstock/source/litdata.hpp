// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/litdata.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/litdata_leaf.hpp>
#include <penstock/codec/detail/mds_encoding.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/detail/mds_shards.hpp>
#include <penstock/source/litdata_index.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace penstock::inline v0_1 {

namespace detail {

/// LitData's chunks: MDS's layout without a description.
struct litdata_kind {
  static constexpr mds_kind kind{
      "litdata", &litdata_json::agree, true, [](bytes_view end) {
        return text_of(end) == std::string_view("LDARW01\0", 8) ? litdata_of_rows : std::string_view();
      }};
};

[[noreturn]] inline void litdata_of_tokens() {
  throw error(errc::argument, "these chunks are tokens: read them with litdata_tokens<T>(folder, window)");
}

/// Throws `errc::format` unless the tokens are of `T`, or of the other integer type of its size.
template <token_value T>
void check_litdata_tokens(const litdata_index& index) {
  const std::string_view format = index.chunks.columns[0][0].encoding;
  if (!index.tokens)
    throw error(errc::argument, "these chunks are samples, and not tokens: read them with litdata(folder)");
  const std::string_view stored = litdata_dtype(format);
  for (const std::string_view one :
       {mds_dtype<T>, mds_dtype<std::make_unsigned_t<T>>, mds_dtype<std::make_signed_t<T>>})
    if (stored == one) return;
  throw error(errc::format, {"the tokens are of ", stored.empty() ? format : stored, ", and ", mds_dtype<T>,
                             " was asked for: write litdata_tokens for their type"});
}

}  // namespace detail

/// The source that `litdata` makes of LitData's chunks.
template <storage Storage>
using litdata_source = mds_source<Storage, detail::litdata_kind>;

/// Datasets of LitData: a folder with an `index.json` and the chunks that `optimize` wrote.
///
///     auto samples = litdata("optimized") | shuffle(seed) |
///                    decode<field<"image", jpeg>, field<"label", raw_number<std::int64_t>>>;
///     auto copies = litdata<unpack_zstd>("compressed_chunks", {.folder = "cache"});
///
/// In: the folder's path, with the unpackers that may be needed as template arguments; or any storage, whose
/// objects are the chunks, not compressed, in the order of an index. A chunk that is compressed as a whole is
/// unpacked once, while the plan is made, to a copy.
/// Out: an open sample with a member for each leaf, called by the keys and numbers on the way to it: "image",
/// "boxes.0". `raw_number<std::int64_t>` reads an `int`, `raw_number<double>` a `float`,
/// `raw_number<std::uint8_t>` a `bool`, `text` a `str`, `litdata_array<T>` arrays and tensors, `jpeg` and
/// `png` images, `pil_pixels` those of PIL, `mds_list` lists of JPEGs; files of other kinds, and lists and
/// dicts that LitData packs into one leaf (`json`), are their bytes. In `decode` a codec of this library that
/// cannot read a leaf's format is an error. Pickles are never executed, and no codec gets them.
/// Everything else is as for `mds`.
/// Errors: as for `mds`; those of `read_litdata_index`; errc::argument for chunks of tokens, see
/// `litdata_tokens`.
/// Source: litdata, streaming/{writer,item_loader,serializers}.py.
template <unpacker... Unpack>
[[nodiscard]] litdata_source<file> litdata(const std::string& folder, const unpacked_options& options = {}) {
  const litdata_index index = read_litdata_index(folder + "/index.json");
  if (index.tokens) detail::litdata_of_tokens();
  return {file(detail::mds_paths<Unpack...>(folder, index.chunks, options)), index.chunks};
}
template <storage Storage>
[[nodiscard]] litdata_source<Storage> litdata(Storage where, const litdata_index& index) {
  if (index.tokens) detail::litdata_of_tokens();
  return {std::move(where), index.chunks};
}

/// Windows of the tokens that LitData wrote for its `TokensLoader`.
///
///     auto text = litdata_tokens<std::int32_t>("tokens", token_windows{.length = 2049, .targets = 0}) | batch(32);
///
/// In: the folder's path; chunks that are compressed as a whole need their unpacker, as in
/// `litdata_tokens<T, unpack_zstd>`, and are unpacked once. Out: what `raw_tokens` gives. With
/// `.length = block_size` and `.targets = 0` the windows are LitData's blocks: they ignore where items end,
/// and what is left at the end of a chunk is in none. Kind, cost and threads are those of `raw_tokens`.
/// Throws `errc::format` for tokens of another type than `T`, or the other integer type of its size, and,
/// with file and offset, for a chunk whose table does not match its size; `errc::argument` for chunks of
/// samples, or if no chunk is as long as a window; `errc::io`.
/// Source: litdata, streaming/item_loader.py (TokensLoader).
template <token_value T, unpacker... Unpack, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> litdata_tokens(const std::string& folder, Window window,
                                                                  const unpacked_options& options = {}) {
  const std::string path = folder + "/index.json";
  const litdata_index index = read_litdata_index(path);
  try {
    detail::check_litdata_tokens<T>(index);
  } catch (error& e) {
    e.in_file(path);
    throw;
  }
  return {mapped_file(detail::mds_paths<Unpack...>(folder, index.chunks, options)), window,
          detail::token_format::litdata};
}

/// Datasets of LitData for `dataset`, recognised by their `index.json`; with the unpackers that compressed
/// chunks need.
template <unpacker... Unpack>
struct litdata_format {
  static constexpr std::string_view name = "litdata";
  using sources = std::variant<litdata_source<file>>;

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "chunks") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return litdata<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1
