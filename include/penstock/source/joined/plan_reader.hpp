// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>

/// Reading a plan's samples by position.
namespace penstock::inline v0_1::detail {

/// The innermost node of a joined plan's chain: what was fetched for a sample is held by who asks.
template <class Reader>
struct placed_node {
  struct worker {
    worker_root root;
    typename Reader::worker own;
  };
  static constexpr std::uint32_t depth = 0;
  static constexpr bool has_pieces = false, has_runs = false;

  const Reader* reader = nullptr;

  static void pass_over(worker&) noexcept {}
  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing) const {
    reader->evaluate(p.source, w.own, std::forward<Sink>(sink));
  }
};

template <class Chain>
struct orders_in;
template <class... Orders>
struct orders_in<order_chain<Orders...>> {
  static constexpr bool none = sizeof...(Orders) == 0;
  static constexpr bool change_epoch = (epoch_changing<Orders> || ...);
};

/// The bindings of a plan's orders for the epochs requested most recently, each made once: a block of a
/// mixture may hold samples from several epochs of a source. If a stage joins several epochs into one, a
/// binding covers a span of indices.
template <class Orders>
class recent_bindings {
 public:
  [[nodiscard]] position operator()(const Orders& orders, position p) {
    const std::uint64_t span = changes ? p.index / indices : 0;
    entry& e = entries_[detail::to_size((p.epoch + span) % kept)];
    if (e.epoch != p.epoch || e.span != span) [[unlikely]]
      bind(orders, e, p.epoch, span);
    return e.binding(p.index);
  }

 private:
  static constexpr bool changes = orders_in<Orders>::change_epoch;
  static constexpr std::uint64_t indices = 1024, kept = 4, nothing = ~std::uint64_t{0};
  struct entry {
    std::uint64_t epoch = nothing, span = nothing;
    typename Orders::binding binding;
  };
  [[gnu::noinline]] static void bind(const Orders& orders, entry& e, std::uint64_t epoch,
                                     std::uint64_t span) {
    e.span = nothing;
    if constexpr (changes)
      orders.rebind(e.binding, epoch, span * indices, (span + 1) * indices);
    else
      orders.rebind(e.binding, epoch, 0, orders.size());
    e.epoch = epoch;
    e.span = span;
  }

  std::array<entry, kept> entries_;
};

/// A reader that shows samples one behind the other as one array.
template <class Reader>
concept shows_rows = requires(const Reader& r, position at, typename Reader::worker& w) {
  { r.evaluate_rows(at, std::uint64_t{}, w, any_sink{}) } -> std::same_as<std::uint64_t>;
};

/// An opened plan (source, orders and value stages) that delivers its samples by position. All threads share
/// it; each has a `worker`.
template <class Plan>
class plan_reader {
  using source_reader = typename Plan::source_type::reader;
  using orders_type = decltype(make_sample_orders(std::declval<const Plan&>()));
  static auto chain_of(const Plan& p, const source_reader* reader) {
    return make_chain(p, placed_node<source_reader>{reader}, *options_of(p).seed);
  }
  using chain_type = decltype(chain_of(std::declval<const Plan&>(), nullptr));

  struct no_bindings {
    [[nodiscard]] position operator()(const orders_type&, position p) const noexcept { return p; }
  };
  using bindings_type =
      std::conditional_t<orders_in<orders_type>::none, no_bindings, recent_bindings<orders_type>>;

  struct opened {
    source_reader reader;
    orders_type orders;
    chain_type chain;
    std::string name;
    opened(const Plan& p, const projection& used, std::string called)
        : reader(connect_source_of(p, used)),
          orders(make_sample_orders(p)),
          chain(chain_of(p, &reader)),
          name(std::move(called)) {}
  };

 public:
  struct worker {
    typename chain_type::worker chain;
    [[no_unique_address]] bindings_type bindings;
    const fetched_sample* fetched = nullptr;
  };
  struct scout {
    scout() noexcept {}  // see joined_plans.hpp
    [[no_unique_address]] bindings_type bindings;
    [[no_unique_address]] scout_of<source_reader> inner;
  };
  static constexpr bool wants_hints = takes_hints<source_reader>;
  static constexpr reader_traits traits = reader_traits_of<source_reader>;

  plan_reader() = default;
  /// `used`: the fields used of the plan's samples. `name`: the plan's name in errors, "source 2 of mix".
  plan_reader(const Plan& p, const projection& used, std::string name)
      : opened_(new const opened(p, used, std::move(name))) {}

  /// Delivers the sample at a position of the plan. An error from the plan (not from the sink) gets the
  /// plan's name.
  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    const opened& o = *opened_;
    bool inside = true;
    try {
      if constexpr (traits.takes_fetched) innermost(w.chain).own.fetched = w.fetched;
      o.chain.evaluate(
          {p, w.bindings(o.orders, p)}, w.chain,
          [&inside, &sink]<class V>(V&& value) {
            inside = false;
            sink(std::forward<V>(value));
            inside = true;
          },
          untimed{});
    } catch (error& e) {
      if (inside) e.in_part(o.name);
      throw;
    }
  }
  /// The samples from `first` on as one array, as its source shows them; see `record_reader`.
  template <class Sink>
    requires(shows_rows<source_reader> && chain_type::depth == 0 && orders_in<orders_type>::none)
  std::uint64_t evaluate_rows(position first, std::uint64_t count, worker& w, Sink&& sink) const {
    const opened& o = *opened_;
    bool inside = true;
    try {
      auto& own = innermost(w.chain).own;
      if constexpr (traits.takes_fetched) own.fetched = w.fetched;
      return o.reader.evaluate_rows(first, count, own, [&](const auto& rows) {
        inside = false;
        sink(rows);
        inside = true;
      });
    } catch (error& e) {
      if (inside) e.in_part(o.name);
      throw;
    }
  }
  /// Returns f(reader, position) for a sample of the plan: of its source, and there.
  template <class F>
  [[nodiscard]] auto ask(position p, F&& f) const {
    return f(opened_->reader, opened_->orders.sample_at(p));
  }
  [[nodiscard]] const source_reader& reader() const noexcept { return opened_->reader; }
  template <class Sink>
  void ranges(position p, scout& s, Sink& sink) const {
    const position at = s.bindings(opened_->orders, p);
    if (is_kept_in(opened_->chain, at)) return;
    // a reader that cannot use fetched bytes only hints at what it will read
    if constexpr (traits.takes_fetched)
      ranges_of(opened_->reader, at, s.inner, sink);
    else
      hint(opened_->reader, at, s.inner);
  }
  [[nodiscard]] kept_counters kept() const {
    kept_counters all = kept_in(opened_->chain);
    return all += kept_of(opened_->reader);
  }

 private:
  shared<const opened> opened_;
};

}  // namespace penstock::inline v0_1::detail
