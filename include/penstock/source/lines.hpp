// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/text/line_files.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

/// Options of `lines`.
struct lines_options {
  /// The number of threads that look for line ends, one file each; 0: one per processor.
  std::size_t threads = 0;
  /// Whether lines of blanks alone are left out. Where nothing is said they are in JSON lines, files called
  /// "*.jsonl", "*.ndjson" or "*.json", and samples in other files.
  std::optional<bool> skip_blank = {};
};

namespace detail {

/// What a run keeps for files of lines: nothing.
template <class Session>
class open_lines {
  static_assert(all_mapped<Session>(),
                "penstock: lines are views of their files, which mapped_file and memory_files give");

 public:
  using element = std::string_view;
  /// Remembers where the last line ended, so that the next one is found without the table.
  struct worker {
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    std::size_t begin = 0, end = 0;  // of the last line
  };

  open_lines(const shared<const line_files>& files, const projection&) noexcept : files_(files.get()) {}

  [[nodiscard]] static constexpr bool reads() noexcept { return true; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    return files_->shards.payload() / files_->shards.samples();
  }
  void enter(Session&, std::size_t, worker& w) const noexcept { w = {}; }
  [[nodiscard]] std::string_view open(Session& session, const manifest::place& at, worker& w) const {
    const std::string_view text = content(session, at.shard);
    w.begin = w.next == at.sample ? files_->tables[at.shard].next_begin(text, w.end) : find(text, at);
    w.end = line_table::end_of(text, w.begin);
    w.next = at.sample + 1;
    std::string_view line = text.substr(w.begin, w.end - w.begin);
    if (line.ends_with('\n')) {
      line.remove_suffix(1);
      if (line.ends_with('\r')) line.remove_suffix(1);
    }
    return line;
  }
  [[nodiscard]] static constexpr bool needs_confirm(const worker&) noexcept { return true; }
  void add_context(error& e, Session& session, const manifest::place& at, const worker& w) const {
    // an offset without a file comes from a codec and counts from the first byte of the line
    if (e.file().empty() && e.offset()) e.within("the line", w.begin);
    e.in_file(files_->path(at.shard)).for_key(key(session, at)).at_offset(w.begin);
  }
  /// The file and the line number in it, counted from 1: "corpus.txt:17". Lines that are left out count.
  [[nodiscard]] std::string key(Session& session, const manifest::place& at) const {
    const line_table& table = files_->tables[at.shard];
    const std::uint64_t before =
        table.blank == 0 ? at.sample : table.number(content(session, at.shard), at.sample);
    return text({files_->path(at.shard), ":", before + 1});
  }
  /// The stretch of the file between the two table entries around a line.
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    const line_table& table = files_->tables[at.shard];
    const std::size_t i = table.entry(at.sample);
    const std::uint64_t end =
        i + 1 < table.begins.size() ? table.begins[i + 1] : files_->versions[at.shard].size;
    sink(session, object, table.begins[i], end - table.begins[i]);
  }

 private:
  [[nodiscard]] std::string_view content(Session& session, std::size_t shard) const {
    return text_of(session.view(files_->object(shard), 0, files_->versions[shard].size));
  }
  [[nodiscard]] std::size_t find(std::string_view text, const manifest::place& at) const {
    const line_table& table = files_->tables[at.shard];
    auto begin = static_cast<std::size_t>(table.begins[table.entry(at.sample)]);
    for (std::uint64_t n = table.beyond(at.sample); n != 0 && begin < text.size(); --n)
      begin = table.next_begin(text, line_table::end_of(text, begin));
    if (begin >= text.size())
      throw error(errc::io, "the file was changed while it was in use; open the dataset again");
    return begin;
  }

  const line_files* files_;  // which the reader holds
};

struct line_layout {
  static constexpr std::string_view source_name = "lines";
  struct files : line_files {
    files(const line_layout& chosen, storage_facts where, session_view session) {
      read(where, session, chosen.options.threads, chosen.options.skip_blank);
    }
  };
  template <class Session>
  using opened = open_lines<Session>;
  lines_options options;
};

}  // namespace detail

/// The source that `lines` makes of text files.
template <storage Storage>
using line_source = record_files<detail::line_layout, Storage>;

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
/// are; `skip_blank` decides for all. An empty file has no samples.
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
  return {{options}, detail::one_split(std::move(where), "lines")};
}
template <storage Storage>
[[nodiscard]] line_source<Storage> lines(Storage where, const named_split& which,
                                         lines_options options = {}) {
  return {{options}, detail::one_split(std::move(where), which, "lines")};
}
template <detail::pattern_text Text>
[[nodiscard]] line_source<mapped_file> lines(const Text& pattern, lines_options options = {}) {
  return {{options}, mapped_file(detail::data_paths(detail::data_kind::lines, pattern))};
}
template <detail::pattern_text Text>
[[nodiscard]] line_source<mapped_file> lines(const Text& pattern, const named_split& which,
                                             lines_options options = {}) {
  return {{options}, mapped_file(detail::data_paths(detail::data_kind::lines, pattern, &which))};
}
[[nodiscard]] inline line_source<mapped_file> lines(detail::mapped_paths paths, lines_options options = {}) {
  return {{options}, std::move(paths).files()};
}

}  // namespace penstock::inline v0_1
