// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/workers.hpp>

#include <string>
#include <vector>

namespace penstock_test {

/// The values of one pass over a plan, batch by batch (row by row without batches), with this many workers.
template <class Plan>
[[nodiscard]] auto batches_of(const Plan& plan, unsigned workers = 1) {
  using parts = penstock::plan_parts<Plan>;
  using value = typename penstock::detail::stored<typename parts::element>::type;
  std::vector<std::vector<value>> all;
  for (auto&& b : (plan | penstock::workers(workers) | penstock::allow_empty).epoch(0)) {
    if constexpr (parts::batched) {
      const auto values = b.values();
      if constexpr (requires { values.flat(); })
        all.emplace_back(values.flat().begin(), values.flat().end());
      else
        all.emplace_back(values.begin(), values.end());
    } else {
      all.push_back({b});
    }
  }
  return all;
}

/// The values of one pass over a plan, as one list.
template <class Plan>
[[nodiscard]] auto values_of(const Plan& plan, unsigned workers = 1) {
  typename decltype(batches_of(plan))::value_type all;
  for (const auto& b : batches_of(plan, workers)) all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// The message of the error that `f` throws, or nothing.
template <class F>
[[nodiscard]] std::string error_of(F&& f) {
  try {
    f();
  } catch (const penstock::error& e) {
    return e.what();
  }
  return "";
}

[[nodiscard]] inline std::vector<int> first_ints(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

}  // namespace penstock_test
