// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/manifest.hpp>
#include <penstock/source/records/record_reader.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/records/shard_sample.hpp>
#include <penstock/source/records/shard_set.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

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
  [[nodiscard]] static show_samples of(const known_shards&) noexcept { return {}; }
};

/// What a run keeps for shards with indexes: the indexes of those used so far. `Show` makes the element of a
/// sample.
template <class Session, class Show>
class open_shards {
 public:
  using worker = worker_for<Session>;
  using element = typename Show::template element<worker>;

  template <class Files>
  open_shards(const shared<const Files>& files, const projection& used)
      : files_(files.get()),
        indexes_(shared<const shard_set<decltype(Files::where)>>(files), used),
        show_(Show::of(*files)) {}

  [[nodiscard]] const open_indexes& indexes() const noexcept { return indexes_; }
  void end_reads() const noexcept { indexes_.end_reads(); }
  /// The mean payload of a sample.
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    return files_->shards.samples() == 0 ? 0 : files_->shards.payload() / files_->shards.samples();
  }
  void enter(Session& session, std::size_t shard, worker& w) const {
    w.at.tables = &indexes_.get(session, shard);
    w.at.url = &files_->path(shard);
    w.at.shard = static_cast<object_id>(shard);
    w.at.sample = no_sample;
  }
  [[nodiscard]] element open(Session& session, const manifest::place& place, worker& w) const {
    const bool in_order = place.sample == w.at.sample + 1;
    w.at.sample = place.sample;
    w.at.first = w.at.tables->first_member(place.sample);
    w.at.end = w.at.tables->end_member(place.sample);
    w.at.touched = no_offset;
    w.begin(session, in_order);
    return show_.open(w);
  }
  /// An index is compared with its shard when it is loaded.
  [[nodiscard]] static constexpr bool reads() noexcept { return false; }
  [[nodiscard]] static bool needs_confirm(const worker& w) noexcept { return w.needs_confirm(); }
  static void add_context(error& e, Session&, const manifest::place&, const worker& w) {
    Show::add_context(w.at, e);
  }
  [[nodiscard]] std::string key(Session& session, const manifest::place& place) const {
    return Show::key(files_->path(place.shard), indexes_.get(session, place.shard), place.sample);
  }
  /// The ranges of the used members of a sample: one for each run of adjacent members.
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& place, Sink&& sink) const {
    if constexpr (requires { sink.unknown(); })
      if (indexes_.find(place.shard) == nullptr) return sink.unknown();
    const shard_index& tables = indexes_.get(session, place.shard);
    tables.runs_of_used(
        tables.first_member(place.sample), tables.end_member(place.sample),
        [&](std::uint64_t begin, std::uint64_t end) { sink(session, object, begin, end - begin); });
  }
  /// Prefetches what says where the sample's members begin in the index.
  void glance(const manifest::place& place) const noexcept {
    if (const shard_index* const tables = indexes_.find(place.shard)) tables->prefetch_first(place.sample);
  }
  void look_up(const manifest::place& place) const noexcept {
    const shard_index* const tables = indexes_.find(place.shard);
    if (tables == nullptr) return;
    const std::uint32_t first = tables->first_member(place.sample);
    if (first != tables->end_member(place.sample)) tables->prefetch_member(first);
  }
  /// From the first to the last used member.
  [[nodiscard]] coming_sample::stretch seen(const manifest::place& place) const noexcept {
    const shard_index* const tables = indexes_.find(place.shard);
    if (tables == nullptr) return {};
    std::uint32_t first = tables->first_member(place.sample), end = tables->end_member(place.sample);
    while (first != end && !tables->uses(first)) ++first;
    while (first != end && !tables->uses(end - 1)) --end;
    if (first == end) return {};
    return {tables->offset(first), tables->end(end - 1) - tables->offset(first)};
  }

 private:
  static constexpr std::uint64_t no_sample = no_offset - 1;  // the number before none

  const known_shards* files_;  // which the reader holds
  open_indexes indexes_;
  [[no_unique_address]] Show show_;
};

/// A run's reader of shards with indexes.
template <storage Storage, class Show>
using shard_reader = record_reader<shard_set<Storage>, open_shards<typename Storage::session, Show>>;

}  // namespace detail
}  // namespace penstock::inline v0_1
