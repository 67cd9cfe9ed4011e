// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Where a sample is that will be evaluated soon, and from its first to its last byte that is used, if that
/// is known and they lie close together.
struct coming_sample {
  using stretch = file_stretch;
  manifest::place place;
  stretch bytes;

  [[nodiscard]] std::uint64_t index() const noexcept { return place.first + place.sample; }
};

/// The samples that a worker evaluates next. In a shuffled order each sample costs several cache misses one
/// after another: its entries in the index, then its bytes. Those of several samples are waited for together.
class coming_samples {
 public:
  static constexpr std::size_t capacity = 64;

  void clear() noexcept { next_ = end_ = 0; }
  /// Appends a sample; there must be room for it.
  const manifest::place& add(const manifest::place& place) noexcept { return all_[end_++].place = place; }
  [[nodiscard]] std::span<coming_sample> all() noexcept { return {all_.data(), end_}; }
  [[nodiscard]] std::span<const coming_sample> all() const noexcept { return {all_.data(), end_}; }
  /// The next sample of this index, or null. Those before it were not evaluated after all, because they are
  /// kept in memory, or are in the file of the sample before them.
  [[nodiscard]] const coming_sample* take(std::uint64_t index) noexcept {
    std::size_t i = next_;
    while (i != end_ && all_[i].index() != index) ++i;
    if (i == end_) return nullptr;
    next_ = i + 1;
    return &all_[i];
  }

 private:
  std::array<coming_sample, capacity> all_{};
  std::size_t next_ = 0;
  std::size_t end_ = 0;
};

/// A run's reader of files: a session, and what their format keeps for a run. `Files` are the `known_files`
/// of a plan with their storage, `where`. Members of `Opened` that are marked "optional" may be missing.
///
///   Opened(files, used)            `files` is shared, `used` are the fields that are
///   worker, element                the state of one worker, and the type of samples
///   enter(session, shard, worker)  optional: a worker's next samples are in this file
///   open(session, place, worker)   the sample at a place
///   reads()                        whether files are looked at, and must be compared with those of the plan first
///   needs_confirm(worker)          whether the session must confirm what it showed
///   add_context(error, session, place, worker)
///   key(session, place)
///   ranges(session, object, place, sink)
///   bytes_per_sample()
///   open_rows(session, place, count, worker)   optional: the samples there as one array, where they lie one behind
///                                  the other
///   indexes()                      optional, with get_ready(session, samples) and are_ready(): it loads indexes
///   end_reads()                    optional: ends reads of its own
///   glance(place), seen(place)     optional: prefetches what says where a sample is; finds its bytes that are used
///   look_up(place)                 optional: between these, prefetches what else must be looked up
template <class Files, class Opened>
class record_reader {
  using session_type = typename decltype(Files::where)::session;

  static constexpr bool loads = requires(const Opened& kept) { kept.indexes().are_ready(); };
  static constexpr bool glances = session_traits_of<session_type>().prefetches &&
                                  requires(const Opened& kept, manifest::place at) { kept.glance(at); };
  static constexpr bool enters =
      requires(const Opened& kept, session_type& session, typename Opened::worker& w) {
        kept.enter(session, std::size_t{}, w);
      };
  struct no_samples {};

 public:
  using element = typename Opened::element;
  struct worker : Opened::worker {
    manifest::place place;      // of the current sample
    std::uint64_t samples = 0;  // of its file
    [[no_unique_address]] std::conditional_t<glances, coming_samples, no_samples> coming;
  };
  static constexpr reader_traits traits = {.latency = session_traits_of<session_type>().latency,
                                           .plans_reads = planning_session<session_type>,
                                           .in_memory = glances};

  record_reader(shared<const Files> files, const projection& used)
      : files_(std::move(files)),
        session_(files_->where.connect()),
        seen_(files_->versions.size()),
        kept_(files_, used) {}

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    if constexpr (!enters) {
      w.place = locate(w, p.index);
    } else {
      if (p.index - w.place.first >= w.samples) move_to(w, p.index);
      w.place.sample = p.index - w.place.first;
    }
    if (kept_.reads()) check(w.place.shard);
    try {
      sink(kept_.open(session_, w.place, w));
      if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.place.shard));
    } catch (error& e) {
      if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.place.shard));
      kept_.add_context(e, session_, w.place, w);
      throw;
    }
  }

  /// Calls `sink` with an array of the samples from `first` on, at most `count`, which lie one behind the
  /// other in their file. Returns how many there are.
  template <class Sink>
  std::uint64_t evaluate_rows(position first, std::uint64_t count, worker& w, Sink&& sink) const
    requires requires(const Opened& kept, session_type& session) {
      kept.open_rows(session, w.place, count, w);
    }
  {
    w.place = files_->locate(first.index);
    const std::uint64_t shown =
        std::min(count, files_->shards.shards()[w.place.shard].samples - w.place.sample);
    if (kept_.reads()) check(w.place.shard);
    try {
      sink(kept_.open_rows(session_, w.place, shown, w));
      if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.place.shard));
    } catch (error& e) {
      if (kept_.needs_confirm(w)) confirm(session_, files_->object(w.place.shard));
      kept_.add_context(e, session_, w.place, w);
      throw;
    }
    return shown;
  }

  /// Finds the samples that come next, up to 64, and prefetches what says where they are, unless they lie one
  /// behind the other, which the processor sees.
  void look_ahead(std::span<const position> next, worker& w) const noexcept
    requires glances
  {
    w.coming.clear();
    if (seem_consecutive(next)) return;
    for (const position p : next.first(std::min(next.size(), coming_samples::capacity))) {
      if (p.index >= files_->shards.samples()) break;  // told when it is asked for
      kept_.glance(w.coming.add(files_->shards.locate(p.index)));
    }
    if constexpr (requires(manifest::place at) { kept_.look_up(at); })
      for (const coming_sample& one : w.coming.all()) kept_.look_up(one.place);
    for (coming_sample& one : w.coming.all()) one.bytes = kept_.seen(one.place);
  }
  /// Prefetches the first `maximum` bytes of one of these samples, if its file is mapped.
  [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                             std::uint64_t maximum) const noexcept
    requires glances
  {
    const std::span<const coming_sample> all = w.coming.all();
    if (i < all.size() && all[i].bytes.size != 0)
      session_.prefetch(files_->object(all[i].place.shard), all[i].bytes.begin,
                        std::min(maximum, all[i].bytes.size));
  }

  /// The key of a sample, such as "train.beton:17".
  [[nodiscard]] std::string key(std::uint64_t index) const {
    return kept_.key(session_, files_->locate(index));
  }
  /// The file of a sample.
  [[nodiscard]] std::string url(std::uint64_t index) const {
    return files_->path(files_->locate(index).shard);
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
  void cancel_reads() const noexcept {
    if constexpr (requires { kept_.end_reads(); }) kept_.end_reads();
    end_reads(session_);
  }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return kept_.bytes_per_sample(); }

 private:
  [[nodiscard]] manifest::place locate([[maybe_unused]] worker& w, std::uint64_t index) const {
    if constexpr (glances)
      if (const coming_sample* const known = w.coming.take(index)) return known->place;
    return files_->locate(index);
  }
  void move_to(worker& w, std::uint64_t index) const {
    w.samples = 0;
    w.place = locate(w, index);
    kept_.enter(session_, w.place.shard, w);
    w.samples = files_->shards.shards()[w.place.shard].samples;
  }

  // At its first use, a file must be the one of the plan, if that knows its version. Takes no lock.
  void check(std::size_t which) const {
    if (files_->versions.empty() || seen_[which].load(std::memory_order_relaxed)) [[likely]]
      return;
    files_->compare(session_, which);
    seen_[which].store(true, std::memory_order_relaxed);
  }

  shared<const Files> files_;
  mutable session_type session_;  // a session may be used by many threads
  fixed_array<std::atomic<bool>> seen_;
  Opened kept_;
};

/// A source of files that `record_reader` reads, from which `Source` is derived: `record_files`,
/// `webdataset`.
template <class Files, class Opened, class Source>
class record_source : public opens_as_plan<Source> {
 public:
  using penstock_part = source_tag;
  using element = typename Opened::element;
  using reader = record_reader<Files, Opened>;

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  /// Where files begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// Covers each file's name, size and records, and what the format says of its content.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return files_->fingerprint(); }
  [[nodiscard]] std::string describe() const { return files_->describe(); }
  /// A reader that reads as little as it can of fields that are not used.
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(files_, used); }

 protected:
  explicit record_source(shared<const Files> files) noexcept : files_(std::move(files)) {}
  [[nodiscard]] const Files& known() const noexcept { return *files_; }

 private:
  shared<const Files> files_;
};

}  // namespace penstock::inline v0_1::detail
