// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/source/records/open_records.hpp>
#include <penstock/source/records/record_reader.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>

namespace penstock::inline v0_1 {

namespace detail {
template <class Source, class Own>
using given_or = std::conditional_t<std::is_void_v<Source>, Own, Source>;
template <class Layout, class Storage, class Source>
using source_of_layout = record_source<typename files_of_layout<Layout, Storage>::type,
                                       typename Layout::template opened<typename Storage::session>, Source>;
}  // namespace detail

/// Files of records in a format of your own. This library's npy rows, tokens, lines, FFCV, MDS and LitData
/// are read by it, too.
///
///     auto samples = record_files(pairs{}, "pairs-{0..1}.bin") | shuffle |
///                    decode<field<"number", raw_number<std::int64_t>>, field<"text", text>>;
///     auto mapped = record_files(pairs{}, mapped_file("pairs-{0..1}.bin"));
///
/// In: a `record_format`, which says how the index of a file is read and where values are; a pattern of paths
/// (with `::` between patterns), which is `file`, or any storage, whose objects are the files.
/// Out: an open sample with a member for each field of the format.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the indexes of
/// all files, several at a time, and keeps them.
/// Cost per sample: what the format's `place` costs. In a mapped file (see `file`) nothing is copied;
/// elsewhere each value that is asked for is read by itself, or what was fetched ahead is used: one range if
/// the values that are used lie close together, and one for each of them otherwise. Fields that no stage uses
/// are not read. No allocation in the steady state.
/// Errors: those of the format, with the file, and for a record with its key and the offset of the value that
/// was asked for last. errc::io for a file that cannot be read, or has changed since the plan was made;
/// errc::format for a file of other fields than the first; errc::argument if there is no file.
/// Threads: any number may evaluate, each with its own worker.
///
/// A source that says more of its files derives from it, and names itself as `Source`.
template <class Format, storage Storage, class Source = void>
class record_files
    : public detail::source_of_layout<detail::layout_of_format<detail::format_or_none<Format>>, Storage,
                                      detail::given_or<Source, record_files<Format, Storage>>> {
  static_assert(detail::explain_format<Format>(), "penstock: record_files needs a record_format");
  using layout = detail::layout_of_format<detail::format_or_none<Format>>;
  using files = typename detail::files_of_layout<layout, Storage>::type;

 public:
  static constexpr std::string_view source_name = detail::format_or_none<Format>::source_name;

  record_files(Format format, Storage where) : record_files::record_source(made(format, std::move(where))) {}
  template <detail::pattern_text Text>
    requires std::same_as<Storage, file>
  record_files(Format format, const Text& pattern)
      : record_files(std::move(format), detail::files_of(detail::to_pattern(pattern))) {}

  [[nodiscard]] std::vector<source_field> fields() const
    requires requires(const files& known) { known.fields().size(); }
  {
    std::vector<source_field> made;
    for (const auto& one : this->known().fields())
      made.push_back({one.name, std::string(detail::type_of(one))});
    return made;
  }

 private:
  [[nodiscard]] static shared<const files> made(const Format& format, Storage where) {
    const storage_facts facts = facts_of(where);
    if constexpr (!std::same_as<files, detail::stored_in<typename layout::files, Storage>>) {
      return shared<const files>(new const files(std::move(where), format));
    } else if constexpr (std::constructible_from<typename layout::files, const Format&, storage_facts>) {
      typename layout::files known(format, facts);
      return shared<const files>(new const files(std::move(where), std::move(known)));
    } else {
      auto session = where.connect();
      typename layout::files known(format, facts, session);
      return shared<const files>(new const files(std::move(where), std::move(known)));
    }
  }
};

template <class Format, storage Storage>
record_files(Format, Storage) -> record_files<Format, Storage>;
template <class Format, detail::pattern_text Text>
record_files(Format, const Text&) -> record_files<Format, file>;

}  // namespace penstock::inline v0_1
