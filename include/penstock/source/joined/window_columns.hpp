// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/record.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/source/joined/plan_values.hpp>

#include <array>
#include <utility>

/// The chains that evaluate the rows of a window, and the ranges of its rows.
namespace penstock::inline v0_1::detail {

/// The innermost node of a chain of rows, which shows rows one behind the other as the reader does.
template <class Reader>
struct window_row_node : placed_node<Reader> {
  using typename placed_node<Reader>::worker;
  static constexpr bool has_runs = reader_traits_of<Reader>.shows_contiguous;

  template <class Timing, class Sink>
    requires has_runs
  [[nodiscard]] std::uint64_t evaluate_run(position first, std::uint64_t n, worker& w, Sink&& sink,
                                           Timing) const {
    return this->reader->evaluate_run(first, n, w.own, sink);
  }
};

/// The chain of a plan's rows, and its element.
template <class Plan>
struct row_chain {
  using node = window_row_node<typename Plan::source_type::reader>;
  static auto of(const Plan& p, const typename Plan::source_type::reader* reader) {
    return make_chain(p, node{{reader}}, *options_of(p).seed);
  }
  using type = decltype(of(std::declval<const Plan&>(), nullptr));
};

/// Of each column a chain of its own, which evaluates nothing else.
template <bool Narrows, class Plan, class Names>
struct column_chains;
template <class Plan, class... Names>
struct column_chains<true, Plan, light_tuple<Names...>> {
  template <class Name>
  using plan_of = decltype(narrowed_to<Name>(std::declval<const Plan&>()));

  struct worker : light_tuple<typename row_chain<plan_of<Names>>::type::worker...> {
    worker() noexcept {}  // see joined_plans.hpp
    template <std::size_t I>
    [[nodiscard]] auto& of() noexcept {
      return at<I>(*this);
    }
  };
  light_tuple<typename row_chain<plan_of<Names>>::type...> each;

  column_chains(const Plan& p, const typename Plan::source_type::reader* reader)
      : each(make_light_tuple(row_chain<plan_of<Names>>::of(narrowed_to<Names>(p), reader)...)) {}
  template <std::size_t I>
  [[nodiscard]] const auto& of() const noexcept {
    return at<I>(each);
  }
  template <std::size_t I>
  [[nodiscard]] static decltype(auto) field(const auto& value) noexcept {
    return get<0>(value);
  }
  [[nodiscard]] static kept_counters kept() noexcept { return {}; }
};
/// Rows of which all fields are evaluated for each of them: their stages may make all at once.
template <class Plan, class Names>
struct column_chains<false, Plan, Names> {
  using chain_type = typename row_chain<Plan>::type;

  struct worker {
    typename chain_type::worker own;  // of the window's own row, whose values last as long as the window
    typename chain_type::worker rows;
    worker() noexcept {}  // see joined_plans.hpp
    template <std::size_t I>
    [[nodiscard]] auto& of() noexcept {
      return rows;
    }
  };
  chain_type whole;

  column_chains(const Plan& p, const typename Plan::source_type::reader* reader)
      : whole(row_chain<Plan>::of(p, reader)) {}
  template <std::size_t I>
  [[nodiscard]] const auto& of() const noexcept {
    return whole;
  }
  template <std::size_t I, class V>
  [[nodiscard]] static decltype(auto) field(const V& value) noexcept {
    if constexpr (any_record<V>)
      return get<I>(value);
    else
      return (value);
  }
  [[nodiscard]] kept_counters kept() const { return kept_in(whole); }
};

/// Puts ranges that lie one behind the other in an object together, so that rows which are read at once are
/// also fetched at once. The rest is passed on by `flush`.
template <class Sink>
class range_merger {
  struct range {
    void* session = nullptr;
    object_id object = 0;
    std::uint64_t offset = 0, size = 0;
    void (*give)(Sink& sink, const range& one) = nullptr;
  };

 public:
  explicit range_merger(Sink& sink) noexcept : sink_(sink) {}
  template <class Session>
  void operator()(Session& session, object_id object, std::uint64_t offset, std::uint64_t size) {
    for (range& one : open_) {
      if (one.session != &session || one.object != object || one.offset + one.size != offset) continue;
      one.size += size;
      return;
    }
    range& made = open_[next_++ % open_.size()];
    if (made.give != nullptr) made.give(sink_, made);
    made = {&session, object, offset, size, [](Sink& sink, const range& one) {
              sink(*static_cast<Session*>(one.session), one.object, one.offset, one.size);
            }};
  }
  void unknown()
    requires requires(Sink& sink) { sink.unknown(); }
  {
    sink_.unknown();
  }
  void flush() {
    for (const range& one : open_)
      if (one.give != nullptr) one.give(sink_, one);
  }

 private:
  Sink& sink_;
  std::array<range, 8> open_{};  // of several sources, whose ranges alternate
  std::size_t next_ = 0;
};

}  // namespace penstock::inline v0_1::detail
