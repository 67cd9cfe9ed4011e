// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pipe.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/source/joined/plan_reader.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct joins_no_source : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: mix, zip and concat join sources, and sources with stages; one argument is something "
        "else; wrap a container in from(...)");
  }
};
struct joins_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: mix, zip and concat compute with positions, and one of these sources can only "
                  "be read forward; use a source with an index");
  }
};
struct joins_sharded : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shard inside mix, zip or concat; positions are global, write shard(rank, "
                  "world) once, after it");
  }
};
struct joins_batched : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: batch inside mix, zip or concat, which join samples; write batch(n) after it");
  }
};
struct joins_cursor : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shuffle_buffer inside mix, zip or concat, which compute with positions; write "
                  "shuffle(seed(7), window(w)) there, or shuffle_buffer after it");
  }
};
struct joins_filter : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: filter or unbatch inside mix, zip or concat, which must know how many samples "
                  "there are; write it after them");
  }
};
struct joins_annotation : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: inside mix, zip and concat the only annotation allowed is seed(n); workers, "
                  "prefetch, memory and the like apply to the whole run, write them after it");
  }
};
struct joins_bad_samples : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: bad_samples inside mix, zip or concat; a budget counts the samples of the "
                  "whole run, write it after them");
  }
};
struct joins_nothing : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>, "penstock: mix, zip and concat need at least one source to join");
  }
};

}  // namespace mistakes

namespace detail {

template <class... Stages>
consteval bool annotates(const light_tuple<Stages...>*) {
  return ((part_of_kind<Stages, annotation_tag> && !seed_annotation<Stages>) || ...);
}
template <class T>
inline constexpr bool annotates_a_run = false;
template <part_of_kind<plan_tag> T>
inline constexpr bool annotates_a_run<T> = annotates(static_cast<const typename T::stages_type*>(nullptr));

/// The mistake in joining T, or `none`.
template <class T>
consteval auto wrong_to_join() {
  if constexpr (!begun<T>) {
    return mistakes::joins_no_source{};
  } else {
    constexpr chain_facts f = plan_context<T>::type::facts;
    if constexpr (f.batched)
      return mistakes::joins_batched{};
    else if constexpr (f.sharded)
      return mistakes::joins_sharded{};
    else if constexpr (f.cursor)
      return mistakes::joins_cursor{};
    else if constexpr (f.decided)
      return mistakes::joins_filter{};
    else if constexpr (f.forward)
      return mistakes::joins_forward{};
    else if constexpr (f.bad_samples)
      return mistakes::joins_bad_samples{};
    else if constexpr (annotates_a_run<T>)
      return mistakes::joins_annotation{};
    else
      return mistakes::none{};
  }
}
/// The first mistake among the sources to be joined.
template <class... Ts>
struct wrong_join : first_mistake<decltype(wrong_to_join<Ts>())...> {};
template <>
struct wrong_join<> {
  using type = mistakes::joins_nothing;
};
/// The first mistake among the sources in packs: the arguments of a joint, without its options.
template <class... Packs>
struct wrong_join_of_packs;
template <class... Ts>
struct wrong_join_of_packs<light_tuple<Ts...>> : wrong_join<Ts...> {};
template <class... Ts, class... Us, class... Rest>
struct wrong_join_of_packs<light_tuple<Ts...>, light_tuple<Us...>, Rest...>
    : wrong_join_of_packs<light_tuple<Ts..., Us...>, Rest...> {};
template <bool IsOption, class T>
using pack_unless = std::conditional_t<IsOption, light_tuple<>, light_tuple<T>>;

template <class T>
[[nodiscard]] auto as_plan(const T& x) {
  if constexpr (part_of_kind<T, plan_tag>)
    return x;
  else
    return plan<T>(x);
}
template <class T>
using plan_for = decltype(as_plan(std::declval<const T&>()));
/// The plan of an argument in a pack, or an empty pack for an option.
template <bool IsOption, class T>
[[nodiscard]] auto plan_unless([[maybe_unused]] const T& x) {
  if constexpr (IsOption)
    return light_tuple<>{};
  else
    return make_light_tuple(as_plan(x));
}

/// What `make` makes of arguments, unless one of them is what an earlier mistake left, or `Wrong` is a
/// mistake. `make` is a generic lambda, so that it is not looked into then.
template <class Wrong, class Make, class... Args>
[[nodiscard]] auto unless_wrong(Make&& make, const Args&... args) {
  if constexpr ((part_of_kind<Args, poison_tag> || ...)) {
    return ill_formed{};
  } else if constexpr (!is_right<Wrong>) {
    Wrong::explain(0);
    return ill_formed{};
  } else {
    return make(args...);
  }
}

/// The guarantees that the joined source loses: those that any of its plans has lost.
template <class... Plans>
consteval guarantee_set lost_by_joined() {
  guarantee_set lost;
  ((lost = lost.with(Plans::context::facts.lost)), ...);
  return lost;
}

/// Whether number i names a different sample in each epoch, or depends on more than the data.
template <class Source, class... Stages>
consteval bool renumbers(const plan<Source, Stages...>*) {
  return renumbering_source<Source> || (part_of_kind<Stages, order_tag> || ...);
}
template <class Plan>
inline constexpr bool plan_renumbers = renumbers(static_cast<const Plan*>(nullptr));

}  // namespace detail

namespace mistakes {

struct elements_differ : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
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
[[nodiscard]] inline std::string name_of_joined(std::string_view joint, std::size_t k,
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
  using element = std::remove_cvref_t<typename type_at<0, light_tuple<Plans...>>::element>;

  explicit joined_plans(light_tuple<Plans...> plans) : plans_(std::move(plans)) {}

  /// Calls f(number, plan) for each plan.
  template <class F>
  void each(F&& f) const {
    std::size_t k = 0;
    plans_.apply([&](const auto&... plans) { (f(k++, plans), ...); });
  }

  class readers {
   public:
    struct worker : light_tuple<typename plan_reader<Plans>::worker...> {
      const fetched_sample* fetched = nullptr;
    };
    struct scout : light_tuple<typename plan_reader<Plans>::scout...> {
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
    light_tuple<plan_reader<Plans>...> each_;
  };

 private:
  light_tuple<Plans...> plans_;
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

inline light_tuple<> join_all() { return {}; }
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
template <class First, class... Rest>
inline constexpr bool same_types = (std::is_same_v<First, Rest> && ...);
template <class Pack>
struct elements_of;
template <class... Plans>
struct elements_of<light_tuple<Plans...>> {
  using type = elements<std::remove_cvref_t<typename Plans::element>...>;
  static constexpr bool same = same_types<std::remove_cvref_t<typename Plans::element>...>;
};

/// Plans of one type become a list: found by number without a branch, and compiled once.
template <class... Plans>
[[nodiscard]] auto joined(const light_tuple<Plans...>& plans) {
  if constexpr (sizeof...(Plans) != 1 && same_types<Plans...>) {
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
