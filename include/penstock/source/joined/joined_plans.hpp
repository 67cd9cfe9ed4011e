// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/source/joined/joinable.hpp>
#include <penstock/source/joined/plan_reader.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace mistakes {

struct elements_differ {
  using penstock_mistake = about_element_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: mix and concat deliver one type of element, and the elements of these sources "
                  "are of different types; convert them to one type with map(f) or fields<...>. This error "
                  "names them, in elements<...>");
  }
};

}  // namespace mistakes

namespace detail {

template <std::size_t First, std::size_t Last, class F>
constexpr void dispatch(std::size_t k, F&& f) {
  if constexpr (Last - First == 1) {
    f(std::integral_constant<std::size_t, First>{});
  } else {
    constexpr std::size_t middle = First + (Last - First) / 2;
    if (k < middle)
      dispatch<First, middle>(k, f);
    else
      dispatch<middle, Last>(k, f);
  }
}

/// The name of one of the sources in errors: "source 2 of mix (from(3 samples in memory))".
[[nodiscard, gnu::cold]] inline std::string name_of_joined(std::string_view joint, std::size_t k,
                                                           std::string_view what) {
  return text({"source ", k, " of ", joint, " (", what, ")"});
}

/// The size and the shards of a plan to be joined.
template <class Plan>
[[nodiscard]] order_input output_of_orders(const Plan& p) {
  return make_sample_orders(p).output();
}

/// What is known of plans before they are opened.
template <class... Plans>
struct joined_facts {
  static constexpr bool wants_hints = (plan_reader<Plans>::wants_hints || ...);
  static constexpr reader_traits traits = {
      .latency = (plan_reader<Plans>::traits.latency || ...),
      .takes_fetched = (plan_reader<Plans>::traits.takes_fetched || ...)};
  static constexpr guarantee_set lost = lost_by_joined<Plans...>();
  static constexpr bool renumbers = (plan_renumbers<Plans> || ...);
  static constexpr bool varies = !(Plans::same_every_epoch && ...);
  static constexpr bool one_at_a_time = (Plans::one_at_a_time || ...);
};

/// Plans of different types, side by side.
template <class... Plans>
class joined_plans : public joined_facts<Plans...> {
 public:
  static constexpr std::size_t fixed_count = sizeof...(Plans);
  using element = std::remove_cvref_t<typename type_at<0, pack<Plans...>>::element>;

  explicit joined_plans(pack<Plans...> plans) : plans_(std::move(plans)) {}

  /// Calls f(number, plan) for each plan.
  template <class F>
  void each(F&& f) const {
    std::size_t k = 0;
    plans_.apply([&](const auto&... plans) { (f(k++, plans), ...); });
  }

  class readers {
   public:
    struct worker : pack<typename plan_reader<Plans>::worker...> {
      const fetched_sample* fetched = nullptr;
    };
    struct scout : pack<typename plan_reader<Plans>::scout...> {
      scout() noexcept {}  // Clang 16 crashes where an aggregate of such aggregates is initialised
    };

    /// `used`: the fields used of the samples of each plan, in order.
    readers(const joined_plans& all, std::string_view joint,
            const std::array<projection, fixed_count>& used) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        ((at<Is>(each_) =
              plan_reader<Plans>(at<Is>(all.plans_), used[Is],
                                 name_of_joined(joint, Is, at<Is>(all.plans_).source().describe()))),
         ...);
      }(std::index_sequence_for<Plans...>{});
    }
    /// `used`: the fields used of the samples of every plan.
    readers(const joined_plans& all, std::string_view joint, const projection& used)
        : readers(all, joint, std::array<projection, fixed_count>{(void(sizeof(Plans)), used)...}) {}

    /// The reader of plan number I.
    template <std::size_t I>
    [[nodiscard]] const auto& get() const noexcept {
      return at<I>(each_);
    }
    /// Calls f(number, reader) for each plan.
    template <class F>
    void each(F&& f) const {
      std::size_t k = 0;
      each_.apply([&](const auto&... one) { (f(k++, one), ...); });
    }
    /// Calls f(reader, state) for plan number k; `states`: a worker or a scout of all.
    template <class States, class F>
    void with(std::size_t k, States& states, F&& f) const {
      dispatch<0, fixed_count>(
          k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { f(at<I>(each_), at<I>(states)); });
    }
    /// Calls f(reader) for plan number k.
    template <class F>
    void with(std::size_t k, F&& f) const {
      dispatch<0, fixed_count>(
          k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { f(at<I>(each_)); });
    }

   private:
    pack<plan_reader<Plans>...> each_;
  };

 private:
  pack<Plans...> plans_;
};

/// Plans of one type, whose number is known at run time.
template <class Plan>
class listed_plans : public joined_facts<Plan> {
 public:
  using element = std::remove_cvref_t<typename Plan::element>;

  explicit listed_plans(std::vector<Plan> plans) : plans_(new const std::vector<Plan>(std::move(plans))) {}

  template <class F>
  void each(F&& f) const {
    for (std::size_t k = 0; k < plans_->size(); ++k) f(k, (*plans_)[k]);
  }

  class readers {
    using one = plan_reader<Plan>;

   public:
    struct worker {
      std::unique_ptr<typename one::worker[]> each;
      const fetched_sample* fetched = nullptr;
    };
    struct scout {
      std::unique_ptr<typename one::scout[]> each;
    };

    /// `used`: the fields used of the samples of every plan.
    readers(const listed_plans& all, std::string_view joint, const projection& used) {
      all.each([&](std::size_t k, const Plan& p) {
        each_.emplace_back(p, used, name_of_joined(joint, k, p.source().describe()));
      });
    }
    template <class F>
    void each(F&& f) const {
      for (std::size_t k = 0; k < each_.size(); ++k) f(k, each_[k]);
    }
    template <class States, class F>
    void with(std::size_t k, States& states, F&& f) const {
      if (states.each == nullptr) [[unlikely]]
        states.each.reset(new std::remove_reference_t<decltype(states.each[0])>[each_.size()]());
      f(each_[k], states.each[k]);
    }
    template <class F>
    void with(std::size_t k, F&& f) const {
      f(each_[k]);
    }

   private:
    std::vector<one> each_;
  };

 private:
  shared<const std::vector<Plan>> plans_;
};

/// The sizes of plans, in samples per epoch.
template <class Plans>
[[nodiscard]] std::vector<std::uint64_t> sizes_of(const Plans& plans) {
  std::vector<std::uint64_t> sizes;
  plans.each([&sizes](std::size_t, const auto& p) { sizes.push_back(output_of_orders(p).size); });
  return sizes;
}

inline pack<> join_all() { return {}; }
template <class First, class... Rest>
[[nodiscard]] auto join_all(First first, Rest... rest) {
  if constexpr (sizeof...(Rest) == 0)
    return first;
  else
    return join(std::move(first), join_all(std::move(rest)...));
}

/// Lists element types in a compiler's message.
template <class... Elements>
struct elements {};
template <class Pack>
struct elements_of;
template <class... Plans>
struct elements_of<pack<Plans...>> {
  using type = elements<std::remove_cvref_t<typename Plans::element>...>;
  template <class First, class... Rest>
  static consteval bool all_same() {
    return (std::is_same_v<First, Rest> && ...);
  }
  static constexpr bool same = all_same<std::remove_cvref_t<typename Plans::element>...>();
};

template <class First, class... Rest>
consteval bool same_types() {
  return sizeof...(Rest) != 0 && (std::is_same_v<First, Rest> && ...);
}
/// Plans of one type become a list: found by number without a branch, and compiled once.
template <class... Plans>
[[nodiscard]] auto joined(const pack<Plans...>& plans) {
  if constexpr (same_types<Plans...>()) {
    return plans.apply([](const auto& first, const auto&... rest) {
      using type = std::remove_cvref_t<decltype(first)>;
      return listed_plans<type>(std::vector<type>{first, rest...});
    });
  } else {
    return joined_plans<Plans...>(plans);
  }
}
/// A list of sources as a list of plans.
template <class T>
[[nodiscard]] auto listed(const std::vector<T>& all) {
  std::vector<plan_for<T>> plans;
  for (const T& one : all) plans.push_back(as_plan(one));
  return listed_plans<plan_for<T>>(std::move(plans));
}

}  // namespace detail

}  // namespace penstock::inline v0_1
