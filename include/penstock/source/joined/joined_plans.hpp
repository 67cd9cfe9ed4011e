// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/source/joined/joinable.hpp>
#include <penstock/source/joined/plan_reader.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
[[nodiscard, gnu::cold]] std::string name_of_joined(std::string_view joint, std::size_t k,
                                                    std::string_view what);

/// The size and the shards of a plan to be joined.
template <class Plan>
[[nodiscard]] order_input output_of_orders(const Plan& p) {
  return make_sample_orders(p).output();
}

/// Plans of different types, side by side.
template <class... Plans>
class joined_plans {
 public:
  static constexpr std::size_t fixed_count = sizeof...(Plans);
  using element = std::remove_cvref_t<typename type_at<0, pack<Plans...>>::element>;
  static constexpr bool wants_hints = (plan_reader<Plans>::wants_hints || ...);
  static constexpr bool fetch = (plan_reader<Plans>::fetches || ...);
  static constexpr bool latent = (plan_reader<Plans>::latent || ...);
  static constexpr bool knows_urls = (plan_reader<Plans>::knows_urls || ...);
  static constexpr guarantee_set lost = lost_by_joined<Plans...>();
  static constexpr bool renumbers = (plan_renumbers<Plans> || ...);
  static constexpr bool varies = !(Plans::same_every_epoch && ...);
  static constexpr bool one_at_a_time = (Plans::one_at_a_time || ...);

  explicit joined_plans(pack<Plans...> plans) : plans_(std::move(plans)) {}

  [[nodiscard]] static constexpr std::size_t count() noexcept { return fixed_count; }
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
      all.connect(*this, joint, used, std::index_sequence_for<Plans...>{});
    }
    /// `used`: the fields used of the samples of every plan.
    readers(const joined_plans& all, std::string_view joint, const projection& used)
        : readers(all, joint, std::array<projection, fixed_count>{(void(sizeof(Plans)), used)...}) {}
    template <class Sink>
    void evaluate(std::size_t k, position p, worker& w, Sink&& sink) const {
      dispatch<0, fixed_count>(k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        at<I>(w).fetched = w.fetched;
        at<I>(each_).evaluate(p, at<I>(w), sink);
      });
    }
    /// The reader of plan number I.
    template <std::size_t I>
    [[nodiscard]] const auto& get() const noexcept {
      return at<I>(each_);
    }
    [[nodiscard]] std::string key(std::size_t k, position p) const {
      std::string found;
      dispatch<0, fixed_count>(
          k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { found = at<I>(each_).key(p); });
      return found;
    }
    [[nodiscard]] std::string url(std::size_t k, position p) const {
      std::string found;
      dispatch<0, fixed_count>(
          k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) { found = at<I>(each_).url(p); });
      return found;
    }
    template <class Sink>
    void ranges(std::size_t k, position p, scout& s, Sink& sink) const {
      dispatch<0, fixed_count>(k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        at<I>(each_).ranges(p, at<I>(s), sink);
      });
    }
    [[nodiscard]] std::uint64_t bytes_per_sample(std::size_t k) const {
      std::uint64_t found = 0;
      dispatch<0, fixed_count>(k, [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        found = at<I>(each_).bytes_per_sample();
      });
      return found;
    }
    void cancel_reads() const noexcept {
      each_.apply([](const auto&... one) { (one.cancel_reads(), ...); });
    }
    /// What all plans keep in memory.
    [[nodiscard]] kept_counters kept() const {
      return each_.apply([](const auto&... one) {
        kept_counters all;
        ((all += one.kept()), ...);
        return all;
      });
    }
    /// What the sessions of all plans counted.
    [[nodiscard]] session_report report() const {
      return each_.apply([](const auto&... one) {
        session_report all;
        ((all += one.report()), ...);
        return all;
      });
    }

   private:
    friend class joined_plans;
    pack<plan_reader<Plans>...> each_;
  };

 private:
  template <std::size_t... Is>
  void connect(readers& made, std::string_view joint, const std::array<projection, fixed_count>& used,
               std::index_sequence<Is...>) const {
    ((at<Is>(made.each_) = plan_reader<Plans>(at<Is>(plans_), used[Is],
                                              name_of_joined(joint, Is, at<Is>(plans_).source().describe()))),
     ...);
  }

  pack<Plans...> plans_;
};

/// Plans of one type, whose number is known at run time.
template <class Plan>
class listed_plans {
 public:
  using element = std::remove_cvref_t<typename Plan::element>;
  static constexpr bool wants_hints = plan_reader<Plan>::wants_hints;
  static constexpr bool fetch = plan_reader<Plan>::fetches;
  static constexpr bool latent = plan_reader<Plan>::latent;
  static constexpr bool knows_urls = plan_reader<Plan>::knows_urls;
  static constexpr guarantee_set lost = lost_by_joined<Plan>();
  static constexpr bool renumbers = plan_renumbers<Plan>;
  static constexpr bool varies = !Plan::same_every_epoch;
  static constexpr bool one_at_a_time = Plan::one_at_a_time;

  explicit listed_plans(std::vector<Plan> plans) : plans_(new const std::vector<Plan>(std::move(plans))) {}

  [[nodiscard]] std::size_t count() const noexcept { return plans_->size(); }
  template <class F>
  void each(F&& f) const {
    for (std::size_t k = 0; k < plans_->size(); ++k) f(k, (*plans_)[k]);
  }

  class readers {
    using one = plan_reader<Plan>;
    template <class T>
    static T& in(std::unique_ptr<T[]>& all, std::size_t k, std::size_t count) {
      if (all == nullptr) [[unlikely]]
        all.reset(new T[count]());
      return all[k];
    }

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
    template <class Sink>
    void evaluate(std::size_t k, position p, worker& w, Sink&& sink) const {
      auto& own = in(w.each, k, each_.size());
      own.fetched = w.fetched;
      each_[k].evaluate(p, own, std::forward<Sink>(sink));
    }
    [[nodiscard]] std::string key(std::size_t k, position p) const { return each_[k].key(p); }
    [[nodiscard]] std::string url(std::size_t k, position p) const { return each_[k].url(p); }
    template <class Sink>
    void ranges(std::size_t k, position p, scout& s, Sink& sink) const {
      each_[k].ranges(p, in(s.each, k, each_.size()), sink);
    }
    [[nodiscard]] std::uint64_t bytes_per_sample(std::size_t k) const { return each_[k].bytes_per_sample(); }
    void cancel_reads() const noexcept {
      for (const one& reader : each_) reader.cancel_reads();
    }
    [[nodiscard]] kept_counters kept() const {
      kept_counters all;
      for (const one& reader : each_) all += reader.kept();
      return all;
    }
    [[nodiscard]] session_report report() const {
      session_report all;
      for (const one& reader : each_) all += reader.report();
      return all;
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
/// "concat(from(3 samples in memory), ...)".
template <class Plans>
[[nodiscard]] std::string describe_joined(std::string_view joint, std::string_view with, const Plans& plans) {
  std::string line = text({joint, "(", with});
  plans.each([&](std::size_t k, const auto& p) {
    append(line, {(k == 0 && with.empty() ? "" : ", "), p.source().describe()});
    p.stages().apply([&line](const auto&... stages) { (append(line, {" | ", text_of_stage(stages)}), ...); });
  });
  return line + ")";
}
/// Fingerprints of the data of all plans, of their sequences and of their random stages.
template <class Plans>
[[nodiscard]] std::uint64_t fingerprint_of_data(std::string_view joint, const Plans& plans) {
  fingerprint h;
  h.add(joint);
  plans.each([&h](std::size_t, const auto& p) { h.add(p.source().fingerprint()); });
  return h.value();
}
template <class Plans>
[[nodiscard]] std::uint64_t fingerprint_of_sequences(const Plans& plans) {
  fingerprint h;
  plans.each([&h](std::size_t, const auto& p) { h.add(sequence_fingerprint(p)); });
  return h.value();
}

template <class Plans>
[[nodiscard]] std::uint64_t fingerprint_of_random_stages(const Plans& plans) {
  fingerprint h;
  bool any = false;
  plans.each([&](std::size_t, const auto& p) {
    const std::uint64_t one = random_fingerprint(p);
    any = any || one != 0;
    h.add(one);
  });
  return any ? h.value() : 0;
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

#ifndef PENSTOCK_COMPILED
#include <penstock/source/joined/joined_plans.ipp>
#endif
