// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace penstock_test {

/// A plan's value stages as the engine sees them, without the engine: evaluate(position, worker, sink).
template <class Plan>
class bare_chain {
  static auto node(const typename Plan::source_type::reader& reader) {
    return penstock::source_node<std::remove_cvref_t<decltype(reader)>>{&reader};
  }
  using chain_type = decltype(penstock::make_chain(
      std::declval<const Plan&>(), node(std::declval<const typename Plan::source_type::reader&>()),
      std::uint64_t{}));

 public:
  using worker = typename chain_type::worker;

  explicit bare_chain(const Plan& plan)
      : orders_(penstock::make_sample_orders(plan)),
        reader_(plan.source().connect()),
        binding_(orders_.bind(0, 0, orders_.size())),
        chain_(penstock::make_chain(plan, node(reader_), *penstock::options_of(plan).seed)) {}
  bare_chain(const bare_chain&) = delete;
  bare_chain& operator=(const bare_chain&) = delete;

  [[nodiscard]] std::uint64_t size() const { return orders_.size(); }

  template <class Sink>
  void evaluate(penstock::position at, worker& w, Sink&& sink) const {
    chain_.evaluate({at, binding_(at.index)}, w, std::forward<Sink>(sink), penstock::untimed{});
  }

 private:
  decltype(penstock::make_sample_orders(std::declval<const Plan&>())) orders_;
  typename Plan::source_type::reader reader_;
  typename decltype(orders_)::binding binding_;
  chain_type chain_;
};

/// Calls `look(index, value)` for every position, the last one first, by two workers in turn. The values are
/// unfinished.
template <class Plan, class Look>
void evaluate_each(const Plan& plan, Look look) {
  const bare_chain<Plan> chain(plan);
  typename bare_chain<Plan>::worker workers[2];
  for (std::uint64_t i = chain.size(); i-- > 0;)
    chain.evaluate({0, i}, workers[i % 2], [&]<class V>(V&& value) { look(i, std::forward<V>(value)); });
}

}  // namespace penstock_test
