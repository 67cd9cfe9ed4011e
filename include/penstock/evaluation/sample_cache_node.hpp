// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>
#include <penstock/evaluation/detail/worker_root.hpp>
#include <penstock/evaluation/next_samples.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// Objects by their numbers, up to a limit in bytes. What is added stays as long as the table; the table owns
/// it, and destroys it with `destroy`.
///
/// Threads: any. A lookup takes no lock: it reads one of 64 parts, each a table with open addressing, which
/// is replaced by one of twice the size when it is three quarters full. Replaced tables stay until the end,
/// as somebody may still be reading them: as much memory again as the last one, which counts towards the
/// limit.
class sample_cache_table {
 public:
  using destroyer = void (*)(void*) noexcept;

  sample_cache_table(std::uint64_t limit, destroyer destroy) noexcept : limit_(limit), destroy_(destroy) {}
  sample_cache_table(const sample_cache_table&) = delete;
  sample_cache_table& operator=(const sample_cache_table&) = delete;
  ~sample_cache_table();

  /// The object of a number, or null.
  [[nodiscard]] const void* find(std::uint64_t number) const noexcept {
    const std::uint64_t hash = mix64(number);
    return parts_[hash % parts].find(number, hash);
  }
  /// The object of a number, or null; counts a hit.
  [[nodiscard]] const void* use(std::uint64_t number) noexcept {
    const std::uint64_t hash = mix64(number);
    part& in = parts_[hash % parts];
    const void* const found = in.find(number, hash);
    if (found != nullptr) in.hits.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  /// Gives an object to the table. Returns the one that has the number: this one, or one that was there
  /// already; null if there is no room for it. Unless it is this one, the caller still owns it. If it throws,
  /// too.
  [[nodiscard]] const void* add(std::uint64_t number, void* object, std::uint64_t bytes);
  /// Counts an object that was made and for which there is no room.
  void count_uncached(std::uint64_t number) noexcept {
    parts_[mix64(number) % parts].uncached.fetch_add(1, std::memory_order_relaxed);
  }
  /// Whether there was no room for one, and there is less room than the average one takes.
  [[nodiscard]] bool full() const noexcept { return full_.load(std::memory_order_relaxed); }

  [[nodiscard]] kept_counters counters() const;

 private:
  static constexpr std::size_t parts = 64, smallest = 16;

  struct entry {
    std::atomic<const void*> object{nullptr};  // set last
    std::uint64_t number = 0;
  };
  struct table {
    explicit table(std::size_t places) : entries(places) {}
    std::vector<entry> entries;  // a power of two of them

    [[nodiscard]] const void* find(std::uint64_t number, std::uint64_t hash) const noexcept {
      const std::size_t last = entries.size() - 1;
      for (std::size_t i = (hash / parts) & last;; i = (i + 1) & last) {
        const void* const object = entries[i].object.load(std::memory_order_acquire);
        if (object == nullptr || entries[i].number == number) return object;
      }
    }
    void put(std::uint64_t number, std::uint64_t hash, const void* object) noexcept;
  };
  struct part {
    alignas(64) std::atomic<const table*> now{nullptr};
    std::mutex adding;
    std::size_t used = 0;
    std::vector<std::unique_ptr<table>> all;  // the last one is the current one
    alignas(64) std::atomic<std::uint64_t> hits{0}, uncached{0};

    [[nodiscard]] const void* find(std::uint64_t number, std::uint64_t hash) const noexcept {
      const table* const in = now.load(std::memory_order_acquire);
      return in == nullptr ? nullptr : in->find(number, hash);
    }
  };

  /// Takes room from the limit; false if there is not so much.
  [[nodiscard]] bool take_room(std::uint64_t bytes) noexcept;
  /// Makes place for one more object in a part; false if the limit leaves no room for that.
  [[nodiscard]] bool make_place(part& to);

  const std::uint64_t limit_;
  const destroyer destroy_;
  std::atomic<std::uint64_t> bytes_{0}, samples_{0};
  std::atomic<bool> full_{false};
  std::array<part, parts> parts_;
};

}  // namespace detail

/// Samples are kept by their numbers in the source.
struct kept_by_sample {
  [[nodiscard]] static std::uint64_t number(const sample_position& p) noexcept { return p.source.index; }
  [[nodiscard]] static bool is_kept(const detail::sample_cache_table& table, position source) noexcept {
    return table.find(source.index) != nullptr;
  }
};

/// A node that shows samples from memory where they are kept, and keeps others. `Element` is what arrives
/// from `Up`; `Numbering` says by which number.
template <class Up, class Element, class Numbering = kept_by_sample>
class sample_cache_node {
  using form = kept<Element>;

 public:
  struct worker {
    typename Up::worker up;
    form own{};  // a sample that does not fit; keeps its capacity
    stage_cost cost;

    worker() = default;
  };
  static constexpr std::uint32_t depth = Up::depth + 1;
  static constexpr bool has_pieces = Up::has_pieces;
  static constexpr bool has_runs = false, keeps_samples = true;

  Up up;

  sample_cache_node(Up inner, std::uint64_t limit, Numbering numbering = {})
      : up(std::move(inner)), numbering_(numbering), table_(new detail::sample_cache_table(limit, destroy)) {}

  /// Whether a sample of the source is kept, and so not read again.
  [[nodiscard]] bool is_kept(position source) const noexcept { return numbering_.is_kept(*table_, source); }
  [[nodiscard]] kept_counters counters() const { return table_->counters(); }

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    if constexpr (Timing::value) detail::root_of(w.up).landing = {};
    const std::uint64_t begin = Timing::now();
    const std::uint64_t number = numbering_.number(p);
    const form* const found = find(number);
    detail::count_call(w.cost, begin, timing);
    if (found != nullptr) {
      detail::innermost(up).pass_over(detail::innermost(w.up));
      return show(*found, w, sink, timing);
    }
    std::unique_ptr<form> made;
    up.evaluate(
        p, w.up,
        [&]<class V>(V&& value) {
          const std::uint64_t arrived = Timing::now();
          const form& here = make(number, std::forward<V>(value), made, w.own);
          w.cost.nanoseconds += Timing::now() - arrived;
          show(here, w, sink, timing);
        },
        timing);
    const std::uint64_t evaluated = Timing::now();
    add(number, made);
    w.cost.nanoseconds += Timing::now() - evaluated;
  }

 protected:
  using kept_form = form;

  template <class Timing, class Sink>
  static void show(const form& here, worker& w, Sink& sink, Timing timing) {
    if constexpr (Timing::value) {
      auto& root = detail::root_of(w.up);
      root.landing.hand_on(timing, sink, show_cached(here));
      w.cost.nanoseconds += root.landing.template share_of_stage<form, shown_of<Element>>();
      root.landing.passed();
    } else {
      sink(show_cached(here));
    }
  }
  [[nodiscard]] const form* find(std::uint64_t number) const noexcept {
    return static_cast<const form*>(table_->use(number));
  }
  /// Bytes that a kept sample takes.
  [[nodiscard]] static std::uint64_t bytes_taken(const form& one) {
    constexpr std::uint64_t of_allocator = 32;  // about what it takes for its own
    return sizeof(form) + bytes_of_kept(one) + of_allocator;
  }
  /// Once all is well: a source may find only after it has shown a sample that the bytes were bad.
  void add(std::uint64_t number, std::unique_ptr<form>& made) const {
    if (!made) return;
    const void* const there = table_->add(number, made.get(), bytes_taken(*made));
    if (there == made.get()) (void)made.release();
    if (there == nullptr) table_->count_uncached(number);
  }

  [[no_unique_address]] Numbering numbering_;
  shared<detail::sample_cache_table> table_;

 private:
  /// A sample in its kept form: in an object of its own, or in a place of the worker if the table is full.
  template <class V>
  [[nodiscard]] const form& make(std::uint64_t number, V&& value, std::unique_ptr<form>& made,
                                 form& passing) const {
    if (!table_->full()) made = std::make_unique<form>();
    form& into = made ? *made : passing;
    make_kept(std::forward<V>(value), into);
    if (!made) table_->count_uncached(number);
    return into;
  }
  static void destroy(void* one) noexcept { delete static_cast<form*>(one); }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/evaluation/sample_cache_node.ipp>
#endif
