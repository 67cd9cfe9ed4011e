// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/prefetch_lines.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/records/ffcv_files.hpp>
#include <penstock/source/records/ffcv_sample.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The source that `ffcv` makes of FFCV's files.
template <storage Storage>
class ffcv_source : public opens_as_plan<ffcv_source<Storage>> {
  using session_type = typename Storage::session;
  using files = detail::stored_in<detail::ffcv_files, Storage>;
  using worker_type = detail::ffcv_worker<session_type>;

 public:
  using penstock_part = source_tag;
  using element = detail::ffcv_sample<worker_type>;
  static constexpr std::string_view source_name = "ffcv";

  /// A run's reader: a session.
  class reader {
   public:
    struct worker : worker_type {
      std::uint64_t begin_of = 0, end_of = 0;  // the samples of the current file, in the dataset
      struct next_sample {
        manifest::place place;
        std::uint64_t begin = 0, size = 0;  // of its values
      };
      std::array<next_sample, 64> coming{};
      std::size_t coming_count = 0;
    };
    static constexpr bool has_latency = latent_session<session_type>;

    reader(shared<const files> known, const projection& used)
        : files_(std::move(known)), open_(*files_, files_->where) {
      for (std::size_t i = 0; i < files_->fields().size(); ++i)
        if (files_->fields()[i].points() && used.uses(files_->fields()[i].name)) used_.push_back(i);
    }

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      if (w.file == nullptr || p.index < w.begin_of || p.index >= w.end_of) {
        const manifest::place place = files_->locate(p.index);
        (void)open_.session(place.shard);  // compares the file with what the plan knows
        w.shard = place.shard;
        w.begin_of = place.first;
        w.end_of = place.first + files_->files[place.shard].samples;
      }
      w.sample = p.index - w.begin_of;
      const auto object = static_cast<object_id>(w.shard);
      try {
        session_type& session = open_.unread_session();
        w.begin(session, *files_);
        if constexpr (!worker_type::views)
          if (w.fetched != nullptr)
            if (const auto range = range_of(w.shard, w.sample)) {
              w.fetched_begin = range->first;
              w.fetched_part = w.find(session, object, range->first, range->second - range->first);
            }
        sink(element(w));
        open_.confirm(w.shard);
      } catch (error& e) {
        open_.confirm(w.shard);
        e.in_file(files_->path(w.shard)).for_key(files_->key_of(w.shard, w.sample));
        throw;
      }
    }

    /// Finds the samples that come next, up to 64, and prefetches their rows.
    void look_ahead(std::span<const position> next, worker& w) const noexcept
      requires prefetching_session<session_type>
    {
      w.coming_count = std::min(next.size(), w.coming.size());
      for (std::size_t i = 0; i < w.coming_count; ++i) {
        const manifest::place place = files_->shards.locate(next[i].index);
        w.coming[i] = {place};
        const detail::ffcv_file& file = files_->files[place.shard];
        __builtin_prefetch(file.row(place.sample));
        if (file.images != 0)
          __builtin_prefetch(file.image_sizes.data() + detail::to_size(place.sample) * file.images);
      }
      for (std::size_t i = 0; i < w.coming_count; ++i)
        if (const auto range = range_of(w.coming[i].place.shard, w.coming[i].place.sample)) {
          w.coming[i].begin = range->first;
          w.coming[i].size = range->second - range->first;
        }
    }
    /// Prefetches the first `maximum` bytes of the values of one of these samples, if its file is mapped.
    [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                               std::uint64_t maximum) const noexcept
      requires prefetching_session<session_type>
    {
      if (i >= w.coming_count || w.coming[i].size == 0) return;
      open_.unread_session().prefetch(static_cast<object_id>(w.coming[i].place.shard), w.coming[i].begin,
                                      std::min(maximum, w.coming[i].size));
    }

    /// The file, and the sample's number in it: "train.beton:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = files_->locate(index);
      return files_->key_of(place.shard, place.sample);
    }
    /// The bytes from the first to the last value that is used.
    template <class Sink>
    void ranges(std::uint64_t index, Sink&& sink) const {
      const manifest::place place = files_->locate(index);
      if (const auto range = range_of(place.shard, place.sample))
        open_.range(place.shard, range->first, range->second - range->first, sink);
    }
    /// That of the session.
    [[nodiscard]] session_report report() const { return open_.report(); }
    void cancel_reads() const noexcept { open_.cancel_reads(); }
    /// The mean size of a sample.
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      const std::uint64_t count = files_->shards.samples();
      return used_.empty() || count == 0 ? 0 : files_->shards.bytes() / count;
    }

   private:
    // Of the values that are used, from the first to the last one; none if they are far apart, or damaged.
    [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> range_of(
        std::size_t which, std::uint64_t sample) const noexcept {
      std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0, sum = 0;
      try {
        for (const std::size_t field : used_) {
          const detail::ffcv_place place = files_->files[which].place(sample, field);
          if (place.size == 0) continue;
          begin = std::min(begin, place.begin);
          end = std::max(end, place.begin + place.size);
          sum += place.size;
        }
      } catch (const error&) {  // told when the value is asked for
        return std::nullopt;
      }
      if (end == 0 || end - begin > 2 * sum) return std::nullopt;
      return std::pair{begin, end};
    }

    shared<const files> files_;
    detail::open_files<Storage> open_;
    std::vector<std::size_t> used_;  // the fields whose values lie in pages
  };

  explicit ffcv_source(Storage where) {
    auto session = where.connect();
    detail::ffcv_files found(facts_of(where), session);
    files_.reset(new const files(std::move(where), std::move(found)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  /// Where files begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// Covers the fields, and where each value is; not the values.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->mark; }
  [[nodiscard]] std::string describe() const { return files_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const {
    std::vector<source_field> made;
    for (const detail::ffcv_field& one : files_->fields()) made.push_back({one.name, one.encoding});
    return made;
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(files_, used); }

 private:
  shared<const files> files_;
};

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
  return ffcv_source<Storage>(std::move(where));
}
template <detail::pattern_text Text>
[[nodiscard]] ffcv_source<file> ffcv(const Text& pattern) {
  return ffcv_source<file>(detail::files_of(detail::to_pattern(pattern)));
}

}  // namespace penstock::inline v0_1
