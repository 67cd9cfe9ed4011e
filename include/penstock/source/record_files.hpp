// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/source/records/open_records.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

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
class record_files : public opens_as_plan<
                         std::conditional_t<std::is_void_v<Source>, record_files<Format, Storage>, Source>> {
  static_assert(detail::explain_format<Format>(), "penstock: record_files needs a record_format");
  using layout = detail::layout_of_format<detail::format_or_none<Format>>;
  using session_type = typename Storage::session;
  using files = detail::stored_in<typename layout::files, Storage>;
  using opened = typename layout::template opened<session_type>;

 public:
  using penstock_part = source_tag;
  using element = typename opened::element;
  static constexpr std::string_view source_name = detail::format_or_none<Format>::source_name;

  /// A run's reader: a session, and what the format keeps for a run.
  class reader {
    static constexpr bool loads = requires(const opened& kept) { kept.indexes().are_ready(); };
    static constexpr bool glances = prefetching_session<session_type> &&
                                    requires(const opened& kept, manifest::place at) { kept.glance(at); };
    static constexpr bool enters =
        requires(const opened& kept, session_type& session, typename opened::worker& w) {
          kept.enter(session, std::size_t{}, w);
        };
    struct coming_sample {
      manifest::place place;
      value_place bytes;
    };
    struct coming_samples {
      std::array<coming_sample, 64> all{};
      std::size_t count = 0;
    };
    struct no_samples {};

   public:
    struct worker : opened::worker {
      manifest::place at;         // of the current sample
      std::uint64_t samples = 0;  // of its file
      [[no_unique_address]] std::conditional_t<glances, coming_samples, no_samples> coming;
    };
    static constexpr reader_traits traits = {.latency = latent_session<session_type>, .in_memory = glances};

    reader(shared<const files> known, const projection& used)
        : files_(std::move(known)),
          session_(files_->where.connect()),
          seen_(files_->versions.size()),
          kept_(files_, used) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      if constexpr (!enters) {
        w.at = files_->locate(p.index);
      } else {
        if (p.index - w.at.first >= w.samples) move_to(w, p.index);
        w.at.sample = p.index - w.at.first;
      }
      if (kept_.reads()) check(w.at.shard);
      try {
        sink(kept_.open(session_, w.at, w));
        if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.at.shard));
      } catch (error& e) {
        if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.at.shard));
        kept_.add_context(e, session_, w.at, w);
        throw;
      }
    }

    /// Finds the samples that come next, up to 64, and prefetches what says where they are.
    void look_ahead(std::span<const position> next, worker& w) const noexcept
      requires glances
    {
      auto& coming = w.coming;
      coming.count = std::min(next.size(), coming.all.size());
      const std::uint64_t samples = files_->shards.samples();
      for (std::size_t i = 0; i < coming.count; ++i)
        if (next[i].index < samples) kept_.glance(coming.all[i].place = files_->shards.locate(next[i].index));
      for (std::size_t i = 0; i < coming.count; ++i)
        coming.all[i].bytes = next[i].index < samples ? kept_.seen(coming.all[i].place) : value_place{};
    }
    /// Prefetches the first `maximum` bytes of one of these samples, if its file is mapped.
    [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                               std::uint64_t maximum) const noexcept
      requires glances
    {
      if (i >= w.coming.count || w.coming.all[i].bytes.size == 0) return;
      const coming_sample& one = w.coming.all[i];
      session_.prefetch(files_->object(one.place.shard), one.bytes.begin, std::min(maximum, one.bytes.size));
    }

    /// The key of a sample in its file, such as "train.beton:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      return kept_.key(session_, files_->locate(index));
    }
    /// The bytes of a sample that are used.
    template <class Sink>
    void ranges(std::uint64_t index, Sink&& sink) const {
      if (index >= files_->shards.samples()) return;  // told when it is asked for
      const manifest::place place = files_->shards.locate(index);
      kept_.ranges(session_, files_->object(place.shard), place, sink);
    }
    /// Loads the missing indexes of the samples' files, several at once.
    void get_ready(std::span<const position> samples) const
      requires loads
    {
      kept_.indexes().get_ready(session_, samples);
    }
    [[nodiscard]] bool is_ready() const noexcept
      requires loads
    {
      return kept_.indexes().are_ready();
    }
    /// That of the session.
    [[nodiscard]] session_report report() const { return report_of(session_); }
    void cancel_reads() const noexcept { end_reads(session_); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return kept_.bytes_per_sample(); }

   private:
    void move_to(worker& w, std::uint64_t index) const {
      w.samples = 0;
      w.at = files_->locate(index);
      kept_.enter(session_, w.at.shard, w);
      w.samples = files_->shards.shards()[w.at.shard].samples;
    }

    // At its first use, a file must be the one of the plan, if that knows its version. Takes no lock.
    void check(std::size_t which) const {
      if (files_->versions.empty() || seen_[which].load(std::memory_order_relaxed)) [[likely]]
        return;
      files_->compare(session_, which);
      seen_[which].store(true, std::memory_order_relaxed);
    }

    shared<const files> files_;
    mutable session_type session_;  // a session may be used by many threads
    detail::fixed_array<std::atomic<bool>> seen_;
    opened kept_;
  };

  record_files(Format format, Storage where) : files_(made(format, std::move(where))) {}
  template <detail::pattern_text Text>
    requires std::same_as<Storage, file>
  record_files(Format format, const Text& pattern)
      : record_files(std::move(format), detail::files_of(detail::to_pattern(pattern))) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  /// Where files begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// Covers each file's name, size and records, and what the format says of its content.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->fingerprint(); }
  [[nodiscard]] std::string describe() const { return files_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const
    requires requires(const files& known) { known.fields().size(); }
  {
    std::vector<source_field> made;
    for (const auto& one : files_->fields()) made.push_back({one.name, std::string(detail::type_of(one))});
    return made;
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(files_, used); }

 protected:
  [[nodiscard]] const files& known() const noexcept { return *files_; }

 private:
  [[nodiscard]] static shared<const files> made(const Format& format, Storage where) {
    const storage_facts facts = facts_of(where);
    if constexpr (std::constructible_from<typename layout::files, const Format&, storage_facts>) {
      typename layout::files known(format, facts);
      return shared<const files>(new const files(std::move(where), std::move(known)));
    } else {
      auto session = where.connect();
      typename layout::files known(format, facts, session);
      return shared<const files>(new const files(std::move(where), std::move(known)));
    }
  }

  shared<const files> files_;
};

template <class Format, storage Storage>
record_files(Format, Storage) -> record_files<Format, Storage>;
template <class Format, detail::pattern_text Text>
record_files(Format, const Text&) -> record_files<Format, file>;

}  // namespace penstock::inline v0_1
