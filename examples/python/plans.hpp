// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A plan is a type of C++, so what Python chooses from at run time is a fixed set of plans behind one
// interface.

#include <penstock/integration/to_dlpack.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/run/run.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock_loader {

namespace ps = penstock;

/// What all kinds of loaders are told.
struct settings {
  std::string path;
  unsigned batch = 256;
  std::uint64_t seed = 0;
  unsigned workers = 2, size = 224, window = 1024;
  std::uint64_t rank = 0, world = 1;
};

/// A field of a batch. Each call of `make` gives a tensor of its own, which holds the batch.
struct tensor {
  std::string name;
  std::function<ps::dlpack_tensor()> make;
};
using batch_fields = std::vector<tensor>;

/// A run of any of the plans.
class any_run {
 public:
  virtual ~any_run() = default;
  virtual void begin(std::uint64_t epoch) = 0;
  virtual std::optional<batch_fields> next() = 0;
  [[nodiscard]] virtual ps::state state() const = 0;
  [[nodiscard]] virtual std::uint64_t steps() const = 0;
};
using opens = std::function<std::unique_ptr<any_run>(const std::string& state)>;

/// `fill(batch)` gives the fields of a batch, which is a shared pointer.
template <class Plan, class Fill>
class run_of final : public any_run {
  using run_type = decltype(std::declval<const Plan&>().open());
  using batch_type = typename run_type::value_type;

 public:
  run_of(const Plan& plan, const std::string& state, Fill fill)
      : run_(state.empty() ? plan.open() : plan.open(ps::state_from_string(state))), fill_(std::move(fill)) {}

  void begin(std::uint64_t epoch) override {
    range_.emplace(run_.epoch(epoch));
    at_.emplace(range_->begin());
    first_ = true;
  }
  std::optional<batch_fields> next() override {
    if (!std::exchange(first_, false)) ++*at_;
    if (*at_ == range_->end()) return std::nullopt;
    return fill_(std::make_shared<batch_type>(std::move(**at_)));
  }
  [[nodiscard]] ps::state state() const override { return run_.state(); }
  [[nodiscard]] std::uint64_t steps() const override { return run_.steps_per_epoch(); }

 private:
  run_type run_;
  Fill fill_;
  std::optional<typename run_type::epoch_range> range_;
  std::optional<typename run_type::iterator> at_;
  bool first_ = true;
};

/// `plan | shard`, so that each process gets its part, and how it is opened.
template <class Plan, class Fill>
[[nodiscard]] opens how_to_open(Plan plan, Fill fill) {
  return
      [plan = std::move(plan), fill = std::move(fill)](const std::string& state) -> std::unique_ptr<any_run> {
        return std::make_unique<run_of<Plan, Fill>>(plan, state, fill);
      };
}

[[nodiscard]] opens webdataset_plan(const settings& how);
[[nodiscard]] opens images_plan(const settings& how);
[[nodiscard]] opens tokens_plan(const settings& how);
/// Throws where the package was built without Arrow.
[[nodiscard]] opens parquet_plan(const settings& how);

}  // namespace penstock_loader
