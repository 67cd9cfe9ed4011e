// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/named_split.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/text/line_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `lines`.
struct lines_options {
  /// The number of threads that look for line ends, one file each; 0: one per processor.
  std::size_t threads = 0;
  /// Whether lines of blanks alone are left out. Where nothing is said they are in JSON lines, files called
  /// "*.jsonl", "*.ndjson" or "*.json", and samples in other files.
  std::optional<bool> skip_blank = {};
};

/// The source that `lines` makes of text files.
template <storage Storage>
class line_source : public opens_as_plan<line_source<Storage>> {
  static_assert(viewing_session<typename Storage::session>,
                "penstock: lines are views of their files, which mapped_file and memory_files give");

  using files = detail::stored_in<detail::line_files, Storage>;

 public:
  using penstock_part = source_tag;
  using element = std::string_view;
  static constexpr std::string_view source_name = "lines";

  class reader {
   public:
    /// Remembers where the last line ended, so that the next one is found without the table.
    struct worker {
      std::size_t shard = std::numeric_limits<std::size_t>::max();
      std::uint64_t next = 0;
      std::size_t offset = 0;
    };
    explicit reader(shared<const files> known) : files_(std::move(known)), open_(*files_, files_->where) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const manifest::place place = files_->locate(p.index);
      const std::string_view text = content(place.shard);
      const std::size_t begin = w.shard == place.shard && w.next == place.sample
                                    ? files_->tables[place.shard].next_begin(text, w.offset)
                                    : find(text, place);
      const std::size_t end = detail::line_table::end_of(text, begin);
      w = {place.shard, place.sample + 1, end};
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\n')) {
        line.remove_suffix(1);
        if (line.ends_with('\r')) line.remove_suffix(1);
      }
      try {
        sink(line);
        open_.confirm(place.shard);
      } catch (error& e) {
        open_.confirm(place.shard);
        // an offset without a file comes from a codec and counts from the first byte of the line
        if (e.file().empty() && e.offset()) e.within("the line", begin);
        e.in_file(files_->path(place.shard)).for_key(key(p.index)).at_offset(begin);
        throw;
      }
    }
    /// The file and the line number in it, counted from 1: "corpus.txt:17". Lines that are left out count.
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = files_->locate(index);
      const detail::line_table& table = files_->tables[place.shard];
      const std::uint64_t before =
          table.blank == 0 ? place.sample : table.number(content(place.shard), place.sample);
      return detail::text({files_->path(place.shard), ":", before + 1});
    }
    /// The stretch of the file between the two table entries around this line.
    template <class Sink>
    void ranges(std::uint64_t index, Sink&& sink) const {
      if (index >= files_->shards.samples()) return;
      const manifest::place place = files_->shards.locate(index);
      const detail::line_table& table = files_->tables[place.shard];
      const std::size_t i = table.entry(place.sample);
      const std::uint64_t end =
          i + 1 < table.begins.size() ? table.begins[i + 1] : files_->versions[place.shard].size;
      open_.range(place.shard, table.begins[i], end - table.begins[i], sink);
    }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      return files_->shards.payload() / files_->shards.samples();
    }

   private:
    [[nodiscard]] std::string_view content(std::size_t number) const {
      return text_of(open_.session(number).view(files_->object(number), 0, files_->versions[number].size));
    }
    [[nodiscard]] std::size_t find(std::string_view text, const manifest::place& place) const {
      const detail::line_table& table = files_->tables[place.shard];
      auto at = static_cast<std::size_t>(table.begins[table.entry(place.sample)]);
      for (std::uint64_t n = table.beyond(place.sample); n != 0 && at < text.size(); --n)
        at = table.next_begin(text, detail::line_table::end_of(text, at));
      if (at >= text.size())
        throw error(errc::io, "the file was changed while it was in use; open the dataset again")
            .in_file(files_->path(place.shard));
      return at;
    }

    shared<const files> files_;
    detail::open_files<Storage> open_;
  };

  line_source(Storage where, lines_options options) {
    shared<files> known(new files(std::move(where)));
    auto session = known->where.connect();
    known->read(facts_of(known->where), session, options.threads, options.skip_blank);
    files_ = std::move(known);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// Covers each file's name, size, first and last 4 KiB, and where lines begin.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(files_->shards.fingerprint() ^ 0x6c696e6573);
  }
  [[nodiscard]] std::string describe() const {
    std::uint64_t blank = 0;
    for (const detail::line_table& table : files_->tables) blank += table.blank;
    std::string line = detail::text({"lines(", files_->versions.size(), " files, ", files_->shards.bytes(),
                                     " bytes): ", size(), " lines"});
    if (blank != 0) detail::append(line, {", ", blank, " blank ones left out"});
    return line;
  }
  [[nodiscard]] reader connect() const { return reader(files_); }

 private:
  shared<const files> files_;
};

/// The lines of text files, one sample per line.
///
///     auto captions = lines("captions-{00..15}.txt") | shuffle | batch(64, ragged);
///     auto documents = lines("corpus.jsonl") | decode<json_field<"text", std::string>>;
///
/// In: a pattern of names or a list of paths, which are `mapped_file`; a folder, whose files `*.jsonl` and
/// `*.ndjson` are taken in the order of their paths, or if there are none `*.txt`, with those of folders in
/// it; or any storage that can show its bytes in place; compressed files by
/// `lines(unpacked<unpack_gzip>("corpus-*.jsonl.gz"))`. Of several splits `lines(folder, split("train"))`
/// reads one; see `split`. Out: a `std::string_view` of the mapping, which is also a byte element. Lines end
/// with "\n" or "\r\n", the last line of a file possibly without either; the line end is not part of the
/// line. In JSON lines, which are known by the files' names, blank lines are no samples, and elsewhere they
/// are; `skip_blank` decides
/// for all. An empty file has no samples.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads all files
/// once, several at a time (0.2 s per GB in memory plus 20 ns per line), and keeps one 8-byte offset for
/// every 64 short lines or every 4 KiB of longer ones: 16 MB for 128 million lines. Nothing is written to
/// disk.
/// Cost per sample: the line after the last one is found by looking for its end; any other line by skipping
/// up to 63 short lines before it. No allocation.
/// Threads: any number at once.
/// Throws `errc::argument` if there are no lines at all, and for a folder or storage of several splits, with
/// what to write; `errc::missing` for a folder without files or without the split; `errc::format` for a
/// compressed file, with what to write to read it; `errc::io` for a file that cannot be read, or that was
/// changed after the plan was made. Errors of later stages carry the file, offset and line. For a file that
/// shrinks while it is mapped see `mapped_file_options`.
template <storage Storage>
[[nodiscard]] line_source<Storage> lines(Storage where, lines_options options = {}) {
  return {detail::one_split(std::move(where), "lines"), options};
}
template <storage Storage>
[[nodiscard]] line_source<Storage> lines(Storage where, const named_split& which,
                                         lines_options options = {}) {
  return {detail::one_split(std::move(where), which, "lines"), options};
}
template <detail::pattern_text Text>
[[nodiscard]] line_source<mapped_file> lines(const Text& pattern, lines_options options = {}) {
  return {mapped_file(detail::line_paths(std::string(detail::to_pattern(pattern)))), options};
}
template <detail::pattern_text Text>
[[nodiscard]] line_source<mapped_file> lines(const Text& pattern, const named_split& which,
                                             lines_options options = {}) {
  return {mapped_file(detail::line_paths(std::string(detail::to_pattern(pattern)), &which)), options};
}
[[nodiscard]] inline line_source<mapped_file> lines(detail::mapped_paths paths, lines_options options = {}) {
  return {std::move(paths).files(), options};
}

}  // namespace penstock::inline v0_1
