// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/evaluation/kept_places.hpp>
#include <penstock/evaluation/sample_cache_node.hpp>

#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct keep_after_random : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: keep_in_memory after a stage that draws random numbers, which would then be the "
                  "same in every epoch; move it before that stage");
  }
};
struct keep_after_enumerate : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory after enumerate, or another stage whose values depend on a sample's "
        "place in the order, which would then be that of the first epoch; move it before that stage");
  }
};
struct keep_on_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: keep_in_memory over a source that can only be read forward, which reads every "
                  "sample whether it is kept or not; use a source with an index");
  }
};
struct keep_after_unbatch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory after unbatch, which makes several samples of one; move it before "
        "unbatch");
  }
};
struct keep_over_mixed_epochs : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory behind a source whose samples have other numbers in each epoch, "
        "such as mix; write it in the plans that are joined, as in mix(a | keep_in_memory(limit), b)");
  }
};
struct keep_open_sample : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: keep_in_memory of samples whose members are known only at run time; name those "
                  "to keep, as in fields<\"jpg\", \"cls\"> | keep_in_memory(limit)");
  }
};
struct keep_views : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: keep_in_memory of a value with views in it, such as "
                  "std::optional<std::string_view>, which would outlive what they refer to; make it of types "
                  "that own what they have, such as std::string");
  }
};
struct keep_without_limit : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: keep_in_memory is given the most bytes it may keep, as in keep_in_memory(8_GiB)");
  }
};

}  // namespace mistakes

/// Keeps samples in memory as they are at this place in the expression, so that later epochs neither read nor
/// make them again. Made by `keep_in_memory(limit)`.
///
/// In: any element but one whose members are known only at run time; unfinished ones are finished. Views are
/// copied, also those in records, but values of other types with views in them do not compile: an array of
/// texts must be one of `std::string`. A type of your own must own what it has, or have a member alias
/// `is_view`, which says that it does not. Out: views of what is kept: bytes, texts, spans, tensor views;
/// images stay images, whose pixels are then free; numbers are copies. Where it stands decides what is kept:
/// before `decode` encoded bytes, behind it decoded values.
/// Augmentations, `enumerate`, and all that draws random numbers, stand after it. Pointwise; keeps all five
/// guarantees, and the sequence is the same with it and without it.
/// Samples that come first stay until the run ends, up to `limit` bytes; the others are made anew each time.
/// So of a run that goes through all its data in every epoch, the share that fits is had from memory, in any
/// order. Each process has its own. What is kept is not fetched ahead, and storages with a cache do not count
/// on it. A state does not hold samples: a restored run keeps them anew.
/// A sample is kept once its evaluation has succeeded: one that is bad, there or behind this stage, is not.
/// `run.counters().kept` counts, also samples for which there was no room; `report` says it.
/// Cost: of a hit, one hash, one or two cache lines and an atomic addition, without a lock, and a copy of
/// those members of records that are neither numbers nor shown as views (lists of texts); of a sample that is
/// kept, an allocation and a copy; of one that does not fit, a copy, and images are decoded as a whole.
/// Workers may go beyond the limit by a sample each while they make it. The limit is for what values have in
/// place and in standard containers; what other types own, such as `json_value` and those of yours, is not
/// seen, unless a `kept_as` says it.
/// Throws `errc::argument` for a limit of 0.
///
///     auto kept = samples | decode<field<"npy", npy<float>>, field<"cls", integer>> | keep_in_memory(8_GiB) |
///                 shuffle(seed(1)) | batch(64);
struct keep_in_memory_stage {
  using penstock_part = sample_cache_tag;
  static constexpr std::string_view stage_name = "keep_in_memory";
  std::uint64_t limit = 0;  ///< in bytes

  template <class In>
  using output = shown_of<In>;
  /// The node that keeps what comes from `up`.
  template <class Element, class Up>
  [[nodiscard]] sample_cache_node<Up, Element> around(Up up) const {
    return {std::move(up), limit};
  }

  [[nodiscard]] std::string describe() const { return detail::text({"keep_in_memory(", limit, ")"}); }

  template <class Context>
  static consteval auto diagnose() {
    constexpr auto facts = Context::facts;
    using element = typename Context::element;
    return typename detail::first_mistake<
        mistakes::unless<!facts.forward, mistakes::keep_on_forward>,
        mistakes::unless<!facts.renumbers && !facts.varies, mistakes::keep_over_mixed_epochs>,
        mistakes::unless<!facts.drawn, mistakes::keep_after_random>,
        mistakes::unless<!facts.placed, mistakes::keep_after_enumerate>,
        mistakes::unless<!facts.expanded, mistakes::keep_after_unbatch>,
        mistakes::unless<owned_when_cached<element>, mistakes::keep_views>,
        mistakes::unless<keepable<std::remove_cvref_t<element>>, mistakes::keep_open_sample>>::type{};
  }
};

/// At which of the places before it `keep_in_memory(limit, keep_at::automatic)` keeps samples.
struct keep_at {
  std::uint32_t place = 0;         ///< 1, 2, ...: that one, without measuring; 0: automatic
  static const keep_at automatic;  ///< the one that saves most
};
inline constexpr keep_at keep_at::automatic{};

/// Keeps samples in memory at that place before it which saves most time. Made by
/// `keep_in_memory(limit, keep_at::automatic)`.
///
/// In and out: any element; it passes on what arrives. Places are behind the source and behind each value
/// stage before it, so encoded, decoded, resized if each has its own `|`, up to a stage that draws random
/// numbers or whose values depend on the place in the order. The stages behind a place must take what is
/// shown there, as behind `keep_in_memory(limit)`, and what would arrive otherwise; if they do not, it is no
/// place. A function of `auto` is asked by compiling it: one that changes what it is given, where a view is
/// shown, does not compile; name the type that it takes.
/// The first samples of a run are timed by its workers, as they are and from each place: 32 each, or fewer so
/// that it takes no more than a quarter of an epoch. What a place saves counts times the share of the
/// source's samples for which the limit has room. The best one is taken for all workers until the run ends;
/// none if it saves less than 2 % of a sample's time, or if the first samples that are shown later save less.
/// `report` says which and why, as does `run.counters().kept.choices`. A restored run measures anew.
/// Sequence, values and states do not depend on the place: images that may yet be decoded smaller are not
/// kept, nor sounds a part of which may differ from the whole in its last bits (Opus, resampled ones).
/// Samples for which there is no room pass as they are.
/// It measures the time of workers, waits for reads included, but not what other threads read ahead.
/// Pointwise; keeps all five guarantees. Cost: of a sample, an atomic load, and a comparison for each place;
/// what is behind a place is compiled again for what is shown there. Threads: workers measure and decide
/// together, without a lock.
/// Throws `errc::argument` for a limit of 0, and when a run begins for a place that does not exist.
///
///     auto chosen = samples | fields<"npy", "cls"> | decode<field<"npy", npy<float>>, field<"cls", integer>> |
///                   keep_in_memory(8_GiB, keep_at::automatic) | shuffle(seed(1)) | batch(64);
///
/// Source: of choosing what to cache by measured cost and size, Jha et al., "HyCache: Hybrid Caching for
/// Accelerating DNN Input Preprocessing Pipelines", USENIX ATC 2025.
struct keep_in_memory_somewhere_stage {
  using penstock_part = sample_cache_tag;
  static constexpr std::string_view stage_name = "keep_in_memory";
  static constexpr bool chooses_place = true;
  std::uint64_t limit = 0;  ///< in bytes
  std::uint32_t only = 0;   ///< as in `keep_at`

  template <class In>
  using output = In;
  /// The stages of a plan, with those that keep.
  [[nodiscard]] auto with_places(const auto& p) const { return detail::stages_with_places(p, *this, only); }

  [[nodiscard]] std::string describe() const {
    return detail::text({"keep_in_memory(", limit, ", keep_at::automatic)"});
  }

  template <class Context>
  static consteval auto diagnose() {
    constexpr auto facts = Context::facts;
    return typename detail::first_mistake<
        mistakes::unless<!facts.forward, mistakes::keep_on_forward>,
        mistakes::unless<!facts.renumbers && !facts.varies, mistakes::keep_over_mixed_epochs>>::type{};
  }
  template <class Before>
  static consteval auto diagnose_behind() {
    return detail::chooser_behind<keep_in_memory_somewhere_stage, Before>::diagnose();
  }
};

/// Keeps up to so many bytes of samples in memory; see `keep_in_memory_stage`.
[[nodiscard]] inline keep_in_memory_stage keep_in_memory(any_count limit) {
  const std::uint64_t bytes = limit.of("keep_in_memory");
  if (bytes == 0)
    throw error(errc::argument,
                "keep_in_memory(0) keeps nothing; give it bytes, as in keep_in_memory(8_GiB), or "
                "remove it")
        .in_stage("keep_in_memory");
  return {bytes};
}
/// With a unit: `keep_in_memory(8_GiB)`.
[[nodiscard]] inline keep_in_memory_stage keep_in_memory(byte_count limit) {
  return keep_in_memory(any_count(std::uint64_t{limit}));
}
/// Where that saves most: `keep_in_memory(8_GiB, keep_at::automatic)`; see `keep_in_memory_somewhere_stage`.
[[nodiscard]] inline keep_in_memory_somewhere_stage keep_in_memory(any_count limit, keep_at where) {
  return {keep_in_memory(limit).limit, where.place};
}
/// With a unit.
[[nodiscard]] inline keep_in_memory_somewhere_stage keep_in_memory(byte_count limit, keep_at where) {
  return keep_in_memory(any_count(std::uint64_t{limit}), where);
}
/// A mistake, which gets a sentence.
template <class Never = void>
[[nodiscard]] keep_in_memory_stage keep_in_memory(keep_at) {
  mistakes::keep_without_limit::explain(std::type_identity<Never>{});
  return {};
}
/// A mistake, which gets a sentence.
template <class Never = void>
[[nodiscard]] keep_in_memory_stage keep_in_memory() {
  mistakes::keep_without_limit::explain(std::type_identity<Never>{});
  return {};
}

}  // namespace penstock::inline v0_1
