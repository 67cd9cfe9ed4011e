// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/dali_index.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/source/rows/idx_listing.hpp>
#include <penstock/source/rows/stored_npy.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/session_view.hpp>

/// The formats that `dataset` knows without a further header.
namespace penstock::inline v0_1 {

namespace detail {

/// What the first file says of its numbers.
struct stored_tokens {
  token_format format = token_format::raw;
  token_type type{};
};

[[nodiscard]] bool is_tar(const listed_files& some);
[[nodiscard]] bool is_arrow(const listed_files& some);
[[nodiscard]] bool is_ffcv(const listed_files& some);
[[nodiscard]] bool is_npy(const listed_files& some);
[[nodiscard]] bool is_npz(const listed_files& some);
[[nodiscard]] format_fit look_for_tokens(const dataset_listing& there);
[[nodiscard]] format_fit look_for_lines(const dataset_listing& there);
[[nodiscard]] std::vector<std::string> paths_of_arrow(const dataset_listing& there);
[[nodiscard]] std::vector<std::string> paths_of_tokens(const dataset_listing& there);
[[nodiscard]] std::vector<std::string> paths_of_lines(const dataset_listing& there);
/// The options, with `skip_blank` for JSON lines where nothing is said.
[[nodiscard]] lines_options options_of_lines(const dataset_listing& there, lines_options options);
[[nodiscard]] stored_tokens tokens_at(const dataset_listing& there);
/// The type of the numbers of the first npy file, or of an array of the first npz file.
[[nodiscard]] npy_type npy_type_at(const dataset_listing& there);
[[nodiscard]] npy_type npz_type_at(session_view session, std::uint64_t size, std::string_view array);
/// The array of an npz file that is meant by this name: if it is empty, the only one.
[[nodiscard]] std::string npz_array_at(session_view session, std::uint64_t size, const std::string& array);

}  // namespace detail

/// Tar archives, recognised by the checksum of the first header, or compressed and called `*.tar.*` or
/// `*.tgz`: these need the unpackers of `unpacked` as template arguments, and are copied by it. Options of
/// your own replace those that also look for DALI's indexes: `{.options = {.index =
/// index_policy::cache.or_else(dali_index), .threads = 4}}`.
template <unpacker... Unpack>
struct webdataset_format {
  static constexpr std::string_view name = "webdataset";

  webdataset_options options = index_policy::cache.or_else(dali_index);
  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return there.fit_of(&detail::is_tar); }
  [[nodiscard]] std::variant<webdataset<file>> open(const dataset_listing& there) const {
    std::vector<std::string> paths = there.paths_of(&detail::is_tar);
    if constexpr (sizeof...(Unpack) != 0) paths = unpacked<Unpack...>(paths, copies);
    return webdataset<file>(std::move(paths), options);
  }
  template <storage Storage>
  [[nodiscard]] std::variant<webdataset<Storage>> open_in(Storage where, const dataset_listing&) const {
    return webdataset<Storage>(std::move(where), options);
  }
};

/// Arrow files and streams, recognised by their first bytes, and the folders of Hugging Face's `datasets`;
/// with the unpackers that compressed batches need.
template <unpacker... Unpack>
struct arrow_ipc_format {
  static constexpr std::string_view name = "arrow_ipc";

  arrow_ipc_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.fit_of(&detail::is_arrow);
  }
  [[nodiscard]] std::variant<arrow_ipc_source<mapped_file>> open(const dataset_listing& there) const {
    return arrow_ipc<Unpack...>(detail::paths_of_arrow(there), options);
  }
  template <storage Storage>
  [[nodiscard]] std::variant<arrow_ipc_source<Storage>> open_in(Storage where, const dataset_listing&) const {
    return arrow_ipc<Unpack...>(std::move(where), options);
  }
};

/// FFCV's files, recognised by their version and the size of their pages.
struct ffcv_format {
  static constexpr std::string_view name = "ffcv";

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.fit_of(&detail::is_ffcv);
  }
  [[nodiscard]] static std::variant<ffcv_source<file>> open(const dataset_listing& there) {
    return ffcv(file(there.paths_of(&detail::is_ffcv)));
  }
  template <storage Storage>
  [[nodiscard]] static std::variant<ffcv_source<Storage>> open_in(Storage where, const dataset_listing&) {
    return ffcv(std::move(where));
  }
};

/// numpy's npy files, whose numbers are of one of these types; without any, `std::uint8_t`, `std::int16_t`,
/// `std::int32_t`, `std::int64_t`, `float` or `double`.
template <class... Ts>
struct npy_rows_format {
  using types = detail::number_types<detail::common_numbers, Ts...>;
  static constexpr std::string_view name = "npy_rows";

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return there.fit_of(&detail::is_npy); }
  [[nodiscard]] static auto open(const dataset_listing& there) {
    return open_in(mapped_file(there.paths_of(&detail::is_npy)), there);
  }
  template <storage Storage>
  [[nodiscard]] static auto open_in(Storage where, const dataset_listing& there) {
    const detail::npy_type found = detail::npy_type_at(there);
    return detail::source_of_type(
        std::type_identity<types>{}, {&there, name, "'" + found.name() + "'"},
        [&]<class T>() { return found == detail::npy_type::of<T>(); },
        [&]<class T>() { return npy_rows<T>(std::move(where)); });
  }
};

/// numpy's npz files; of several arrays the one that is named. The types are as for `npy_rows_format`.
template <class... Ts>
struct npz_rows_format {
  using types = detail::number_types<detail::common_numbers, Ts...>;
  static constexpr std::string_view name = "npz_rows";

  std::string array = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return there.fit_of(&detail::is_npz); }
  [[nodiscard]] auto open(const dataset_listing& there) const {
    return open_in(mapped_file(there.paths_of(&detail::is_npz)), there);
  }
  template <storage Storage>
  [[nodiscard]] auto open_in(Storage where, const dataset_listing& there) const {
    auto session = where.connect();
    const std::uint64_t size = session.size(0);
    const std::string chosen = detail::npz_array_at(session, size, array);
    const detail::npy_type found = detail::npz_type_at(session, size, chosen);
    return detail::source_of_type(
        std::type_identity<types>{}, {&there, name, "'" + found.name() + "'"},
        [&]<class T>() { return found == detail::npy_type::of<T>(); },
        [&]<class T>() { return npz_rows<T>(std::move(where), chosen); });
  }
};

/// An IDX file, recognised by a header that matches the file's size, of numbers of one of these types;
/// without any, bytes.
template <idx_value... Ts>
struct idx_format {
  using types = detail::number_types<light_tuple<std::uint8_t>, Ts...>;
  static constexpr std::string_view name = "idx";

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.is_storage() ? format_fit::none : there.fit_of(&detail::is_idx);
  }
  [[nodiscard]] static auto open(const dataset_listing& there) {
    const std::vector<std::string> paths = there.paths_of(&detail::is_idx);
    if (paths.size() != 1) detail::several_idx_files(there);
    const auto code = static_cast<unsigned char>(there.files().front().head[2]);
    return detail::source_of_type(
        std::type_identity<types>{}, {&there, name, "numbers of code " + std::to_string(code)},
        [&]<class T>() { return detail::idx_code<T> == code; },
        [&]<class T>() { return idx<T>(paths.front()); });
  }
};

/// Tokens of Megatron and of llm.c, recognised by their first bytes, of one of these types; without any,
/// `std::uint16_t`, `std::uint32_t` or `std::int32_t`. Files without a header cannot be told from others.
template <token_value... Ts>
struct tokens_format {
  using types = detail::number_types<light_tuple<std::uint16_t, std::uint32_t, std::int32_t>, Ts...>;
  static constexpr std::string_view name = "tokens";

  token_windows window = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::look_for_tokens(there);
  }
  [[nodiscard]] auto open(const dataset_listing& there) const {
    return open_in(mapped_file(detail::paths_of_tokens(there)), there);
  }
  template <storage Storage>
  [[nodiscard]] auto open_in(Storage where, const dataset_listing& there) const {
    const detail::stored_tokens found = detail::tokens_at(there);
    return detail::source_of_type(
        std::type_identity<types>{},
        {&there, name,
         detail::text(
             {found.type.is_signed ? "signed" : "unsigned", " tokens of ", 8 * found.type.width, " bits"})},
        [&]<class T>() { return found.type == detail::token_type::of<T>(); },
        [&]<class T>() {
          return token_source<T, token_windows, Storage>(std::move(where), window, found.format);
        });
  }
};

/// Folders of JPEG, PNG, WebP, GIF, AVIF and TIFF files, in folders that are their classes or in none.
struct directory_format {
  static constexpr std::string_view name = "directory";

  [[nodiscard]] static format_fit look(const dataset_listing& there);
  [[nodiscard]] static std::variant<directory> open(const dataset_listing& there);
};

/// JSON lines, recognised by two lines that are objects or lists, or one in a file called `*.jsonl` or
/// `*.ndjson`; and, where nothing else fits, other text.
struct lines_format {
  static constexpr std::string_view name = "lines";

  lines_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return detail::look_for_lines(there); }
  [[nodiscard]] std::variant<line_source<mapped_file>> open(const dataset_listing& there) const {
    return lines(detail::paths_of_lines(there), detail::options_of_lines(there, options));
  }
  template <storage Storage>
    requires(all_mapped<typename Storage::session>())
  [[nodiscard]] std::variant<line_source<Storage>> open_in(Storage where,
                                                           const dataset_listing& there) const {
    return lines(std::move(where), detail::options_of_lines(there, options));
  }
};

/// The formats that need the standard library alone.
using core_formats =
    light_tuple<webdataset_format<>, arrow_ipc_format<>, ffcv_format, npy_rows_format<>, npz_rows_format<>,
                idx_format<>, tokens_format<>, directory_format, lines_format>;

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/core_formats.ipp>
#endif
