// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/records/coming_samples.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/records/shard_sample.hpp>
#include <penstock/source/records/shard_set.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// What `webdataset` delivers: open samples, with the keys that their shard has.
struct show_samples {
  template <class Worker>
  using element = shard_sample<Worker>;

  template <class Worker>
  [[nodiscard]] shard_sample<Worker> open(Worker& w) const noexcept {
    return shard_sample<Worker>(w);
  }
  [[nodiscard]] static std::string key(const std::string&, const shard_index& tables, std::uint64_t sample) {
    return std::string(tables.key(sample));
  }
  static void add_context(const sample_cursor& at, error& e) { at.add_context(e); }
};

/// A run's reader of shards with indexes: a session, and the indexes of the shards used so far. `Show` makes
/// the element of a sample.
template <storage Storage, class Show>
class shard_reader {
  using session_type = typename Storage::session;

 public:
  shard_reader(shared<const shard_set<Storage>> set, const projection& used, Show show = {})
      : set_(std::move(set)), session_(set_->where.connect()), indexes_(set_, used), show_(show) {}

  using worker = typename worker_for<session_type>::type;
  using element = typename Show::template element<worker>;
  static constexpr reader_traits traits = {.latency = latent_session<session_type>,
                                           .plans_reads = planning_session<session_type>,
                                           .in_memory = prefetching_session<session_type>};

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    move_to(w, p.index);
    try {
      sink(show_.open(w));
      if (w.needs_confirm()) confirm(session_, w.at.shard);
    } catch (error& e) {
      if (w.needs_confirm()) confirm(session_, w.at.shard);
      Show::add_context(w.at, e);
      throw;
    }
  }

  /// Finds the index entries of the samples that come next, up to 64, and prefetches them.
  void look_ahead(std::span<const position> next, worker& w) const noexcept
    requires prefetching_session<session_type>
  {
    w.at.coming.clear();
    for (const position p : next) {
      const manifest::place place = set_->locate(p.index);
      w.at.coming.add(
          {indexes_.find(place.shard), p.index, place.first, static_cast<object_id>(place.shard)});
    }
    w.at.coming.prefetch_members();
  }
  /// Prefetches the first `maximum` bytes of one of these samples, if its shard is mapped.
  [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                             std::uint64_t maximum) const noexcept
    requires prefetching_session<session_type>
  {
    const bytes_in_shard found = w.at.coming.bytes_of(i);
    if (found.size != 0) session_.prefetch(found.shard, found.begin, std::min(maximum, found.size));
  }

  [[nodiscard]] std::string key(std::uint64_t index) const {
    const manifest::place place = set_->locate(index);
    return Show::key(set_->path(place.shard), indexes_.get(session_, place.shard), place.sample);
  }
  /// The shard of a sample.
  [[nodiscard]] std::string url(std::uint64_t index) const { return set_->path(set_->locate(index).shard); }
  /// Loads the missing indexes of the samples' shards, several at once.
  void get_ready(std::span<const position> samples) const { indexes_.get_ready(session_, samples); }
  /// Whether all indexes are loaded.
  [[nodiscard]] bool is_ready() const noexcept { return indexes_.are_ready(); }
  /// The ranges of the used members of a sample: one for each run of adjacent members.
  template <class Sink>
  void ranges(std::uint64_t index, Sink&& sink) const {
    ranges(index, 1, sink);
  }
  /// The ranges of `count` consecutive samples.
  template <class Sink>
  void ranges(std::uint64_t index, std::uint64_t count, Sink&& sink) const {
    while (count != 0) {
      const manifest::place place = set_->locate(index);
      if constexpr (unknown_range_sink<Sink>)
        if (indexes_.find(place.shard) == nullptr) return sink.unknown();
      const auto& tables = indexes_.get(session_, place.shard);
      const std::uint64_t here = std::min(count, tables.header().samples - place.sample);
      tables.runs_of_used(tables.first_member(place.sample), tables.end_member(place.sample + here - 1),
                          [&](std::uint64_t begin, std::uint64_t end) {
                            sink(session_, static_cast<object_id>(place.shard), begin, end - begin);
                          });
      index += here;
      count -= here;
    }
  }
  /// That of the session.
  [[nodiscard]] session_report report() const { return report_of(session_); }
  /// Ends the session's reads.
  void cancel_reads() const noexcept {
    indexes_.end_reads();
    end_reads(session_);
  }
  /// The mean payload of a sample.
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    return set_->shards.samples() == 0 ? 0 : set_->shards.payload() / set_->shards.samples();
  }

 private:
  void move_to(worker& w, std::uint64_t index) const {
    auto& at = w.at;
    const coming_sample* const coming = at.coming.take(index);
    bool in_order = false;
    if (at.tables != nullptr && index >= at.shard_begin && index < at.shard_end) [[likely]] {
      in_order = index == at.shard_begin + at.sample + 1;
    } else if (coming != nullptr) {
      enter(at, *coming->tables, coming->shard, coming->shard_begin);
    } else {
      const manifest::place place = set_->locate(index);
      enter(at, indexes_.get(session_, place.shard), static_cast<object_id>(place.shard), place.first);
    }
    at.sample = index - at.shard_begin;
    at.first = at.tables->first_member(at.sample);
    at.end = at.tables->end_member(at.sample);
    at.touched = no_offset;
    w.begin(session_, in_order);
  }
  void enter(sample_cursor& at, const shard_index& tables, object_id which, std::uint64_t shard_begin) const {
    at.tables = &tables;
    at.url = &set_->path(which);
    at.shard = which;
    at.shard_begin = shard_begin;
    at.shard_end = shard_begin + tables.header().samples;
  }

  shared<const shard_set<Storage>> set_;
  mutable session_type session_;  // a session may be used by many threads
  open_indexes indexes_;
  [[no_unique_address]] Show show_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
