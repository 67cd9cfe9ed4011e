// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/record_files.hpp>
#include <penstock/source/records/ffcv_file.hpp>

namespace penstock::inline v0_1 {

namespace detail {

struct ffcv_format {
  static constexpr std::string_view source_name = "ffcv";
  static constexpr std::uint64_t mark = 0x6265746f6e;
  using index = ffcv_file;

  [[nodiscard]] static index read_index(session_view session, object_id object) { return {session, object}; }
  static void check_codec(const ffcv_field& field, std::string_view codec) { check_ffcv_codec(field, codec); }
};

}  // namespace detail

/// The source that `ffcv` makes of FFCV's files.
template <storage Storage>
using ffcv_source = record_files<detail::ffcv_format, Storage>;

/// FFCV's files.
///
///     auto samples = ffcv("imagenet_train.beton") | shuffle |
///                    decode<field<"image", ffcv_image<>>, field<"label", raw_number<std::int64_t>>>;
///
/// In: a path or a pattern (with `::` between patterns), which is `file`; or any storage, whose objects are
/// the files, all of the same fields.
/// Out: an open sample with a member for each field. `raw_number<double>` reads FFCV's floats and
/// `raw_number<std::int64_t>` its ints, `ffcv_image<jpeg>` its images, compressed or not, `mds_array<T>` its
/// arrays and PyTorch tensors, `json`, `json_field` and `text` its JSON, and any other codec its bytes. Names
/// have at most 16 bytes there.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. FFCV's order SEQUENTIAL is no stage,
/// RANDOM and QUASI_RANDOM are `shuffle(seed(7))`.
/// Making the plan reads all of a file but its values, 24 bytes per value and the rows, and keeps the rows
/// and 4 bytes per image.
/// Cost per sample: in a mapped file (see `file`) nothing is copied; elsewhere each value that is asked for
/// is read by itself, or what was fetched ahead is used: a sample lies in one page, so that is one range.
/// Pages are never read as a whole. No allocation in the steady state.
/// Errors: errc::format, with file and offset, for what is no file of FFCV of version 2, is damaged or was
/// never completed, for a field that a program defined itself, and a file of other fields than the first;
/// with the key, for a value outside of its file, and an image of a size that is not its own; errc::io.
/// Threads: any number may evaluate, each with its own worker.
/// Source: FFCV, ffcv/{types,writer,reader}.py and ffcv/fields, version 2 of the format.
template <storage Storage>
[[nodiscard]] ffcv_source<Storage> ffcv(Storage where) {
  return {{}, std::move(where)};
}
template <detail::pattern_text Text>
[[nodiscard]] ffcv_source<file> ffcv(const Text& pattern) {
  return {{}, detail::files_of(detail::to_pattern(pattern))};
}

}  // namespace penstock::inline v0_1
